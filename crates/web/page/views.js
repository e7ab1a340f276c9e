// Camera and laser scan.

import { $, attribute, colour, el, facts, fixed, say, sharp, whileShown } from "./dom.js";
import { COMPRESSED, IMAGE, SCAN, VIDEO, compressed, image, scan, still } from "./messages.js";
import { Stages, crossing, measure } from "./stages.js";
import { Video } from "./video.js";

// A picture that is older than this is marked.
const OLD_S = 0.5;
// Number of answers about the server's clock before ages are reliable enough to drive by.
const FEWEST_CLOCKS = 3;

// Keeps the offset of this page's clock from the server's, in seconds, and its maximum error: half of the time until the answer.
// The quickest of the last answers counts. The page's clock is monotonic.
const offsets = [];
export function clock(there, asked, answered) {
  offsets.push({ offset: (asked + answered) / 2000 - there, error: (answered - asked) / 2000 });
  if (offsets.length > 60) offsets.shift();
}
const best = () => offsets.reduce((least, other) => (other.error < least.error ? other : least));
export const serverNow = () => (offsets.length ? performance.now() / 1000 - best().offset : Date.now() / 1000);

// The line about an age in seconds, and whether it is marked.
export function aged(age) {
  const text = age < 10 ? `${Math.max(0, Math.round(age * 1000))} ms` : `${fixed(age, 0)} s`;
  return [age < -0.05 ? "clocks differ" : `${text} old`, age > OLD_S ? "old" : ""];
}

// Video frames hold memory of the decoder until they are closed.
const release = (message) => message?.picture?.close?.();

// Draws one topic of a kind, while it is in view. A topic that is not visible is not taken from the bus.
class View {
  constructor(name, types, messages) {
    Object.assign(this, { name, types, messages, topic: null, visible: false, stop: null, newest: null, busy: false, run: 0 });
    this.canvas = $(`${name}-picture`);
    this.select = $(`${name}-topic`);
    this.select.addEventListener("change", () => {
      localStorage.setItem(`${name}-topic`, this.select.value);
      this.choose(this.select.value);
    });
    this.unwatch = whileShown($(name), (visible) => {
      this.visible = visible;
      this.refresh();
    });
    this.timer = setInterval(() => this.tell(), 250);
  }

  // Ends the view, so that its elements can be removed.
  close() {
    clearInterval(this.timer);
    this.unwatch();
    this.visible = false;
    this.end();
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
    this.offer(null);
    Object.assign(this, { stop: null, shown: null, arrivals: [], run: this.run + 1 });
    this.problem("");
  }

  refresh() {
    const wanted = this.topic !== null && this.visible;
    if (wanted && !this.stop) {
      this.arrivals = [];
      const take = (view, stamp, channel, times) => {
        const received = performance.now();
        this.arrivals.push([received, view.byteLength]);
        this.take({ view, stamp, channel, ...times, received, run: this.run });
      };
      this.stop = this.messages.watch(this.topic, take, this.timed);
    } else if (!wanted && this.stop) {
      this.end();
    }
    this.tell();
  }

  take(message) {
    this.offer(message);
  }

  // Only the newest message is drawn.
  offer(message) {
    release(this.newest);
    this.newest = message;
    if (message && !this.busy) this.next();
  }

  // Decodes the newest message and draws it with the next frame of the screen.
  async next() {
    this.busy = true;
    while (this.newest) {
      let message = this.newest;
      this.newest = null;
      try {
        await this.decode(message);
        await new Promise(requestAnimationFrame);
        if (this.newest && this.isDecoded(this.newest)) {
          // A newer message arrived in the meantime.
          release(message);
          message = this.newest;
          this.newest = null;
        }
        if (message.run === this.run) {
          this.draw(message);
          this.shown = message;
          this.problem("");
        }
      } catch (error) {
        if (message.run === this.run) this.problem(`${this.topic}: ${error.message}`);
      }
      release(message);
    }
    this.busy = false;
  }

  decode() {}

  isDecoded() {
    return true;
  }

  problem(text) {
    say($(`${this.name}-problem`), text);
  }

  // The age of the shown message in ms; null if there is none, or if the age is unknown: a single message may have arrived late.
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
    else if (!this.shown && this.stop && recent.length === 0) this.problem(`waiting for ${this.topic}`);
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
  timed = true;
  video = null;
  // The observed links of this host.
  links = {};

  constructor(messages, name = "camera", nothing = "no camera on this bus") {
    super(name, [IMAGE, COMPRESSED, VIDEO], messages);
    this.nothing = nothing;
    // Only the large picture has room for them.
    this.stages = $(`${name}-stages`) ? new Stages(name) : null;
  }

  end() {
    super.end();
    this.video?.close();
    this.video = null;
  }

  take(message) {
    const { view, stamp, channel } = message;
    if (channel.schemaName === IMAGE) return this.offer(message);
    try {
      const read = compressed(view, channel.schemaName);
      message.captured = read.header.stamp;
      if (!read.isH264) return this.offer({ ...message, read });
      const show = (frame, note) => this.offer({ ...note, picture: frame, encoding: "h264", decoded: performance.now() });
      this.video ??= new Video({ show, tell: (text) => this.problem(`${this.topic}: ${text}`) });
      this.video.take(read.data, stamp, { ...message, view: null });
    } catch (error) {
      this.problem(`${this.topic}: ${error.message}`);
    }
  }

  isDecoded(message) {
    return Boolean(message.picture);
  }

  async decode(message) {
    if (message.picture) return;
    const read = message.read ? still(message.read) : image(message.view);
    message.captured ??= read.header.stamp;
    message.encoding = read.encoding;
    message.picture = read.pixels ?? (await createImageBitmap(read.blob));
    message.decoded = performance.now();
  }

  draw(message) {
    const { picture, channel } = message;
    const [width, height] = [picture.displayWidth ?? picture.width, picture.displayHeight ?? picture.height];
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    const context = this.canvas.getContext("2d");
    if (picture instanceof ImageData) context.putImageData(picture, 0, 0);
    else context.drawImage(picture, 0, 0, width, height);
    message.drawn = performance.now();
    this.stages?.add(channel.topic, measure(message, crossing(this.links, channel.topic), offsets.length < FEWEST_CLOCKS ? null : best()));
    this.about = `${message.encoding} ${width}×${height}`;
    this.canvas.dataset.stamp = message.captured;
    attribute(this.canvas, "aria-label", `Picture of ${channel.topic}, ${this.about}`);
  }

  tell() {
    super.tell();
    this.stages?.tell();
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
