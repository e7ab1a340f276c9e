// Opens `ropewalk foxglove` in Foxglove Studio, in a real Chromium, and compares what its panels show with what a robot sent over a link.
// Usage: node studio.js ROPEWALK [FOLDER], a folder for screenshots. Prints a line for each check.

import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { jpeg, launch, Panel, screenshot, serve } from "./browser.js";
import { Hosts, line } from "./bus.js";

// Whatever is waited for takes less than a tenth of this.
const WATCHDOG_MS = 60_000;
const [RED, GREEN, BLUE, YELLOW] = [[200, 30, 30], [30, 170, 40], [40, 60, 220], [230, 210, 40]];
const MAGENTA = [255, 0, 255];
// Of pictures, in pixels.
const [WIDTH, HEIGHT] = [48, 32];
// Of the 3D panel, in metres, and of the scan's points, in pixels.
const VIEW = 10;
const POINT = 12;
const PRIORITY = "/link/base/topics/cmd_vel/priority";
const TWIST = { linear: { x: 0.25, y: 0, z: 0 }, angular: { x: 0, y: 0, z: -0.5 } };

// What the robot sends: first one, then the other.
const BEFORE = {
  // Left to right, top to bottom.
  colours: [RED, GREEN, BLUE, YELLOW],
  // At -90°, -45°, 0°, 45° and 90° of the laser.
  ranges: [1, 1.5, 2, 2.5, 3],
  laser: { x: 1, y: 0.5, turn: Math.PI / 2 },
  level: 3,
};
const AFTER = { colours: [YELLOW, RED, GREEN, BLUE], ranges: [2, 2, 1, 3, 1.5], laser: { x: -1, y: -0.5, turn: 0 }, level: 8 };

const LAYOUT = {
  globalVariables: {},
  userNodes: {},
  playbackConfig: { speed: 1 },
  configById: {
    "3D!scene": {
      followTf: "odom",
      followMode: "follow-pose",
      cameraState: { perspective: false, phi: 0, thetaOffset: 0, distance: VIEW, target: [0, 0, 0], targetOffset: [0, 0, 0] },
      scene: { backgroundColor: "#000000" },
      topics: { "/scan": { visible: true, colorField: "intensity", colorMode: "flat", flatColor: "#ff00ffff", pointSize: POINT, pointShape: "square" } },
      layers: {},
    },
    "Plot!level": {
      paths: [
        { value: "0", enabled: true, timestampMethod: "receiveTime", color: "#ff0000" },
        { value: "10", enabled: true, timestampMethod: "receiveTime", color: "#0000ff" },
        { value: "/level.data", enabled: true, timestampMethod: "receiveTime", color: "#00ff00" },
      ],
      minYValue: -1,
      maxYValue: 11,
      showLegend: false,
      legendDisplay: "none",
      showXAxisLabels: true,
      showYAxisLabels: true,
      isSynced: false,
      xAxisVal: "timestamp",
      followingViewWidth: 5,
    },
    "ImageViewPanel!raw": { cameraTopic: "/camera/image" },
    "ImageViewPanel!jpeg": { cameraTopic: "/camera/image/compressed" },
    "Parameters!link": {},
    "Publish!drive": { topicName: "/cmd_vel", datatype: "geometry_msgs/Twist", value: JSON.stringify(TWIST), buttonText: "Publish" },
  },
  layout: {
    direction: "row",
    splitPercentage: 50,
    first: { direction: "column", first: "3D!scene", second: "Plot!level", splitPercentage: 65 },
    second: {
      direction: "column",
      splitPercentage: 35,
      first: { direction: "row", first: "ImageViewPanel!raw", second: "ImageViewPanel!jpeg" },
      second: { direction: "row", first: "Parameters!link", second: "Publish!drive", splitPercentage: 60 },
    },
  },
};

// Sends one of the above at 10 Hz.
async function send(hosts, page, scene) {
  const { colours, ranges, laser, level } = scene;
  const header = { frame_id: "camera", stamp: "now" };
  const pixels = Array.from({ length: WIDTH * HEIGHT }, (_, i) => colours[2 * Number(i >= (WIDTH * HEIGHT) / 2) + Number(i % WIDTH >= WIDTH / 2)]);
  const raw = { header, width: WIDTH, height: HEIGHT, encoding: "rgb8", step: 3 * WIDTH, data: pixels.flat() };
  const compressed = { header, format: "jpeg", data: await jpeg(page, WIDTH, HEIGHT, colours) };
  const scan = {
    header: { frame_id: "laser", stamp: "now" },
    ...{ angle_min: -Math.PI / 2, angle_max: Math.PI / 2, angle_increment: Math.PI / 4, range_min: 0.1, range_max: 10, ranges },
  };
  const rotation = { x: 0, y: 0, z: Math.sin(laser.turn / 2), w: Math.cos(laser.turn / 2) };
  const transform = { translation: { x: laser.x, y: laser.y, z: 0 }, rotation };
  const tf = { transforms: [{ header: { frame_id: "odom", stamp: "now" }, child_frame_id: "laser", transform }] };
  return [
    hosts.publish("robot", "/camera/image", "sensor_msgs/Image", 10, raw),
    hosts.publish("robot", "/camera/image/compressed", "sensor_msgs/CompressedImage", 10, compressed),
    hosts.publish("robot", "/scan", "sensor_msgs/LaserScan", 10, scan),
    hosts.publish("robot", "/tf", "tf2_msgs/TFMessage", 10, tf),
    hosts.publish("robot", "/level", "std_msgs/Float64", 10, { data: level }),
  ];
}

// Why an image panel does not show four colours; none if it does.
async function image(panel, colours, tolerance) {
  const pixels = await panel.pixels();
  if (!pixels) return "it has no canvas";
  // The panel fits the image in.
  const scale = Math.min(pixels.width / WIDTH, pixels.height / HEIGHT);
  const [width, height] = [WIDTH * scale, HEIGHT * scale];
  for (const [i, wanted] of colours.entries()) {
    const [column, row] = [i % 2, Math.floor(i / 2)];
    // The quarter's middle, and places near its corners.
    for (const [dx, dy] of [[0.25, 0.25], [0.05, 0.05], [0.45, 0.05], [0.05, 0.45], [0.45, 0.45]]) {
      const x = (pixels.width - width) / 2 + (column / 2 + dx) * width;
      const y = (pixels.height - height) / 2 + (row / 2 + dy) * height;
      const shown = pixels.at(x, y);
      if (shown.some((part, k) => Math.abs(part - wanted[k]) > tolerance)) {
        return `at ${Math.round(x)},${Math.round(y)} of ${pixels.width}x${pixels.height} it shows ${shown}, not ${wanted}`;
      }
    }
  }
  return null;
}

// Why the 3D panel does not show the scan where the transform puts it.
async function scan(panel, { ranges, laser }) {
  const pixels = await panel.pixels();
  if (!pixels) return "it has no canvas";
  const scale = pixels.height / VIEW;
  const points = ranges.map((range, i) => {
    const angle = -Math.PI / 2 + (i * Math.PI) / 4 + laser.turn;
    const [x, y] = [laser.x + range * Math.cos(angle), laser.y + range * Math.sin(angle)];
    return { x: pixels.width / 2 + x * scale, y: pixels.height / 2 - y * scale, count: 0 };
  });
  const shown = pixels.find(MAGENTA, 40);
  let elsewhere = 0;
  for (const pixel of shown) {
    const near = points.find((point) => Math.max(Math.abs(point.x - pixel.x), Math.abs(point.y - pixel.y)) <= POINT / 2 + 2);
    if (near) near.count += 1;
    else elsewhere += 1;
  }
  const counts = points.map((point) => point.count);
  const few = counts.some((count) => count < 0.6 * POINT * POINT);
  return few || elsewhere > 0 ? `it shows ${counts} pixels at the points and ${elsewhere} elsewhere` : null;
}

// Why the newest end of the plot's line is not at a level.
async function level(panel, wanted) {
  const pixels = await panel.pixels();
  if (!pixels) return "it has no canvas";
  const row = (places) => places.reduce((sum, { y }) => sum + y, 0) / places.length;
  const [zero, ten, line] = [[255, 0, 0], [0, 0, 255], [0, 255, 0]].map((colour) => pixels.find(colour, 100));
  if ([zero, ten, line].some((places) => places.length === 0)) return "a line is missing";
  const newest = Math.max(...line.map(({ x }) => x));
  const shown = (10 * (row(line.filter(({ x }) => x >= newest - 3)) - row(zero))) / (row(ten) - row(zero));
  return Math.abs(shown - wanted) > 0.2 ? `it is at ${shown.toFixed(2)}` : null;
}

// The box that holds a parameter's value.
const box = (page) => page.$(`xpath/.//tr[.//*[@title="${PRIORITY}"]]//textarea`);

async function shownPriority(page, wanted) {
  const value = await (await box(page))?.evaluate((element) => element.value);
  return value === String(wanted) ? null : `it shows ${value}`;
}

async function heldPriority(hosts, wanted) {
  const state = JSON.parse(await hosts.run("base", "link", "status", "--json"));
  const priority = state.sent.find((topic) => topic.name === "/cmd_vel")?.priority;
  return priority === wanted ? null : `the link has ${priority}`;
}

class Checks {
  passed = 0;
  failed = 0;

  // Looks until `problem` finds none.
  async check(what, problem) {
    const end = Date.now() + WATCHDOG_MS;
    let found;
    do {
      found = await Promise.resolve(problem()).catch((error) => error.message);
    } while (found !== null && Date.now() < end);
    if (found === null) this.passed += 1;
    else this.failed += 1;
    console.log(found === null ? `ok    ${what}` : `FAIL  ${what}: ${found}`);
    if (found !== null) await this.failure?.(this.failed);
  }
}

async function main(folder, pictures, checks, ends) {
  const hosts = new Hosts(resolve(process.argv[2]), folder);
  ends.push(() => hosts.stop());
  const site = await serve(fileURLToPath(new URL(".", import.meta.url)), LAYOUT);
  ends.push(() => site.close());
  const origin = `http://127.0.0.1:${site.address().port}`;
  const browser = await launch(folder);
  ends.push(() => browser.close());
  const page = await browser.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.text().includes("FoxgloveWebSocket:")) complaints.push(message.text());
  });

  checks.failure = (n) => screenshot(page, pictures, `failure-${n}`);
  await hosts.link([
    ["/camera/image", "robot", 20],
    ["/camera/image/compressed", "robot", 20],
    ["/scan", "robot", 80],
    ["/tf", "robot", 90],
    ["/level", "robot", 70],
    ["/cmd_vel", "base", 60],
  ]);
  const publishers = await send(hosts, page, BEFORE);
  const server = hosts.start("base", "foxglove", "--port", "0", "--allow-publish", "/cmd_vel", "--origin", origin);
  const url = await line(server.stderr, /ws:\S+/);
  await page.goto(`${origin}/?ds=foxglove-websocket&ds.url=${encodeURIComponent(url)}`, { timeout: WATCHDOG_MS });

  const panel = (name) => new Panel(page, name);
  const [raw, compressed, scene, plot] = ["ImageViewPanel!raw", "ImageViewPanel!jpeg", "3D!scene", "Plot!level"].map(panel);
  const look = async (when, sent) => {
    await checks.check(`the image panel shows the raw image's colours${when}`, () => image(raw, sent.colours, 3));
    await checks.check(`the image panel shows the JPEG image's colours${when}`, () => image(compressed, sent.colours, 30));
    await checks.check(`the 3D panel shows the scan's points where /tf puts them, and none elsewhere${when}`, () => scan(scene, sent));
    await checks.check(`the plot's line is at ${sent.level}${when}`, () => level(plot, sent.level));
    await screenshot(page, pictures, when ? "after" : "before");
  };
  await look("", BEFORE);
  await send(hosts, page, AFTER);
  publishers.forEach((publisher) => publisher.kill("SIGINT"));
  await look(", once they changed", AFTER);

  await checks.check("the parameters panel shows the priority 60", () => shownPriority(page, 60));
  await (await box(page))?.click({ count: 3 });
  // In one piece, since the panel redraws the box after each key.
  await page.keyboard.sendCharacter("90");
  const submit = await page.$(`xpath/.//tr[.//*[@title="${PRIORITY}"]]//button[@aria-label="Submit change"]`);
  await submit?.click();
  await checks.check("the priority changed in the panel arrives at the link", () => heldPriority(hosts, 90));
  await checks.check("the parameters panel shows the priority 90", () => shownPriority(page, 90));

  const echoes = ["base", "robot"].map((host) => [host, hosts.start(host, "topic", "echo", "/cmd_vel", "--once", "--json", "--wait", "300")]);
  const button = await page.$(`xpath/.//button[text()="Publish"]`);
  for (const [host, echo] of echoes) {
    await checks.check(`what the publish panel publishes is on the ${host}'s bus`, async () => {
      await button.click();
      await Promise.race([once(echo, "exit"), new Promise((resolve) => setTimeout(resolve, 200))]);
      if (echo.exitCode === null) return "nothing arrives";
      const { linear, angular } = JSON.parse(echo.output);
      return linear.x === TWIST.linear.x && angular.z === TWIST.angular.z ? null : echo.output;
    });
  }
  const problems = await page.$(`xpath/.//button[starts-with(., "Problems")]`);
  await problems.click();
  await checks.check("Studio has no problems with the server", async () => {
    const count = (await problems.evaluate((element) => element.innerText)).replace("Problems", "").trim();
    return count || complaints.length > 0 ? `${count || "no"} problems; ${complaints.join("; ")}` : null;
  });
  await screenshot(page, pictures, "end");
}

const folder = mkdtempSync(join(tmpdir(), "rw"));
const pictures = process.argv[3] ? resolve(process.argv[3]) : null;
if (pictures) mkdirSync(pictures, { recursive: true });
const checks = new Checks();
const ends = [];
async function clean() {
  for (const end of ends.splice(0).reverse()) await end();
  rmSync(folder, { recursive: true, force: true });
}
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => clean().finally(() => process.exit(1)));
try {
  await main(folder, pictures, checks, ends);
} catch (error) {
  checks.failed += 1;
  console.log(`FAIL  the test ran to its end: ${error.stack}`);
}
await clean();
console.log(`${checks.passed} passed, ${checks.failed} failed`);
process.exit(checks.failed > 0 ? 1 : 0);
