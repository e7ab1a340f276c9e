// The table of topics that cross the link.

import { $, attribute, colour, el, fixed, keyed, percent, say, sharp } from "./dom.js";

const MOST = 127;

// Columns: heading, classes, and what they are sorted by.
const COLUMNS = [
  ["topic", "text", (t) => t.topic],
  ["priority", "", (t) => t.priority],
  ["offered → through, Hz", "roomy", (t) => through(t)],
  ["delivered", "", (t) => lately(t)],
  ["Mbit/s", "roomy", (t) => t.mbit_s],
  ["delay, ms", "roomy delay", (t) => t.delay_mean_ms],
  ["p99", "roomy delay", (t) => t.delay_p99_ms],
  ["last minute", "roomy wide", null],
  ["jitter p99", "roomy wide delay", (t) => t.jitter_p99_ms],
  ["in flight", "roomy wide", (t) => t.in_flight],
  ["lost/s", "", (t) => t.lost_hz],
  ["why", "text roomy", null],
  ["air", "roomy", (t) => t.air_share],
];

const through = (t) => (t.direction === "out" ? t.sent_hz : t.delivered_hz);

// The delivered share of the recently offered messages.
function lately(t) {
  const all = t.direction === "out" ? t.offered_hz : t.delivered_hz + t.lost_hz;
  if (!(all > 0)) return undefined;
  return Math.max(0, Math.min(1, 1 - t.lost_hz / all));
}

// Receivers, or the source; with the next peer if that is another host.
export function otherEnd(t) {
  const ends = t.direction === "out" ? t.to : t.source ? [t.source] : [];
  if (ends.length === 0 || (ends.length === 1 && ends[0] === t.peer)) return t.peer;
  return `${ends.join(", ")} via ${t.peer}`;
}

// The final receiver if there is one, whichever relay leads to it.
export const receiver = (t) => (t.to.length === 1 ? t.to[0] : t.peer);

export const words = (word) => word.replaceAll("_", " ");

// Calls `change(id, topic, priority)` and `undo()`.
export class Topics {
  constructor(actions) {
    Object.assign(this, { actions, rows: new Map(), chosen: null, order: 1, falling: true, pending: new Map(), before: {} });
    this.body = $("topics-table").tBodies[0];
    const head = $("topics-table").tHead.rows[0];
    this.heads = COLUMNS.map(([title, classes, by], column) => {
      const sort = () => this.sort(column);
      const inside = by ? el("button", { type: "button", onclick: sort }, title) : title;
      return head.appendChild(el("th", { scope: "col", class: classes }, inside));
    });
    $("topics-filter").addEventListener("input", () => this.draw());
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.detail = el("tr", { class: "detail" }, el("td", { colspan: COLUMNS.length }, el("dl")));
  }

  sort(column) {
    this.falling = this.order === column ? !this.falling : column !== 0;
    this.order = column;
    this.draw();
  }

  // Shows the topics of a link; `mayChange` is whether this page may change them.
  show(link, topics, host, mayChange, history) {
    this.before = this.link === link ? (this.topics ?? {}) : {};
    if (this.link !== link) this.why = new Map();
    Object.assign(this, { link, topics, host, mayChange, history });
    for (const [id, t] of Object.entries(topics)) {
      const old = this.before[id]?.drops;
      if (!old) continue;
      const more = Object.entries(t.drops).filter(([reason, n]) => n > (old[reason] ?? 0));
      this.why.set(id, more.sort((a, b) => b[1] - (old[b[0]] ?? 0) - a[1] + (old[a[0]] ?? 0)).map(([reason]) => words(reason)));
      if (this.pending.get(id) === t.priority) this.pending.delete(id);
    }
    // The next state changes the objects in place.
    this.topics = structuredClone(topics);
    this.draw();
  }

  draw() {
    if (!this.topics) return;
    const filter = $("topics-filter").value.trim().toLowerCase();
    const all = Object.entries(this.topics);
    const shown = all.filter(([, t]) => t.topic.toLowerCase().includes(filter));
    const by = COLUMNS[this.order][2];
    const sign = this.falling ? -1 : 1;
    shown.sort(([, a], [, b]) => {
      const [x, y] = [by(a) ?? -1, by(b) ?? -1];
      const order = typeof x === "string" ? x.localeCompare(y) : x - y;
      return sign * order || a.topic.localeCompare(b.topic);
    });
    this.heads.forEach((head, column) => {
      attribute(head, "aria-sort", column === this.order ? (this.falling ? "descending" : "ascending") : null);
    });
    // If everything is sent, this host knows no delays.
    $("topics-table").classList.toggle("nodelay", all.every(([, t]) => t.delay_mean_ms === undefined));
    this.detail.remove();
    keyed(this.body, this.rows, shown, ([id]) => id, ([id]) => this.row(id), (row, [id, t]) => this.fill(row, id, t));
    requestAnimationFrame(() => this.sparks());
    const row = this.rows.get(this.chosen);
    if (row) {
      row.after(this.detail);
      this.explain(this.topics[this.chosen]);
    }
    const count = all.length === shown.length ? `${all.length} cross this link` : `${shown.length} of ${all.length}`;
    say($("topics-count"), count);
    const none = $("topics-none");
    none.hidden = all.length > 0;
    say(none, this.link ? "No topic crosses this link yet." : "No link runs on this host. The topics of its bus are below.");
    $("topics-table").hidden = all.length === 0;
  }

  row(id) {
    const cells = COLUMNS.map(([, classes]) => el("td", { class: classes }));
    const choose = () => this.choose(id);
    const name = el("button", { type: "button", class: "name", onclick: choose });
    cells[0].append(name, " ", el("span", { class: "end" }), " ", el("span", { class: "state" }));
    const step = (sign, by) => el("button", { type: "button", onclick: () => this.step(id, by) }, sign);
    cells[1].append(el("span", { class: "steps" }, step("−", -1), el("output"), step("+", 1)));
    cells[3].append(bar());
    cells[7].append(el("canvas", { class: "spark", "aria-hidden": "true" }));
    cells[12].append(bar());
    return el("tr", { "data-id": id }, ...cells);
  }

  fill(row, id, t) {
    const cells = row.cells;
    const [name, end, state] = cells[0].children;
    const arrow = t.direction === "out" ? "→" : "←";
    say(name, t.topic);
    attribute(name, "aria-expanded", this.chosen === id);
    say(end, `${arrow} ${otherEnd(t)}`);
    const flows = t.state === "ready" || t.state === "relayed";
    say(state, flows ? "" : words(t.state));
    row.className = `${flows ? "" : "stalled"} ${this.chosen === id ? "chosen" : ""}`.trim();

    const priority = this.pending.get(id) ?? t.priority;
    const [less, output, more] = cells[1].firstElementChild.children;
    const may = this.may(t);
    say(output, String(priority));
    attribute(cells[1], "title", may ? null : this.whyNot(t));
    less.hidden = more.hidden = !may;
    less.disabled = priority <= 0;
    more.disabled = priority >= MOST;
    attribute(less, "aria-label", `Lower the priority of ${t.topic} to ${priority - 1}`);
    attribute(more, "aria-label", `Raise the priority of ${t.topic} to ${priority + 1}`);

    say(cells[2], t.offered_hz === undefined ? fixed(through(t), 1) : `${fixed(t.offered_hz, 1)} → ${fixed(through(t), 1)}`);
    const share = lately(t);
    fillBar(cells[3].firstElementChild, share, "delivered lately");
    say(cells[4], fixed(t.mbit_s, 3));
    say(cells[5], fixed(t.delay_mean_ms, 1));
    say(cells[6], fixed(t.delay_p99_ms, 1));
    say(cells[8], fixed(t.jitter_p99_ms, 1));
    say(cells[9], t.in_flight === undefined ? "–" : String(t.in_flight));
    say(cells[10], t.lost_hz > 0 ? fixed(t.lost_hz, 1) : "–");
    cells[10].classList.toggle("lossy", t.lost_hz > 0);
    say(cells[11], t.lost_hz > 0 ? (this.why.get(id) ?? []).slice(0, 2).join(", ") : "");
    fillBar(cells[12].firstElementChild, t.direction === "out" ? t.air_share : undefined, "of the air", true);
  }

  may(t) {
    return this.mayChange && t.direction === "out" && t.source === this.host;
  }

  whyNot(t) {
    return t.direction === "in" || t.source !== this.host ? `its sender ${t.source} sets the priority` : "your role may only look";
  }

  step(id, by) {
    const t = this.topics[id];
    if (!t || !this.may(t)) return;
    const from = this.pending.get(id) ?? t.priority;
    const to = Math.max(0, Math.min(MOST, from + by));
    if (to === from) return;
    this.pending.set(id, to);
    this.draw();
    this.actions.change(id, t, from, to);
  }

  // A change failed, or was undone.
  settled(id) {
    this.pending.delete(id);
    this.draw();
  }

  choose(id) {
    this.chosen = this.chosen === id ? null : id;
    this.draw();
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const row = event.target.closest("tr[data-id]");
    if (!row) return;
    const beside = (which) => {
      let other = row[which];
      while (other && !other.dataset.id) other = other[which];
      other?.querySelector(".name").focus();
    };
    switch (event.key) {
      case "+":
      case "=":
        this.step(row.dataset.id, 1);
        break;
      case "-":
        this.step(row.dataset.id, -1);
        break;
      case "ArrowUp":
        beside("previousElementSibling");
        break;
      case "ArrowDown":
        beside("nextElementSibling");
        break;
      case "u":
        this.actions.undo();
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  // Losses by reason, at both ends, and settings.
  explain(t) {
    const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
    const facts = [];
    if (t.offered !== undefined) {
      const lost = Object.values(t.drops).reduce((sum, n) => sum + n, 0);
      const sum = `offered ${t.offered} = delivered ${t.delivered} + lost ${lost} + in flight ${t.in_flight}`;
      facts.push(fact("since the link began", `${sum} · ${percent(t.delivery)} delivered`));
    }
    const list = (drops) => Object.entries(drops).map(([reason, n]) => `${words(reason)} ${n}`).join(", ") || "nothing";
    facts.push(fact("lost in all:", list(t.drops)));
    const sender = t.source === this.host ? "here" : `at ${t.source}`;
    const there = t.direction === "out" ? `at ${otherEnd(t)}` : "here";
    if (t.drops_at_sender) facts.push(fact(`lost ${sender}, before or while sending:`, list(t.drops_at_sender)));
    if (t.drops_at_receiver) facts.push(fact(`lost on the way, seen ${there}:`, list(t.drops_at_receiver)));
    if (t.not_taken > 0) facts.push(fact("too slow subscribers there lost", String(t.not_taken)));
    const s = t.settings;
    if (s) {
      const rate = s.rate_limit_hz === undefined ? "none" : `${s.rate_limit_hz} Hz`;
      const deadline = s.deadline_ms === undefined ? "none" : `${s.deadline_ms} ms`;
      facts.push(fact("settings:", `depth ${s.depth}, deadline ${deadline}, rate limit ${rate}, every ${s.every}, least share ${percent(s.min_share, 0)}`));
    }
    const list_ = this.detail.firstElementChild.firstElementChild;
    const text = facts.map((f) => f.textContent).join("\n");
    if (this.explained !== text) list_.replaceChildren(...facts);
    this.explained = text;
  }

  // Draws the rates of the rows in view, all at once: each measuring of the page after a change of it takes long.
  sparks() {
    const colours = { good: colour("good"), bad: colour("bad") };
    const canvases = [...this.rows].map(([id, row]) => [id, row.cells[7].firstElementChild]);
    const seen = canvases.filter(([, canvas]) => {
      const { top, bottom, height } = canvas.getBoundingClientRect();
      return height > 0 && bottom > 0 && top < innerHeight;
    });
    for (const [id, canvas] of seen) this.spark(canvas, id, colours);
  }

  spark(canvas, id, colours) {
    const { context, width, height } = sharp(canvas);
    const series = this.history.series(this.link, id);
    const hz = (series?.hz ?? []).slice(-60);
    const lost = (series?.lost_hz ?? []).slice(-60);
    const most = Math.max(1e-9, ...hz.filter(Number.isFinite));
    const place = (i) => width - (hz.length - 1 - i) * (width / 60) - 1;
    context.strokeStyle = colours.good;
    context.lineWidth = 1.2;
    context.beginPath();
    hz.forEach((value, i) => {
      if (Number.isFinite(value)) context.lineTo(place(i), height - 2 - (value / most) * (height - 4));
    });
    context.stroke();
    context.fillStyle = colours.bad;
    lost.forEach((value, i) => {
      if (value > 0) context.fillRect(place(i) - 1, height - 4, 2, 4);
    });
  }
}

const bar = () => el("span", { class: "share", role: "img" }, el("i"));

function fillBar(node, share, what, plain = false) {
  const known = typeof share === "number";
  node.firstElementChild.style.width = `${known ? share * 100 : 0}%`;
  const level = plain || !known || share >= 0.95 ? null : share >= 0.6 ? "fair" : "bad";
  attribute(node, "data-level", level);
  const text = known ? `${percent(share)} ${what}` : `nothing ${what}`;
  attribute(node, "aria-label", text);
  attribute(node, "title", text);
}
