// The viewpoint of a map, moved and zoomed by mouse, fingers and keys.

const [LEAST, MOST] = [0.05, 2000];
const KEY_PX = 60;
const ZOOM = 1.4;
// A wheel that began to turn outside keeps scrolling the page.
const WHEEL_PAUSE_MS = 400;

export class Eye {
  // `moved(by hand)` is called after each change; `held()` returns whether the view follows the robot.
  constructor(canvas, { moved, held }) {
    Object.assign(this, { canvas, moved, held, x: 0, y: 0, scale: 40, fingers: new Map(), outside: 0 });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.fingers.set(event.pointerId, event);
    });
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, (event) => this.fingers.delete(event.pointerId));
    }
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    addEventListener("wheel", (event) => event.target !== canvas && (this.outside = event.timeStamp), { passive: true });
  }

  // A place of the screen, from the middle of the canvas.
  fromMiddle({ clientX, clientY }) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    return [clientX - left - width / 2, clientY - top - height / 2];
  }

  pan(right, down) {
    if (right === 0 && down === 0) return;
    this.x -= right / this.scale;
    this.y += down / this.scale;
    this.moved(true);
  }

  // Zooms around a place of the screen, or around the robot that is followed.
  zoom(factor, [right, down] = [0, 0]) {
    const before = this.scale;
    this.scale = Math.min(MOST, Math.max(LEAST, before * factor));
    const held = this.held();
    if (!held) {
      this.x += right / before - right / this.scale;
      this.y -= down / before - down / this.scale;
    }
    this.moved(!held);
  }

  drag(event) {
    const before = this.fingers.get(event.pointerId);
    if (!before) return;
    this.fingers.set(event.pointerId, event);
    const other = [...this.fingers].find(([id]) => id !== event.pointerId)?.[1];
    if (!other) {
      this.pan(event.clientX - before.clientX, event.clientY - before.clientY);
      return;
    }
    const apart = ({ clientX, clientY }) => Math.hypot(clientX - other.clientX, clientY - other.clientY);
    const [now, then] = [apart(event), apart(before)];
    if (now > 10 && then > 10) this.zoom(now / then, this.fromMiddle(other));
  }

  wheel(event) {
    if (event.timeStamp - this.outside < WHEEL_PAUSE_MS) {
      this.outside = event.timeStamp;
      return;
    }
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1);
    this.zoom(Math.exp(-Math.max(-300, Math.min(300, pixels)) / 400), this.fromMiddle(event));
  }

  key(event) {
    const [right, down] = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
    const zoom = { "+": ZOOM, "=": ZOOM, "-": 1 / ZOOM }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || (right === 0 && down === 0 && !zoom)) return;
    event.preventDefault();
    if (zoom) this.zoom(zoom);
    else this.pan(right * KEY_PX, down * KEY_PX);
  }

  step(closer) {
    this.zoom(closer ? ZOOM : 1 / ZOOM);
  }

  // Shows everything between two corners.
  fit([left, bottom, right, top], width, height) {
    this.x = (left + right) / 2;
    this.y = (bottom + top) / 2;
    const scale = Math.min((width - 20) / Math.max(right - left, 1e-3), (height - 20) / Math.max(top - bottom, 1e-3));
    this.scale = Math.min(MOST, Math.max(LEAST, scale));
  }
}
