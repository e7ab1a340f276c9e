// Runs every operation of npm's @foxglove/ws-protocol against `ropewalk foxglove`, next to a link and a publisher.
// Usage: node client.js ROPEWALK

import protocol from "@foxglove/ws-protocol";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import WebSocket from "ws";

const { FoxgloveClient } = protocol;
const WATCHDOG_MS = 60_000;
const folder = mkdtempSync(join(tmpdir(), "rw"));
const children = [];

function start(...args) {
  const env = { ...process.env, ROPEWALK_RUNTIME_DIR: join(folder, "bus") };
  const child = spawn(process.argv[2], args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  return child;
}

// The first line of a stream that `choose` turns into something.
function line(stream, choose) {
  return watched("a line", (done) => {
    createInterface({ input: stream }).on("line", (text) => {
      const found = choose(text);
      if (found) done(found);
    });
  });
}

// A promise with a watchdog.
function watched(what, begin) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`never: ${what}`)), WATCHDOG_MS);
    begin((value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
}

// The next event that fits.
function next(client, name, fits = () => true) {
  return watched(name, (done) => {
    const listener = (event) => {
      if (!fits(event)) return;
      client.off(name, listener);
      done(event);
    };
    client.on(name, listener);
  });
}

async function main() {
  mkdirSync(join(folder, "share/arm"), { recursive: true });
  writeFileSync(join(folder, "share/arm/arm.urdf"), "<robot/>");
  const link = "host: robot\nradio: {bind: '127.0.0.1:0', rate: 6Mbit/s}\npeers:\n  - {name: base, address: '127.0.0.1:9'}\n" +
    "topics:\n  - {name: /scan, direction: out, priority: 60}\n";
  writeFileSync(join(folder, "link.yaml"), link);
  start("link", "link.yaml");
  const scan = start("topic", "pub", "/scan", "sensor_msgs/LaserScan", "{header: {frame_id: laser}, ranges: [1, 2, 3]}", "--rate", "10");
  const server = start("foxglove", "--port", "0", "--allow-publish", "/cmd_vel", "--assets", "share");
  const url = await line(server.stderr, (text) => text.match(/ws:\S+/)?.[0]);

  const client = new FoxgloveClient({ ws: new WebSocket(url, [FoxgloveClient.SUPPORTED_SUBPROTOCOL]) });
  client.on("error", (error) => {
    throw error;
  });
  const channels = new Map();
  const services = new Map();
  client.on("advertise", (list) => list.forEach((one) => channels.set(one.topic, one)));
  client.on("advertiseServices", (list) => list.forEach((one) => services.set(one.name, one)));
  const info = next(client, "serverInfo");
  await next(client, "open");
  assert.equal((await info).name, "ropewalk");
  for (const name of ["clientPublish", "services", "parameters", "parametersSubscribe", "connectionGraph", "assets"]) {
    assert.ok((await info).capabilities.includes(name), name);
  }
  const there = async (map, name, event) => {
    if (!map.has(name)) await next(client, event, () => map.has(name));
    return map.get(name);
  };

  // Topics.
  const channel = await there(channels, "/scan", "advertise");
  assert.deepEqual([channel.encoding, channel.schemaName, channel.schemaEncoding], ["ros1", "sensor_msgs/LaserScan", "ros1msg"]);
  const subscription = client.subscribe(channel.id);
  const message = await next(client, "message", (event) => event.subscriptionId === subscription);
  const bytes = Buffer.from(message.data.buffer, message.data.byteOffset, message.data.byteLength);
  assert.ok(bytes.includes("laser") && message.timestamp > 0n);
  const ranges = bytes.subarray(bytes.length - 20, bytes.length - 4);
  assert.deepEqual([ranges.readUInt32LE(0), ranges.readFloatLE(4), ranges.readFloatLE(12)], [3, 1, 3]);
  client.unsubscribe(subscription);

  // Publishing.
  const echo = start("topic", "echo", "/cmd_vel", "--json", "-n", "1", "--wait", "50");
  const echoed = line(echo.stdout, (text) => (text.includes("linear") ? JSON.parse(text) : null));
  const outlet = client.advertise({ topic: "/cmd_vel", encoding: "json", schemaName: "geometry_msgs/Twist" });
  const twist = JSON.stringify({ linear: { x: 0.5, y: 0, z: 0 }, angular: { x: 0, y: 0, z: 0.25 } });
  const publishing = setInterval(() => client.sendMessage(outlet, Buffer.from(twist)), 100);
  const heard = JSON.stringify(await echoed);
  clearInterval(publishing);
  assert.ok(heard.includes("0.5") && heard.includes("0.25"), heard);
  client.unadvertise(outlet);
  const refused = next(client, "status");
  const other = client.advertise({ topic: "/other", encoding: "json", schemaName: "geometry_msgs/Twist" });
  client.sendMessage(other, Buffer.from(twist));
  assert.match((await refused).message, /--allow-publish \/other/);

  // Services, answered and failed.
  const state = await there(services, "/link/robot/state", "advertiseServices");
  const answer = next(client, "serviceCallResponse", (event) => event.callId === 7);
  const call = { serviceId: state.id, callId: 7, encoding: "ros1" };
  client.sendServiceCallRequest({ ...call, data: new DataView(new ArrayBuffer(0)) });
  const { data } = await answer;
  const reported = Buffer.from(data.buffer, data.byteOffset + 4, data.byteLength - 4).toString();
  assert.equal(JSON.parse(reported).host, "robot");
  const failure = next(client, "serviceCallFailure", (event) => event.callId === 8);
  client.sendServiceCallRequest({ ...call, callId: 8, data: new DataView(new ArrayBuffer(3)) });
  assert.ok((await failure).message.length > 0);

  // Parameters: settings of the link.
  const name = "/link/robot/topics/scan/priority";
  const values = async (id, ask) => {
    const answer = next(client, "parameterValues", (event) => event.id === id);
    ask();
    return (await answer).parameters;
  };
  await watched(name, async (done) => {
    for (let n = 0; ; n++) {
      const found = await values(`wait${n}`, () => client.getParameters([name], `wait${n}`));
      if (found.length > 0) return done();
    }
  });
  assert.deepEqual(await values("get", () => client.getParameters([name], "get")), [{ name, value: 60 }]);
  client.subscribeParameterUpdates([name]);
  const updated = next(client, "parameterValues", (event) => event.id === undefined);
  assert.deepEqual(await values("set", () => client.setParameters([{ name, value: 90 }], "set")), [{ name, value: 90 }]);
  assert.deepEqual((await updated).parameters, [{ name, value: 90 }]);
  client.unsubscribeParameterUpdates([name]);

  // The graph.
  const graph = next(client, "connectionGraphUpdate", (event) => event.publishedTopics.some((topic) => topic.name === "/scan"));
  client.subscribeConnectionGraph();
  assert.ok((await graph).advertisedServices.some((service) => service.name === "/link/robot/state"));
  client.unsubscribeConnectionGraph();

  // Files.
  const file = next(client, "fetchAssetResponse", (event) => event.requestId === 1);
  client.fetchAsset("package://arm/arm.urdf", 1);
  const urdf = (await file).data;
  assert.equal(Buffer.from(urdf.buffer, urdf.byteOffset, urdf.byteLength).toString(), "<robot/>");
  const missing = next(client, "fetchAssetResponse", (event) => event.requestId === 2);
  client.fetchAsset("package://arm/../../link.yaml", 2);
  assert.ok((await missing).error.length > 0);

  // A topic that goes.
  const gone = next(client, "unadvertise", (ids) => ids.includes(channel.id));
  scan.kill();
  await gone;
  const closed = next(client, "close");
  client.close();
  await closed;
}

let failed = null;
try {
  await main();
} catch (error) {
  failed = error;
}
children.forEach((child) => child.kill("SIGKILL"));
rmSync(folder, { recursive: true, force: true });
if (failed) console.error(failed);
else console.log("all operations of @foxglove/ws-protocol work");
process.exit(failed ? 1 : 0);
