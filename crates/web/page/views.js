// Camera and laser scan.

import { $, attribute, colour, el, facts, fixed, say, sharp, whileShown } from "./dom.js";
import { COMPRESSED, IMAGE, SCAN, compressed, image, scan } from "./messages.js";

// A picture that is older than this is marked.
const OLD_S = 0.5;
// Times of the server's clock before ages are trusted to drive by.
const FEWEST_CLOCKS = 3;

// This page's clock minus the server's, in seconds: the least of the last differences, since messages only come late. The
// page's is one that nobody sets.
const offsets = [];
export function clock(serverTime) {
  offsets.push(performance.now() / 1000 - serverTime);
  if (offsets.length > 60) offsets.shift();
}
export const serverNow = () => (offsets.length ? performance.now() / 1000 - Math.min(...offsets) : Date.now() / 1000);

// The line about an age in seconds, and whether it is marked.
export function aged(age) {
  const text = age < 10 ? `${Math.max(0, Math.round(age * 1000))} ms` : `${fixed(age, 0)} s`;
  return [age < -0.05 ? "clocks differ" : `${text} old`, age > OLD_S ? "old" : ""];
}

// Draws one topic of a kind, while it is in view. A topic that nobody looks at is not taken from the bus.
class View {
  constructor(name, types, messages) {
    Object.assign(this, { name, types, messages, topic: null, visible: false, stop: null, newest: null, busy: false });
    this.canvas = $(`${name}-picture`);
    this.select = $(`${name}-topic`);
    this.select.addEventListener("change", () => {
      localStorage.setItem(`${name}-topic`, this.select.value);
      this.choose(this.select.value);
    });
    whileShown($(name), (visible) => {
      this.visible = visible;
      this.refresh();
    });
    setInterval(() => this.tell(), 250);
  }

  // Offers the topics of its types.
  channels(all) {
    const topics = all.filter((c) => this.types.includes(c.schemaName)).map((c) => c.topic).sort();
    const old = [...this.select.options].map((o) => o.value);
    if (topics.join("\n") !== old.join("\n")) {
      this.select.replaceChildren(...topics.map((topic) => el("option", { value: topic }, topic)));
    }
    const kept = localStorage.getItem(`${this.name}-topic`);
    const choice = [this.topic, kept, topics[0]].find((topic) => topics.includes(topic)) ?? null;
    this.select.value = choice ?? "";
    this.select.disabled = topics.length === 0;
    this.choose(choice);
  }

  choose(topic) {
    if (topic === this.topic) return;
    this.end();
    this.topic = topic;
    this.refresh();
  }

  end() {
    this.stop?.();
    Object.assign(this, { stop: null, newest: null, shown: null, arrivals: [] });
    this.problem("");
  }

  refresh() {
    const wanted = this.topic !== null && this.visible;
    if (wanted && !this.stop) {
      this.arrivals = [];
      this.stop = this.messages.watch(this.topic, (view, stamp, channel) => this.take(view, stamp, channel));
    } else if (!wanted && this.stop) {
      this.end();
    }
    this.tell();
  }

  take(view, stamp, channel) {
    this.arrivals.push([performance.now(), view.byteLength]);
    // Only the newest is drawn.
    this.newest = { view, stamp, channel };
    if (!this.busy) this.next();
  }

  next() {
    this.busy = true;
    requestAnimationFrame(async () => {
      const newest = this.newest;
      this.newest = null;
      if (newest && this.stop) {
        try {
          await this.draw(newest);
          this.shown = newest;
          this.problem("");
        } catch (error) {
          this.problem(`${this.topic}: ${error.message}`);
        }
      }
      this.busy = false;
      if (this.newest) this.next();
    });
  }

  problem(text) {
    say($(`${this.name}-problem`), text);
  }

  // The age of what is shown in ms; null if nothing is, or if it cannot be known: one message alone may have come late.
  age() {
    if (!this.shown || offsets.length < FEWEST_CLOCKS) return null;
    const age = (serverNow() - this.shown.stamp) * 1000;
    return age < -50 ? null : Math.max(0, age);
  }

  // Age, rate and size.
  tell() {
    const list = $(`${this.name}-facts`);
    const lines = [];
    const now = performance.now();
    const recent = (this.arrivals ?? []).filter(([at]) => now - at < 3000);
    this.arrivals = recent;
    if (this.topic === null) this.problem(this.nothing);
    else if (!this.shown && this.stop) this.problem(`waiting for ${this.topic}`);
    if (this.shown) {
      const age = serverNow() - this.shown.stamp;
      lines.push(aged(age));
      const span = recent.length > 1 ? (recent.at(-1)[0] - recent[0][0]) / 1000 : 0;
      if (span > 0) {
        const bits = recent.slice(1).reduce((sum, [, size]) => sum + size * 8, 0);
        lines.push([`${fixed((recent.length - 1) / span, 1)} Hz · ${fixed(bits / span / 1e6, 2)} Mbit/s`, ""]);
      }
      lines.push([this.about, ""]);
    }
    facts(list, lines);
  }
}

export class Camera extends View {
  nothing = "no camera on this bus";

  constructor(messages) {
    super("camera", [IMAGE, COMPRESSED], messages);
  }

  async draw({ view, channel }) {
    const read = channel.schemaName === IMAGE ? image(view) : compressed(view);
    const picture = read.pixels ?? (await createImageBitmap(read.blob));
    const { width, height } = picture;
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    const context = this.canvas.getContext("2d");
    if (read.pixels) {
      context.putImageData(picture, 0, 0);
    } else {
      context.drawImage(picture, 0, 0);
      picture.close();
    }
    this.about = `${read.encoding} ${width}×${height}`;
    this.canvas.dataset.stamp = read.header.stamp;
    attribute(this.canvas, "aria-label", `Picture of ${channel.topic}, ${this.about}`);
  }
}

export class Scan extends View {
  nothing = "no laser scan on this bus";

  constructor(messages) {
    super("scan", [SCAN], messages);
  }

  draw({ view, channel }) {
    const read = scan(view);
    const points = [];
    let farthest = 1;
    read.ranges.forEach((range, i) => {
      if (!(range >= read.least && range <= read.most)) return;
      points.push([range, read.start + i * read.step]);
      farthest = Math.max(farthest, range);
    });
    // The view does not jump with each scan.
    this.reach = Math.max(farthest, (this.reach ?? 0) * 0.98);
    const { context, width, height } = sharp(this.canvas);
    const [x, y] = [width / 2, height / 2];
    const scale = (Math.min(width, height) / 2 - 6) / this.reach;
    this.rings(context, x, y, scale);
    context.fillStyle = colour("bad");
    for (const [range, angle] of points) {
      // Ahead is up, left is left.
      context.fillRect(x - Math.sin(angle) * range * scale - 1, y - Math.cos(angle) * range * scale - 1, 2.5, 2.5);
    }
    context.fillStyle = colour("good");
    context.beginPath();
    context.moveTo(x, y - 9);
    context.lineTo(x + 6, y + 6);
    context.lineTo(x - 6, y + 6);
    context.fill();
    const nearest = points.reduce((least, [range]) => Math.min(least, range), Infinity);
    this.about = points.length ? `nearest ${fixed(nearest, 2)} m` : "nothing in range";
    this.canvas.dataset.points = points.length;
    attribute(this.canvas, "aria-label", `Scan of ${channel.topic}: ${points.length} points, ${this.about}`);
  }

  rings(context, x, y, scale) {
    const steps = [0.25, 0.5, 1, 2, 5, 10, 20, 50, 100];
    const step = steps.find((s) => s * scale >= 40) ?? 200;
    context.strokeStyle = colour("line");
    context.fillStyle = colour("pale");
    context.font = "11px system-ui, sans-serif";
    for (let r = step; r <= this.reach; r += step) {
      context.beginPath();
      context.arc(x, y, r * scale, 0, 2 * Math.PI);
      context.stroke();
      context.fillText(`${r} m`, x + 3, y - r * scale + 12);
    }
  }
}
