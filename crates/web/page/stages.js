// Where the age of a picture comes from, stage by stage (decision 354). Only what is measured is shown.

import { $, el, fixed, keyed, say } from "./dom.js";
import { quantile } from "./driver.js";

// Pictures whose median is shown, and those that can be saved.
const SHOWN = 30;
const KEPT = 3000;
// Clocks are good enough that agree to this, or to half of what is measured with them.
const AGREES_MS = 10;
// From this difference on, the clocks of two hosts are said to differ.
const DIFFERS_MS = 50;
// Differences of one clock that are below or above this are none.
const [LEAST_MS, MOST_MS] = [-1, 10000];

const STAGES = [
  ["capture", "camera, encoder"], ["link", "link: queue, air"], ["bus", "bus"], ["server", "server's queue"],
  ["browser", "to the browser"], ["decode", "decode"], ["draw", "draw"],
];
const TIMES = ["captured", "published", "taken", "sent", "received", "decoded", "drawn"];

// What the links of this host know about a topic's way to it; null if it crosses none.
export function crossing(links, topic) {
  const topics = Object.values(links).flatMap(({ view }) => Object.values(view.topics));
  const ways = topics.filter((t) => t.direction === "in" && t.topic === topic && t.state === "ready");
  if (ways.length === 0) return null;
  const [{ peer, source, link_delay_ms: ms, link_delay_error_ms: error }] = ways;
  if (ways.length > 1) return { ms: null, why: "Several peers send this topic, so its way over the link is not known." };
  if (source && source !== peer) return { ms: null, why: `Of the way over ${peer}, only the last link is measured.` };
  return known(ms ?? null, error ?? 0, "The clocks of both links", "The link has measured nothing yet.");
}

// A duration that was measured by two clocks which agree to `error`, in ms.
function known(ms, error, clocks, nothing) {
  if (ms === null) return { ms, error, why: nothing };
  if (error > AGREES_MS && error > ms / 2) return { ms: null, error, why: `${clocks} agree only to ± ${fixed(error, 0)} ms.` };
  return { ms, error, why: "" };
}

// A duration by one clock.
const between = (from, to) => {
  const ms = (to - from) * 1000;
  return ms >= LEAST_MS && ms <= MOST_MS ? Math.max(0, ms) : null;
};

// The stages of a picture. Its times are in seconds: `captured` and `stamp` by the publisher's clock, `taken` and `sent` by the
// server's; in ms by this page's: `received`, `decoded`, `drawn`. `way` is what `crossing` returns, `clock` how far this page's is
// ahead of the server's and how well that is known, in seconds; null if it is not.
export function measure({ captured, stamp, taken, sent, received, decoded, drawn }, way, clock) {
  const here = (ms) => (clock ? ms / 1000 - clock.offset : null);
  const arrived = clock && sent ? (here(received) - sent) * 1000 : null;
  const browser = known(arrived === null ? null : Math.max(0, arrived), (clock?.error ?? 0) * 1000, "This page's clock and the server's", "");
  const capture = captured > 0 ? between(captured, stamp) : null;
  const ms = {
    capture,
    link: way?.ms ?? null,
    bus: way || !taken ? null : between(stamp, taken),
    server: taken ? between(taken, sent) : null,
    browser: browser.ms,
    decode: decoded - received,
    draw: drawn - decoded,
  };
  const undated = captured > 0 ? "Its times of capture are not by the publisher's clock." : "Its messages have no time of capture.";
  // By the times of day of two hosts, and by the clocks that their links compare.
  const apart = way && way.ms !== null && taken ? (taken - stamp) * 1000 - way.ms : null;
  return {
    ms,
    apart,
    errors: { link: way?.error ?? null, browser: browser.error },
    times: { captured, published: stamp, taken, sent, received: here(received), decoded: here(decoded), drawn: here(drawn) },
    why: [capture === null ? undated : "", way?.why ?? "", browser.why].filter(Boolean),
  };
}

const middle = (values) => quantile(values.filter((value) => value !== null), 0.5);

export class Stages {
  constructor(name) {
    Object.assign(this, { name, topic: null, pictures: [], cells: new Map() });
    $(`${name}-save`).addEventListener("click", () => this.save());
  }

  // A picture of a topic was drawn.
  add(topic, picture) {
    if (topic !== this.topic) Object.assign(this, { topic, pictures: [] });
    this.pictures.push(picture);
    if (this.pictures.length > KEPT) this.pictures.shift();
  }

  tell() {
    const last = this.pictures.slice(-SHOWN);
    $(`${this.name}-stages`).hidden = last.length === 0;
    if (last.length === 0) return;
    const found = STAGES.map(([stage, title]) => [stage, title, middle(last.map(({ ms }) => ms[stage]))]);
    const cells = found.filter(([, , ms]) => ms !== null);
    // One of link and bus is on the way.
    if (cells.length === STAGES.length - 1) cells.push(["all", "together", cells.reduce((sum, [, , ms]) => sum + ms, 0)]);
    const make = ([stage, title]) => el("div", { "data-stage": stage }, el("dt", {}, title), el("dd"));
    keyed($(`${this.name}-stages-list`), this.cells, cells, ([stage]) => stage, make, (node, [, , ms]) => {
      say(node.lastElementChild, `${fixed(ms, ms < 10 ? 1 : 0)} ms`);
    });
    const notes = [...last.at(-1).why];
    const apart = middle(last.map((picture) => picture.apart));
    if (Math.abs(apart) > DIFFERS_MS) notes.push(`The clocks of both hosts differ by ${fixed(Math.abs(apart), 0)} ms, and the age above is off by that.`);
    say($(`${this.name}-stages-note`), notes.join(" "));
  }

  // What is kept, as CSV. What is not known stays empty.
  text() {
    const cell = (value, digits) => (typeof value === "number" ? value.toFixed(digits) : "");
    const errors = ["link", "browser"];
    const head = [...TIMES.map((name) => `${name}_s`), ...STAGES.map(([name]) => `${name}_ms`), ...errors.map((name) => `${name}_error_ms`)];
    const rows = this.pictures.map(({ times, ms, errors: of }) => [
      ...TIMES.map((name) => cell(times[name], 6)),
      ...STAGES.map(([name]) => cell(ms[name], 3)),
      ...errors.map((name) => cell(of[name], 3)),
    ]);
    return `${[head, ...rows].map((row) => row.join(",")).join("\n")}\n`;
  }

  save() {
    const url = URL.createObjectURL(new Blob([this.text()], { type: "text/csv" }));
    const name = (this.topic ?? "").replace(/\W+/g, "_").replace(/^_/, "");
    el("a", { href: url, download: `${name}_stages.csv` }).click();
    // The browser has begun to read it by then.
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }
}
