// A circle to pull on, with a finger or the mouse. Its centre is stop.

const DEAD_ZONE = 0.1;

export class Pad {
  constructor(node, changed) {
    Object.assign(this, { node, changed, pointer: null, at: [0, 0] });
    node.addEventListener("pointerdown", (event) => this.press(event));
    node.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      node.addEventListener(end, (event) => this.release(event));
    }
    // A long touch is no wish for a menu.
    node.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  press(event) {
    if (this.pointer !== null || event.button !== 0) return;
    event.preventDefault();
    this.pointer = event.pointerId;
    // The circle's place when it was pressed counts, whatever moves on the page meanwhile.
    this.place = this.node.getBoundingClientRect();
    // A pointer that is gone already cannot be captured.
    try {
      this.node.setPointerCapture(event.pointerId);
    } catch {
      return this.drop();
    }
    this.move(event);
  }

  move(event) {
    if (event.pointerId !== this.pointer) return;
    const { left, top, width, height } = this.place;
    const [x, y] = [((event.clientX - left) / width) * 2 - 1, ((event.clientY - top) / height) * 2 - 1];
    const length = Math.hypot(x, y);
    const most = Math.max(1, length);
    this.at = length < DEAD_ZONE ? [0, 0] : [x / most, y / most];
    this.changed();
  }

  release(event) {
    if (event.pointerId !== this.pointer) return;
    this.drop();
    this.changed();
  }

  drop() {
    const pointer = this.pointer;
    Object.assign(this, { pointer: null, at: [0, 0] });
    if (pointer !== null && this.node.hasPointerCapture(pointer)) this.node.releasePointerCapture(pointer);
  }

  // Shows what is held, here or elsewhere.
  show([forward, turn]) {
    const knob = this.node.firstElementChild;
    knob.style.left = `${50 - turn * 50}%`;
    knob.style.top = `${50 - forward * 50}%`;
  }

  // Forward, and turn to the left.
  value() {
    return [-this.at[1] || 0, -this.at[0] || 0];
  }

  holds() {
    return this.pointer !== null;
  }
}
