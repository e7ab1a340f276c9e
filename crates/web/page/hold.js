// The controls that the operator holds: keys, the pad, or a gamepad. An input that was dropped counts again only after it is released and pressed.

import { Pad } from "./pad.js";

// Forward, and turn to the left. Letters are meant by their place on the keyboard.
const KEYS = {
  ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, 1], ArrowRight: [0, -1],
  KeyW: [1, 0], KeyS: [-1, 0], KeyA: [0, 1], KeyD: [0, -1],
};
const FIELDS = "input, select, textarea, [contenteditable]";
// Of the standard layout. Nothing is sent while none of them is held.
const SHOULDERS = [4, 5];
const DEAD_ZONE = 0.15;

const clamp = (value) => Math.max(-1, Math.min(1, value));
const sum = (all) => [0, 1].map((i) => clamp(all.reduce((total, one) => total + one[i], 0)));

// `takes()` returns whether keys drive now.
class Keys {
  constructor(takes, changed) {
    this.held = new Set();
    addEventListener("keydown", (event) => {
      const drives = event.code in KEYS && !event.defaultPrevented && !event.target.closest?.(FIELDS);
      if (event.ctrlKey || event.altKey || event.metaKey) this.drop();
      else if (drives && takes()) {
        event.preventDefault();
        if (!event.repeat) this.held.add(event.code);
      }
      changed();
    });
    addEventListener("keyup", (event) => {
      if (this.held.delete(event.code)) changed();
    });
    addEventListener("focusin", (event) => {
      if (!event.target.closest(FIELDS)) return;
      this.drop();
      changed();
    });
  }

  value() {
    return sum([...this.held].map((code) => KEYS[code]));
  }

  holds() {
    return this.held.size > 0;
  }

  drop() {
    this.held.clear();
  }
}

class Gamepads {
  constructor(changed) {
    Object.assign(this, { changed, dead: true, polling: false });
    addEventListener("gamepadconnected", () => this.poll());
  }

  all() {
    return [...(navigator.getGamepads?.() ?? [])].filter((pad) => pad?.connected);
  }

  // With each picture of the screen, while there is a gamepad.
  poll() {
    if (this.polling) return;
    this.polling = true;
    const again = () => {
      this.changed();
      this.polling = this.all().length > 0;
      if (this.polling) requestAnimationFrame(again);
    };
    again();
  }

  armed() {
    return this.all().find((pad) => SHOULDERS.some((i) => pad.buttons[i]?.pressed));
  }

  value() {
    const pad = this.armed();
    if (!pad) this.dead = false;
    else if (!document.hasFocus()) this.dead = true;
    if (!pad || this.dead) return [0, 0];
    const [x, y] = pad.axes;
    const length = Math.hypot(x, y);
    if (!(length > DEAD_ZONE)) return [0, 0];
    const scale = (Math.min(1, length) - DEAD_ZONE) / (1 - DEAD_ZONE) / length;
    return [clamp(-y * scale), clamp(-x * scale)];
  }

  holds() {
    return !this.dead && this.armed() !== undefined;
  }

  drop() {
    this.dead = true;
  }
}

export class Hold {
  constructor(node, takes, changed) {
    const tell = () => {
      changed();
      this.show();
    };
    this.pad = new Pad(node, tell);
    this.all = [this.pad, new Keys(takes, tell), new Gamepads(tell)];
  }

  show() {
    this.pad.show(this.value());
  }

  value() {
    return sum(this.all.map((one) => one.value()));
  }

  holds() {
    return this.all.some((one) => one.holds());
  }

  drop() {
    for (const one of this.all) one.drop();
    this.show();
  }
}
