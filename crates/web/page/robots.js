// Several robots side by side: for each the link to it, its picture and its telemetry; and STOP for all.

import { $, attribute, el, fixed, keyed, say } from "./dom.js";
import { Camera } from "./views.js";

// A single robot has the large picture.
const FEWEST = 2;
const MOST = 12;
const STOPS = 5;
const STOP_EVERY_MS = 100;
const SHOWN_MS = 10000;

export const shown = (name) => name || "robot";

// Whether a robot can be commanded, and a line about it.
export function reach({ link, peer, state, telemetry_hz: hz }, links) {
  const telemetry = `telemetry ${fixed(hz, hz < 10 ? 1 : 0)} messages/s`;
  if (!link) return [true, `on this host's bus · ${telemetry}`];
  const { answers, view } = links[link];
  const trip = view.peers[peer]?.round_trip_ms;
  const isUp = answers && state === "ready";
  const way = isUp ? "up" : answers ? state.replace("_", " ") : "the link does not answer";
  return [isUp, `${peer} ${way} · ${isUp && trip !== undefined ? `round trip ${fixed(trip, trip < 10 ? 1 : 0)} ms · ` : ""}${telemetry}`];
}

// The host from which each received topic comes.
function sources(links) {
  const topics = Object.values(links).flatMap(({ view }) => Object.values(view.topics));
  return new Map(topics.filter((t) => t.direction === "in").map((t) => [t.topic, t.source || t.peer]));
}

class Tile {
  constructor(name, messages, drive) {
    const id = `robot-${name}`;
    const part = (tag, what, more = {}) => el(tag, { id: `${id}-${what}`, ...more });
    this.status = el("p");
    this.button = el("button", { type: "button", "aria-label": `Drive ${shown(name)}`, onclick: () => drive(name, this.camera.topic) }, "Drive");
    const topic = part("select", "topic", { "aria-label": `Camera of ${shown(name)}` });
    const canvas = part("canvas", "picture", { role: "img", "aria-label": "No picture yet", width: 16, height: 9 });
    const view = el("div", { class: "view" }, canvas, part("ul", "facts", { class: "facts" }), part("p", "problem", { class: "problem" }));
    this.node = el("li", { id }, el("div", { class: "bar" }, el("h3", {}, shown(name)), topic, this.button), view, this.status);
    $("robots-list").append(this.node);
    this.camera = new Camera(messages, id, `no camera of ${shown(name)}`);
  }
}

export class Robots {
  // `drive` sends to the robots; `choose(robot, topic)` drives one, and shows a topic as the large picture unless it is null.
  constructor(messages, drive, choose) {
    Object.assign(this, { messages, drive, choose, tiles: new Map(), nodes: new Map(), channels: [], stopping: null, outcomes: new Map() });
    drive.reported = (message) => this.hear(message);
    // Acts on press, not on release.
    for (const press of ["pointerdown", "click"]) $("stop-all").addEventListener(press, () => this.stop());
  }

  show({ links, robots }) {
    const all = Object.entries(robots).sort(([a], [b]) => a.localeCompare(b));
    const few = all.length < FEWEST;
    $("robots").hidden = few;
    $("stop-all").hidden = few;
    say($("robots-more"), all.length > MOST ? `${all.length - MOST} more` : "");
    const seen = few ? [] : all.slice(0, MOST);
    for (const [name, tile] of this.tiles) {
      if (seen.some(([other]) => other === name)) continue;
      tile.camera.close();
      this.tiles.delete(name);
    }
    const make = ([name]) => {
      const tile = new Tile(name, this.messages, this.choose);
      this.tiles.set(name, tile);
      return tile.node;
    };
    const from = sources(links);
    keyed($("robots-list"), this.nodes, seen, ([name]) => name, make, (node, [name, robot]) => {
      const tile = this.tiles.get(name);
      const [isUp, text] = reach(robot, links);
      say(tile.status, text);
      attribute(node, "data-state", isUp ? "up" : "down");
      tile.button.hidden = !this.drive.robots.includes(name);
      // A topic is a robot's by its name, or because no other robot is at the host from which it comes.
      const isAlone = robot.peer && all.filter(([, { peer }]) => peer === robot.peer).length === 1;
      const owns = (topic) => topic.startsWith(`/${name}/`) || (isAlone && from.get(topic) === robot.peer);
      tile.camera.channels(this.channels.filter(({ topic }) => owns(topic)));
    });
  }

  // STOP for all that pages of this server move; several times, since one may get lost.
  stop() {
    clearInterval(this.stopping);
    this.outcomes.clear();
    this.drive.stop();
    let left = STOPS;
    const send = () => {
      if (!this.drive.tell({ op: "stop_all" })) this.tell("STOP is not sent: no connection to the server");
      if (--left === 0) clearInterval(this.stopping);
    };
    this.stopping = setInterval(send, STOP_EVERY_MS);
    send();
  }

  hear({ op, robots, robot, outcome, text }) {
    if (op === "stopping") for (const name of robots) this.outcomes.set(name, this.outcomes.get(name) ?? "sent");
    // Once executed, it stands.
    else if (this.outcomes.get(robot) !== "executed") this.outcomes.set(robot, outcome === "executed" ? outcome : text || outcome);
    const others = this.drive.robots.filter((name) => !this.outcomes.has(name)).map((name) => [name, "not driven from this server"]);
    this.tell(`STOP: ${[...this.outcomes, ...others].map(([name, what]) => `${shown(name)}: ${what}`).join("; ")}`);
  }

  // An unconfirmed STOP stays to be read.
  tell(text) {
    say($("stop-status"), text);
    clearTimeout(this.timer);
    const isDone = [...this.outcomes.values()].every((outcome) => outcome === "executed");
    if (isDone) this.timer = setTimeout(() => say($("stop-status"), ""), SHOWN_MS);
  }
}
