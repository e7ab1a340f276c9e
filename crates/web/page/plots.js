// Curves of numbers in messages.

import { $, attribute, colour, el, keyed, say, sharp, whileShown } from "./dom.js";
import { Curve, ticks } from "./curve.js";
import { layout } from "./decode.js";
import { serverNow } from "./views.js";

const MOST_CURVES = 4;
const DRAWN_MS = 100;
// A value whose stamp differs more from the server's time is drawn at its arrival: some publishers have other clocks.
const TRUSTED_S = 10;
// Room above the curves of a band, and below all of them.
const [TOP, BOTTOM] = [8, 20];

function shown(value) {
  if (value === undefined || value === null) return "–";
  return String(Number(Math.abs(value) < 1e6 ? value.toPrecision(7) : value.toFixed(3)));
}

const ago = (s) => (s < 0.05 ? "now" : `−${s < 10 ? s.toFixed(1) : Math.round(s)} s`);
const seconds = (s) => (s >= 60 && s % 60 === 0 ? `${s / 60} min` : `${s} s`);

// What numbers measure, as far as their names tell: x, y and z of one vector and elements of one list have one unit.
function kind({ topic, path }) {
  const parts = path.replace(/\[\d+\]/g, "").split(".");
  if (parts.length > 1 && ["x", "y", "z", "w"].includes(parts.at(-1))) parts.pop();
  // Numbers without a message of their own say nothing but the topic.
  return parts.at(-1) === "data" ? `${topic} data` : parts.at(-1);
}

function line(context, ...points) {
  context.beginPath();
  for (const point of points) context.lineTo(...point);
  context.stroke();
}

function remembered() {
  try {
    const list = JSON.parse(localStorage.getItem("plots") ?? "[]");
    const good = (one) => typeof one?.topic === "string" && typeof one.path === "string";
    return list.filter(good).slice(0, MOST_CURVES);
  } catch {
    return [];
  }
}

export class Plots {
  constructor(messages) {
    Object.assign(this, { messages, all: [], known: new Set(), curves: [], stops: new Map(), visible: false, legend: new Map(), cursor: null, turn: 0 });
    this.canvas = $("plots-picture");
    $("plots-topic").addEventListener("change", () => this.offer());
    $("plots-field").addEventListener("change", () => this.ask());
    $("plots-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.add();
    });
    const span = $("plots-span");
    const kept = localStorage.getItem("plots-span");
    if ([...span.options].some(({ value }) => value === kept)) span.value = kept;
    span.addEventListener("change", () => {
      localStorage.setItem("plots-span", span.value);
      this.draw();
    });
    this.point();
    for (const { topic, path } of remembered()) this.begin(topic, path);
    this.offer();
    whileShown($("plots"), (visible) => {
      this.visible = visible;
      this.refresh();
    });
    setInterval(() => this.draw(), DRAWN_MS);
  }

  // Offers the topics with numbers.
  channels(all) {
    const numeric = (channel) => {
      try {
        return layout(channel).numbers().length > 0;
      } catch {
        return false;
      }
    };
    this.known = new Set(all.map(({ topic }) => topic));
    this.all = all.filter(numeric).sort((a, b) => (a.topic < b.topic ? -1 : 1));
    const topics = [...new Set(this.all.map(({ topic }) => topic))];
    const select = $("plots-topic");
    const old = [...select.options].map((o) => o.value);
    if (topics.join("\n") !== old.join("\n")) {
      const before = select.value;
      select.replaceChildren(...topics.map((topic) => el("option", { value: topic }, topic)));
      select.value = topics.includes(before) ? before : (topics[0] ?? "");
    }
    this.offer();
  }

  // Offers the numbers of the chosen topic.
  offer() {
    const channel = this.all.find(({ topic }) => topic === $("plots-topic").value);
    const paths = channel ? layout(channel).numbers() : [];
    const select = $("plots-field");
    if (this.offered !== paths.join("\n")) {
      this.offered = paths.join("\n");
      select.replaceChildren(...paths.map((path) => el("option", { value: path }, path)));
      // Few people look for the number of a message.
      select.value = paths.find((path) => !path.startsWith("header.")) ?? paths[0] ?? "";
      this.ask();
    }
    for (const id of ["plots-topic", "plots-field"]) $(id).disabled = paths.length === 0;
    $("plots-add").disabled = paths.length === 0 || this.curves.length >= MOST_CURVES;
  }

  // Asks for an index for each list in the path.
  ask() {
    const lists = $("plots-field").value.split("[]").slice(0, -1);
    const name = (part) => part.slice(part.lastIndexOf(".") + 1);
    const field = (part) => el("input", { type: "number", min: 0, max: 99999999, step: 1, value: 0, required: "", "aria-label": `Index in ${name(part)}` });
    $("plots-indices").replaceChildren(...lists.map((part) => el("label", {}, `${name(part)}[`, field(part), "]")));
  }

  add() {
    const indices = [...$("plots-indices").querySelectorAll("input")].map((input) => input.value);
    const path = $("plots-field").value.replace(/\[\]/g, () => `[${indices.shift()}]`);
    const topic = $("plots-topic").value;
    if (topic === "" || path === "" || this.curves.length >= MOST_CURVES) return;
    if (!this.curves.some((one) => one.topic === topic && one.path === path)) this.begin(topic, path);
    this.changed();
  }

  begin(topic, path) {
    const used = this.curves.map(({ n }) => n);
    const n = [0, 1, 2, 3].find((free) => !used.includes(free));
    this.curves.push({ topic, path, n, curve: new Curve(), problem: "" });
  }

  remove(one) {
    this.curves = this.curves.filter((other) => other !== one);
    this.changed();
    // The element with the focus is gone.
    $("plots-topic").focus();
  }

  changed() {
    localStorage.setItem("plots", JSON.stringify(this.curves.map(({ topic, path }) => ({ topic, path }))));
    this.offer();
    this.refresh();
    this.draw();
  }

  // Subscribes to the topics of its curves, while they are visible.
  refresh() {
    const wanted = new Set(this.visible ? this.curves.map(({ topic }) => topic) : []);
    for (const [topic, stop] of this.stops) {
      if (wanted.has(topic)) continue;
      stop();
      this.stops.delete(topic);
      for (const one of this.curves) if (one.topic === topic) one.curve.rest();
    }
    for (const topic of wanted) {
      if (this.stops.has(topic)) continue;
      this.stops.set(topic, this.messages.watch(topic, (view, stamp, channel) => this.take(view, stamp, channel)));
    }
  }

  take(view, stamp, channel) {
    const mine = this.curves.filter(({ topic }) => topic === channel.topic);
    const now = serverNow();
    const at = Math.abs(now - stamp) < TRUSTED_S ? stamp : now;
    for (const one of mine) {
      try {
        if (one.channel !== channel) {
          if (!layout(channel).has(one.path)) throw new Error(`${channel.schemaName} has no number ${one.path}`);
          Object.assign(one, { channel, read: layout(channel).reader([one.path]) });
        }
        const [value] = one.read(view);
        one.problem = value === null ? "the list is shorter" : "";
        one.curve.add(at, value);
      } catch (error) {
        one.problem = error.message;
      }
    }
  }

  // The cursor stays at its place on the screen, by mouse, finger or the arrow keys.
  point() {
    const move = (event) => {
      const { left, width } = this.canvas.getBoundingClientRect();
      this.cursor = Math.min(1, Math.max(0, (left + width - this.right - event.clientX) / (width - this.left - this.right)));
      this.draw(true);
    };
    const leave = () => {
      this.cursor = null;
      this.draw(true);
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerdown", move);
    this.canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave());
    document.addEventListener("pointerdown", (event) => {
      if (event.target !== this.canvas && this.cursor !== null) leave();
    });
    this.canvas.addEventListener("blur", leave);
    this.canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: 0.02, ArrowRight: -0.02 }[event.key];
      if (event.key === "Escape") leave();
      if (!step) return;
      event.preventDefault();
      this.cursor = Math.min(1, Math.max(0, (this.cursor ?? 0) + step));
      this.draw(true);
    });
  }

  draw(all = false) {
    const none = this.curves.length === 0;
    $("plots-none").hidden = !none;
    this.canvas.hidden = none;
    if (!this.visible && !all) return;
    const span = Number($("plots-span").value);
    const now = serverNow();
    const at = this.cursor === null ? null : now - this.cursor * span;
    if (!none && this.canvas.offsetParent !== null) this.plot(now, span, at);
    // The numbers change slowly enough to be read.
    this.turn = (this.turn + 1) % 3;
    if (all || none || this.turn === 0) this.tell(span, at);
  }

  plot(now, span, at) {
    const { context, width, height } = sharp(this.canvas);
    context.font = "11px system-ui, sans-serif";
    const bands = this.bands(now - span, height);
    this.left = 10 + Math.max(24, ...bands.flatMap(({ marks }) => marks.map(([, text]) => context.measureText(text).width)));
    this.right = 10;
    const x = (time) => width - this.right - ((now - time) / span) * (width - this.left - this.right);
    for (const band of bands) this.band(context, band, now - span, at, x, this.reach(span));
    context.textBaseline = "alphabetic";
    context.fillStyle = colour("pale");
    const step = [2, 5, 10, 20, 30, 60, 150].find((s) => (s / span) * (width - this.left - this.right) >= 62) ?? span;
    for (let s = 0; s <= span; s += step) {
      context.textAlign = s === span ? "left" : s === 0 ? "right" : "center";
      context.fillText(s === 0 ? "now" : `−${seconds(s)}`, x(now - s), height - 5);
    }
    if (at === null) return;
    context.lineWidth = 1;
    context.strokeStyle = context.fillStyle = colour("ink");
    line(context, [x(at), TOP], [x(at), height - BOTTOM]);
    context.textAlign = this.cursor > 0.5 ? "left" : "right";
    context.fillText(ago(this.cursor * span), x(at) + (this.cursor > 0.5 ? 5 : -5), TOP + 10);
  }

  // Curves with one scale each, one above the other, from top to bottom.
  bands(since, height) {
    const kinds = new Map();
    for (const one of this.curves) kinds.set(kind(one), [...(kinds.get(kind(one)) ?? []), one]);
    this.canvas.dataset.bands = kinds.size;
    const room = (height - BOTTOM) / kinds.size;
    return [...kinds].map(([name, curves], i) => {
      const [top, bottom] = [i * room + TOP, (i + 1) * room];
      const ranges = curves.map(({ curve }) => curve.range(since));
      let low = Math.min(...ranges.map(([least]) => least));
      let high = Math.max(...ranges.map(([, most]) => most));
      if (!(low <= high)) [low, high] = [-1, 1];
      const margin = Math.max((high - low) * 0.06, Math.abs(high) * 1e-9, high === low ? Math.abs(high) * 0.1 || 1 : 0);
      [low, high] = [low - margin, high + margin];
      const marks = ticks(low, high, Math.floor((bottom - top) / 36));
      return { name: kinds.size > 1 ? name : "", curves, top, bottom, marks, y: (value) => bottom - ((value - low) / (high - low)) * (bottom - top) };
    });
  }

  // Draws one band.
  band(context, { name, curves, top, bottom, marks, y }, since, at, x, reach) {
    const [left, right] = [this.left, this.canvas.clientWidth - this.right];
    context.lineWidth = 1;
    context.strokeStyle = colour("line");
    context.fillStyle = colour("pale");
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const [mark, text] of marks) {
      line(context, [left, y(mark)], [right, y(mark)]);
      context.fillText(text, left - 6, y(mark));
    }
    context.save();
    context.beginPath();
    context.rect(left, top - TOP, right - left + 3, bottom - top + TOP + 1);
    context.clip();
    context.lineWidth = 1.5;
    context.lineJoin = "round";
    for (const { curve, n } of curves) {
      context.strokeStyle = context.fillStyle = colour(`c${n}`);
      curve.draw(context, since, x, y);
      const last = curve.near(at ?? curve.times.at(-1), reach);
      if (last) context.fillRect(x(last.at) - 2, y(last.value) - 2, 4, 4);
    }
    context.restore();
    context.textAlign = "left";
    context.fillStyle = colour("pale");
    context.fillText(name, left + 4, top + 4);
  }

  // How far from the cursor a point may be.
  reach(span) {
    return Math.max(1, span / 50);
  }

  // The legend: values at the cursor or the newest ones.
  tell(span, at) {
    const value = ({ curve }) => (at === null ? curve.newest() : curve.near(at, this.reach(span))?.value);
    const make = (one) =>
      el("li", { "data-colour": one.n }, el("span", { class: "what" }), el("span", { class: "value" }), el("button", { type: "button", "aria-label": `Remove ${one.topic} ${one.path}`, onclick: () => this.remove(one) }, "×"));
    keyed($("plots-legend"), this.legend, this.curves, (one) => `${one.n} ${one.topic} ${one.path}`, make, (node, one) => {
      const [what, number] = node.children;
      const problem = this.known.has(one.topic) ? one.problem : "not on this bus";
      say(what, `${one.topic} ${one.path}${problem ? `: ${problem}` : ""}`);
      say(number, shown(value(one)));
    });
    const texts = this.curves.map((one) => `${one.topic} ${one.path} ${shown(value(one))}`);
    const when = at === null ? `Plot of the last ${seconds(span)}, newest` : `At ${ago(this.cursor * span)}`;
    attribute(this.canvas, "aria-label", `${when}: ${texts.join(", ")}`);
  }
}
