// Rates over time, and the plot of the air by topic.

import { $, attribute, colour, el, keyed, percent, say, sharp } from "./dom.js";

const MOST = 600;
const COLUMNS = ["hz", "air", "lost_hz", "delay_ms"];
// Topics with a colour of their own; the others share one.
const COLOURS = 7;

// Samples of all topics at the same times; missing samples are null.
export class History {
  constructor() {
    this.clear();
  }

  clear() {
    this.times = [];
    this.all = new Map();
  }

  // The history that the server keeps.
  load(past) {
    this.times = past.times.slice(-MOST);
    this.all = new Map();
    const gap = (n) => Array(n).fill(null);
    for (const [name, series] of Object.entries(past.series)) {
      const one = {};
      for (const column of COLUMNS) {
        const values = gap(series.first).concat(series[column]);
        one[column] = values.concat(gap(past.times.length - values.length)).slice(-MOST);
      }
      this.all.set(name, one);
    }
  }

  add(state) {
    if (state.at <= (this.times.at(-1) ?? 0)) return;
    this.times.push(state.at);
    const sample = new Map();
    for (const [link, { answers, view }] of Object.entries(state.links)) {
      if (!answers) continue;
      for (const [id, t] of Object.entries(view.topics)) {
        const hz = t.direction === "out" ? t.sent_hz : t.delivered_hz;
        sample.set(`${link} ${id}`, { hz, air: t.air_share, lost_hz: t.lost_hz, delay_ms: t.delay_mean_ms });
      }
    }
    for (const name of sample.keys()) {
      if (this.all.has(name)) continue;
      const empty = COLUMNS.map((column) => [column, Array(this.times.length - 1).fill(null)]);
      this.all.set(name, Object.fromEntries(empty));
    }
    for (const [name, one] of this.all) {
      const now = sample.get(name);
      for (const column of COLUMNS) one[column].push(now?.[column] ?? null);
      if (this.times.length > MOST) for (const column of COLUMNS) one[column].shift();
      if (!now && one.hz.every((value) => value === null)) this.all.delete(name);
    }
    if (this.times.length > MOST) this.times.shift();
  }

  series(link, id) {
    return this.all.get(`${link} ${id}`);
  }
}

const legend = new Map();

// Draws the share of the air that each topic of a link used.
export function drawAir(history, link, topics) {
  const canvas = $("air-plot");
  if (canvas.offsetParent === null) return;
  const span = Number($("air-span").value);
  const now = history.times.at(-1) ?? 0;
  const from = history.times.findIndex((at) => at >= now - span);
  const times = history.times.slice(Math.max(0, from));
  const sum = (list) => list.reduce((total, value) => total + (value ?? 0), 0);
  const all = Object.entries(topics)
    .filter(([, t]) => t.direction === "out")
    .map(([id, t]) => ({ id, t, air: (history.series(link, id)?.air ?? []).slice(-times.length) }))
    .filter(({ air }) => air.length === times.length)
    .sort((a, b) => sum(b.air) - sum(a.air));
  const rest = all.splice(COLOURS);
  if (rest.length > 0) {
    const air = times.map((_, i) => sum(rest.map((one) => one.air[i])));
    all.push({ id: "others", t: { topic: `${rest.length} others`, air_share: sum(rest.map((r) => r.t.air_share)) }, air });
  }
  const { context, width, height } = sharp(canvas);
  const totals = times.map((_, i) => sum(all.map((one) => one.air[i])));
  const most = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1].find((top) => top >= Math.max(0, ...totals)) ?? Math.max(...totals);
  const [left, right, top, bottom] = [48, 10, 8, 20];
  const x = (at) => width - right - ((now - at) / span) * (width - left - right);
  const y = (share) => height - bottom - (share / most) * (height - top - bottom);
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    context.strokeStyle = colour("line");
    context.beginPath();
    context.moveTo(left, y(part * most));
    context.lineTo(width - right, y(part * most));
    context.stroke();
    context.fillStyle = colour("pale");
    context.fillText(`${Number((part * most * 100).toPrecision(3))} %`, left - 6, y(part * most));
  }
  context.textBaseline = "alphabetic";
  for (const part of [0, 0.5, 1]) {
    context.textAlign = part === 1 ? "left" : part === 0 ? "right" : "center";
    context.fillText(part === 0 ? "now" : `−${(span * part) % 60 ? span * part + " s" : (span * part) / 60 + " min"}`, x(now - span * part), height - 5);
  }
  const base = times.map(() => 0);
  all.forEach(({ air }, n) => {
    const lower = base.slice();
    air.forEach((value, i) => (base[i] += value ?? 0));
    context.fillStyle = colour(`c${Math.min(n, COLOURS)}`);
    context.beginPath();
    times.forEach((at, i) => context.lineTo(x(at), y(base[i])));
    for (let i = times.length - 1; i >= 0; i--) context.lineTo(x(times[i]), y(lower[i]));
    context.fill();
  });
  const items = all.map((one, n) => ({ ...one, n }));
  keyed($("air-legend"), legend, items, ({ id }) => id, () => el("li"), (node, { t, n }) => {
    attribute(node, "data-colour", n);
    say(node, `${t.topic} ${percent(t.air_share)}`);
  });
  const parts = items.map(({ t }) => `${t.topic} ${percent(t.air_share)}`);
  attribute(canvas, "aria-label", parts.length ? `Air used now: ${parts.join(", ")}` : "No topic uses the air");
}
