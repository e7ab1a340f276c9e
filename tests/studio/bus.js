// Two hosts of this machine, a robot and a base, each with a bus of its own, joined by a link over loopback.

import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const GRACE_MS = 10_000;

// The programs of the test. `folder` is where their buses and files are.
export class Hosts {
  constructor(program, folder) {
    this.program = program;
    this.folder = folder;
    this.children = new Set();
    this.files = 0;
  }

  // Starts `ropewalk` on a host.
  start(host, ...args) {
    mkdirSync(join(this.folder, host), { recursive: true });
    const env = { ...process.env, ROPEWALK_RUNTIME_DIR: join(this.folder, host) };
    const child = spawn(this.program, args, { cwd: this.folder, env, stdio: ["ignore", "pipe", "pipe"] });
    child.errors = "";
    child.stderr.on("data", (bytes) => (child.errors += bytes));
    child.output = "";
    child.stdout.on("data", (bytes) => (child.output += bytes));
    this.children.add(child);
    child.on("exit", () => this.children.delete(child));
    return child;
  }

  // What a program of a host prints until it ends.
  async run(host, ...args) {
    const child = this.start(host, ...args);
    const [code] = await once(child, "close");
    if (code !== 0) throw new Error(`ropewalk ${args.join(" ")}: ${child.errors}`);
    return child.output;
  }

  // Publishes messages on a host in turn, each an object that is also YAML.
  publish(host, topic, type, rate, ...messages) {
    const file = join(this.folder, `${this.files++}.yaml`);
    writeFileSync(file, messages.map((message) => JSON.stringify(message)).join("\n---\n"));
    return this.start(host, "topic", "pub", topic, type, "--file", file, "--rate", String(rate));
  }

  // Joins the hosts with a link. `topics` are `[name, who sends it, priority]`.
  async link(topics) {
    const ports = { robot: await freePort(), base: await freePort() };
    for (const [host, peer] of [["robot", "base"], ["base", "robot"]]) {
      const listed = topics.map(([name, from, priority]) => (from === host ? { name, direction: "out", priority } : { name, direction: "in" }));
      const config = {
        host,
        radio: { bind: `127.0.0.1:${ports[host]}`, rate: "54Mbit/s" },
        peers: [{ name: peer, address: `127.0.0.1:${ports[peer]}` }],
        topics: listed,
      };
      writeFileSync(join(this.folder, `${host}.yaml`), JSON.stringify(config));
      this.start(host, "link", `${host}.yaml`);
    }
  }

  // Ends all programs.
  async stop() {
    const left = [...this.children];
    const gone = left.map((child) => once(child, "exit"));
    left.forEach((child) => child.kill("SIGINT"));
    const timer = setTimeout(() => left.forEach((child) => child.kill("SIGKILL")), GRACE_MS);
    await Promise.all(gone);
    clearTimeout(timer);
  }
}

// The first match in a line of a stream.
export function line(stream, pattern) {
  return new Promise((resolve) => {
    createInterface({ input: stream }).on("line", (text) => {
      const found = text.match(pattern);
      if (found) resolve(found[0]);
    });
  });
}

async function freePort() {
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address();
  socket.close();
  return port;
}
