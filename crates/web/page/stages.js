// Shows how each stage contributes to the age of a picture (decision 354). Only measured stages are shown.

import { $, el, fixed, keyed, say } from "./dom.js";
import { quantile } from "./driver.js";

// The number of pictures for the shown medians, and the number that can be saved.
const SHOWN = 30;
const KEPT = 3000;
// A duration is shown if its clocks agree to within this, or to within half of the duration.
const AGREES_MS = 10;
// The page reports that the clocks of two hosts differ if they do by more than this.
const DIFFERS_MS = 50;
// A difference outside this range does not come from two readings of the same clock.
const [LEAST_MS, MOST_MS] = [-1, 10000];

const STAGES = [
  ["capture", "camera, encoder"], ["link", "link: queue, air"], ["bus", "bus"], ["server", "server's queue"],
  ["browser", "to the browser"], ["decode", "decode"], ["draw", "draw"],
];
const TIMES = ["captured", "published", "taken", "sent", "received", "decoded", "drawn"];

// The time that a topic takes over this host's links; null if it crosses no link.
export function crossing(links, topic) {
  const topics = Object.values(links).flatMap(({ view }) => Object.values(view.topics));
  const ways = topics.filter((t) => t.direction === "in" && t.topic === topic && t.state === "ready");
  if (ways.length === 0) return null;
  const [{ peer, source, link_delay_ms: ms, link_delay_error_ms: error }] = ways;
  if (ways.length > 1) return { ms: null, why: "Several peers send this topic, so its time on the link is unknown." };
  if (source && source !== peer) return { ms: null, why: `The path goes over ${peer}; only its last link is measured.` };
  return known(ms ?? null, error ?? 0, "The clocks of both links", "The link has no measurement yet.");
}

// A duration measured with two clocks that agree to within `error`, in ms.
function known(ms, error, clocks, nothing) {
  if (ms === null) return { ms, error, why: nothing };
  if (error > AGREES_MS && error > ms / 2) return { ms: null, error, why: `${clocks} agree only to ± ${fixed(error, 0)} ms.` };
  return { ms, error, why: "" };
}

// A duration in ms between two readings of one clock in seconds; null if they cannot be from one clock.
const between = (from, to) => {
  const ms = (to - from) * 1000;
  return ms >= LEAST_MS && ms <= MOST_MS ? Math.max(0, ms) : null;
};

// The stages of a picture. `captured` and `stamp` are in seconds of the publisher's clock, `taken` and `sent` in seconds of the
// server's, `received`, `decoded` and `drawn` in ms of this page's. `way` is the result of `crossing`. `clock` has the `offset`
// of this page's clock from the server's and its `error`, both in seconds; null if they are unknown.
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
  const undated = captured > 0 ? "Its times of capture are not from the publisher's clock." : "Its messages have no time of capture.";
  // The time of day of the two hosts, against the clocks that their links compare.
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
    // A picture crosses either a link or only the bus, so one stage is always missing.
    if (cells.length === STAGES.length - 1) cells.push(["all", "together", cells.reduce((sum, [, , ms]) => sum + ms, 0)]);
    const make = ([stage, title]) => el("div", { "data-stage": stage }, el("dt", {}, title), el("dd"));
    keyed($(`${this.name}-stages-list`), this.cells, cells, ([stage]) => stage, make, (node, [, , ms]) => {
      say(node.lastElementChild, `${fixed(ms, ms < 10 ? 1 : 0)} ms`);
    });
    const notes = [...last.at(-1).why];
    const apart = middle(last.map((picture) => picture.apart));
    if (Math.abs(apart) > DIFFERS_MS) notes.push(`The clocks of the two hosts differ by ${fixed(Math.abs(apart), 0)} ms, so the age above is wrong by as much.`);
    say($(`${this.name}-stages-note`), notes.join(" "));
  }

  // The kept pictures as CSV. Unknown values stay empty.
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
    // By then the browser has started to read it.
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }
}
