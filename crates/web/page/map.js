// A map with the robot on it, its trail, its paths and its goals.

import { $, attribute, colour, el, facts, fixed, keyed, say, sharp, whileShown } from "./dom.js";
import { Eye } from "./eye.js";
import { Frames } from "./frames.js";
import { Ground } from "./ground.js";
import { arrow, bar, line, squares } from "./marks.js";
import { GRID, ODOMETRY, PATH, POSE, TRANSFORMS, grid, heading, odometry, path, stamped, transforms, within } from "./places.js";
import { aged, serverNow } from "./views.js";

const DRAWN_MS = 100;
const TRAIL_S = 60;
const MOST_STEPS = 1200;
// Topics of a kind that are drawn: paths, goals, transforms.
const MOST_TOPICS = 4;
// A robot whose pose is older than this is drawn pale.
const OLD_S = 2;
// Frames of robots, where nobody publishes odometry.
const BASES = ["base_footprint", "base_link"];
const NONE = "none";

const metres = (m) => `${m < 0 ? "−" : ""}${Math.abs(m).toFixed(2)} m`;

export class RobotMap {
  constructor(messages) {
    Object.assign(this, {
      messages, all: [], stops: new Map(), visible: false, frames: new Frames(), ground: null, robot: null, trail: [], lines: new Map(),
      problems: new Map(), legend: new Map(), stale: true,
    });
    this.canvas = $("map-picture");
    for (const [id, choose] of [["map-topic", () => this.forget("ground")], ["map-robot", () => this.forget("robot")]]) {
      $(id).addEventListener("change", () => {
        localStorage.setItem(id, $(id).value);
        choose();
        this.refresh();
      });
    }
    this.eye = new Eye(this.canvas, {
      moved: (byHand) => {
        if (byHand) this.look("free");
        this.stale = true;
      },
      held: () => this.mode === "follow" && this.robot !== null,
    });
    $("map-follow").addEventListener("click", () => this.look(this.mode === "follow" ? "free" : "follow", true));
    $("map-whole").addEventListener("click", () => this.look(this.mode === "whole" ? "free" : "whole", true));
    $("map-closer").addEventListener("click", () => this.eye.step(true));
    $("map-farther").addEventListener("click", () => this.eye.step(false));
    this.look(localStorage.getItem("map-look") === "follow" ? "follow" : "whole");
    whileShown($("map"), (visible) => {
      this.visible = visible;
      this.refresh();
    });
    setInterval(() => this.draw(), DRAWN_MS);
    setInterval(() => this.tell(), 250);
  }

  // What the view shows: the robot, the whole map, or a place chosen by hand.
  look(mode, chosen = false) {
    this.mode = mode;
    attribute($("map-follow"), "aria-pressed", mode === "follow");
    attribute($("map-whole"), "aria-pressed", mode === "whole");
    if (chosen && mode !== "free") localStorage.setItem("map-look", mode);
    this.stale = true;
  }

  of(...types) {
    return this.all.filter((c) => types.includes(c.schemaName)).map((c) => c.topic).sort();
  }

  channels(all) {
    this.all = all;
    const maps = this.of(GRID).sort((a, b) => b.endsWith("/map") - a.endsWith("/map"));
    this.offer("map-topic", [...maps.map((topic) => [topic, topic]), [NONE, "no map"]]);
    this.robots();
    for (const topic of this.lines.keys()) if (!this.of(PATH, POSE).includes(topic)) this.lines.delete(topic);
    this.refresh();
  }

  // Offers the topics of odometry, and robots that are known from transforms only.
  robots() {
    const bases = [...this.frames.all.keys()].filter((frame) => BASES.includes(frame.split("/").at(-1)));
    bases.sort((a, b) => BASES.indexOf(a.split("/").at(-1)) - BASES.indexOf(b.split("/").at(-1)));
    const choices = this.of(ODOMETRY).map((topic) => [topic, topic]);
    const frames = this.of(...TRANSFORMS).length > 0 ? bases.slice(0, 8) : [];
    this.offer("map-robot", [...choices, ...frames.map((frame) => [`frame ${frame}`, `frame ${frame}`])]);
  }

  offer(id, choices) {
    const select = $(id);
    const text = JSON.stringify(choices);
    if (select.dataset.choices !== text) {
      select.dataset.choices = text;
      const before = select.value;
      select.replaceChildren(...choices.map(([value, name]) => el("option", { value }, name)));
      const kept = localStorage.getItem(id);
      // A topic that the operator chose counts as soon as it exists.
      select.value = [kept, before === NONE ? "" : before, choices[0]?.[0]].find((value) => choices.some(([c]) => c === value)) ?? "";
      if (select.value !== before) this.forget(id === "map-topic" ? "ground" : "robot");
    }
    select.disabled = choices.length === 0;
  }

  forget(what) {
    if (what === "ground") this.ground = null;
    else Object.assign(this, { robot: null, trail: [] });
    this.problems.clear();
    this.stale = true;
  }

  // Subscribes to the topics that it draws, while it is visible.
  refresh() {
    const few = (...types) => this.of(...types).slice(0, MOST_TOPICS);
    const takes = new Map();
    const all = this.of(GRID, ODOMETRY);
    for (const [id, take] of [["map-topic", (m) => this.takeGround(m)], ["map-robot", (m) => this.takeOdometry(m)]]) {
      if (all.includes($(id).value)) takes.set($(id).value, take);
    }
    for (const topic of few(...TRANSFORMS)) takes.set(topic, (m) => this.takeTransforms(m));
    for (const topic of few(PATH)) takes.set(topic, (m) => this.lines.set(topic, path(m.view)));
    for (const topic of few(POSE)) takes.set(topic, (m) => this.lines.set(topic, stamped(m.view)));
    for (const [topic, stop] of this.stops) {
      if (this.visible && takes.has(topic)) continue;
      stop();
      this.stops.delete(topic);
      this.problems.delete(topic);
    }
    if (!this.visible) return;
    for (const [topic, take] of takes) {
      if (this.stops.has(topic)) continue;
      this.stops.set(topic, this.messages.watch(topic, (view, stamp) => this.take(topic, take, { view, stamp })));
    }
    this.stale = true;
  }

  take(topic, take, message) {
    try {
      take(message);
      this.problems.delete(topic);
    } catch (error) {
      this.problems.set(topic, `${topic}: ${error.message}`);
    }
    this.stale = true;
  }

  // The server reports why a message does not arrive, such as one that is too long.
  reported(message) {
    const topic = $("map-topic").value;
    if (this.stops.has(topic) && !this.ground && message.startsWith(`${topic}: `)) this.problems.set(topic, message);
  }

  takeGround({ view, stamp }) {
    try {
      this.ground = Object.assign(new Ground(grid(view)), { stamp });
    } catch (error) {
      this.ground = null;
      throw error;
    }
  }

  takeOdometry({ view, stamp }) {
    const read = odometry(view);
    this.moved({ frame: read.frame, pose: read.pose, stamp, speed: read.speed });
  }

  takeTransforms({ view, stamp }) {
    const before = this.frames.all.size;
    const read = transforms(view);
    for (const transform of read) this.frames.add({ ...transform, stamp });
    if (this.frames.all.size !== before) this.robots();
    const [, base] = /^frame (.*)$/.exec($("map-robot").value) ?? [];
    if (!base || !read.some(({ child }) => this.frames.above(base).has(child))) return;
    const root = this.frames.root(base);
    this.moved({ frame: root, pose: this.frames.pose(base, root), stamp, speed: null });
  }

  // Keeps the robot's newest pose and its trail.
  moved(robot) {
    const now = performance.now() / 1000;
    if (this.robot?.frame !== robot.frame) this.trail = [];
    const [x, y] = robot.pose.at;
    // No topic states the speed: it follows from the path of the last half second.
    const before = this.trail.findLast((step) => now - step.time > 0.5);
    robot.speed ??= before ? Math.hypot(x - before.at[0], y - before.at[1]) / (now - before.time) : null;
    this.robot = robot;
    if (now - (this.trail.at(-1)?.time ?? 0) >= TRAIL_S / MOST_STEPS) this.trail.push({ time: now, at: robot.pose.at, turn: [0, 0, 0, 1] });
    const old = this.trail.findIndex((step) => now - step.time <= TRAIL_S);
    this.trail.splice(0, Math.max(0, old));
  }

  // The frame in which everything is drawn.
  frame() {
    return this.ground?.frame ?? this.robot?.frame ?? [...this.lines.values()][0]?.frame ?? "";
  }

  // A function from poses of a frame to the place where they are drawn.
  placer(frame) {
    const known = this.frames.pose(frame, this.frame());
    if (!known) this.apart.add(`no transform from ${frame || "a frame without a name"} to ${this.frame()}: shown as if they were one`);
    return known ? (pose) => within(known, pose) : (pose) => pose;
  }

  // All that is drawn, in one frame.
  scene() {
    this.apart = new Set();
    const scene = { robot: null, trail: [], lines: [] };
    if (this.robot) {
      const place = this.placer(this.robot.frame);
      scene.robot = place(this.robot.pose);
      scene.trail = this.trail.map((step) => place(step).at);
    }
    for (const [topic, { frame, places }] of this.lines) {
      if (places.length > 0) scene.lines.push({ topic, places: places.map(this.placer(frame)) });
    }
    return scene;
  }

  // The corners of everything drawn.
  bounds({ robot, trail, lines }) {
    const points = this.ground ? this.ground.corners() : [...trail, ...lines.flatMap(({ places }) => places.map(({ at }) => at))];
    const room = this.ground ? 0 : 2;
    if (robot) points.push(robot.at);
    if (points.length === 0) points.push([0, 0]);
    const sides = [Infinity, Infinity, -Infinity, -Infinity];
    for (const [x, y] of points) {
      sides[0] = Math.min(sides[0], x - room);
      sides[1] = Math.min(sides[1], y - room);
      sides[2] = Math.max(sides[2], x + room);
      sides[3] = Math.max(sides[3], y + room);
    }
    return sides;
  }

  draw() {
    if (!this.visible) return;
    // The size and the theme change without a message.
    const { width: wide, height: high } = this.canvas.getBoundingClientRect();
    const look = `${wide} ${high} ${colour("paper")}`;
    if (!this.stale && look === this.drawn) return;
    Object.assign(this, { stale: false, drawn: look });
    const scene = this.scene();
    const { context, width, height } = sharp(this.canvas);
    if (this.mode === "whole") this.eye.fit(this.bounds(scene), width, height);
    if (this.mode === "follow" && scene.robot) [this.eye.x, this.eye.y] = scene.robot.at;
    const { x, y, scale } = this.eye;
    const at = ([a, b]) => [width / 2 + (a - x) * scale, height / 2 - (b - y) * scale];
    if (this.ground) {
      context.save();
      context.translate(width / 2, height / 2);
      context.scale(scale, scale);
      context.translate(-x, y);
      this.ground.draw(context, scale);
      context.restore();
    } else {
      squares(context, this.eye, width, height);
    }
    scene.lines.forEach(({ places }, n) => {
      line(context, places.map((place) => at(place.at)), `c${1 + (n % 6)}`, 2);
      if (places.length === 1) arrow(context, at(places[0].at), heading(places[0]), `c${1 + (n % 6)}`);
    });
    line(context, scene.trail.map(at), "c0", 2);
    if (scene.robot) arrow(context, at(scene.robot.at), heading(scene.robot), this.age() > OLD_S ? "pale" : "c0");
    bar(context, this.eye, height);
    this.shown = scene;
    Object.assign(this.canvas.dataset, { x, y, scale });
    const items = [...(scene.robot ? [["robot, last minute", 0]] : []), ...scene.lines.map(({ topic }, n) => [topic, 1 + (n % 6)])];
    keyed($("map-legend"), this.legend, items, ([name]) => name, () => el("li"), (node, [name, n]) => {
      attribute(node, "data-colour", n);
      say(node, name);
    });
  }

  age() {
    return serverNow() - this.robot.stamp;
  }

  // Place, heading, speed, age, and problems.
  tell() {
    if (!this.visible || !this.shown) return;
    const lines = [];
    const { robot } = this.shown;
    if (robot && this.robot) {
      const [x, y] = robot.at;
      const degrees = Math.round((heading(robot) * 180) / Math.PI);
      lines.push([`x ${metres(x)}, y ${metres(y)}`, ""], [`heading ${degrees < 0 ? "−" : ""}${Math.abs(degrees)}°`, ""]);
      if (this.robot.speed !== null) lines.push([`${fixed(this.robot.speed, 2)} m/s`, ""]);
      lines.push(aged(this.age()));
    }
    const reported = lines.slice(0, 3).map(([text]) => text).join(", ");
    const map = this.ground ? `${this.ground.width}×${this.ground.height} cells of ${fixed(this.ground.cell * 100, 1)} cm` : "no map";
    lines.push([map, ""]);
    facts($("map-facts"), lines);
    attribute(this.canvas, "aria-label", `Map: ${map}${reported ? `, robot at ${reported}` : ", no robot"}`);
    say($("map-problem"), [...this.problems.values(), ...(this.apart ?? []), ...this.missing()].join(". "));
  }

  missing() {
    const [map, robot] = ["map-topic", "map-robot"].map((id) => $(id).value);
    if (this.of(GRID, ODOMETRY, PATH, POSE, ...TRANSFORMS).length === 0) return ["no map and no odometry on this bus"];
    if (map !== "" && map !== NONE && !this.ground && !this.problems.has(map)) return [`waiting for ${map}`];
    return robot !== "" && !this.robot && !this.problems.has(robot) ? [`waiting for ${robot}`] : [];
  }
}
