// The newest transforms between frames, as a tree.

import { inverse, within } from "./places.js";

const MOST_FRAMES = 1000;
const NOWHERE = { at: [0, 0, 0], turn: [0, 0, 0, 1] };

export class Frames {
  constructor() {
    this.all = new Map();
  }

  add({ parent, child, pose, stamp }) {
    if (parent === child || (!this.all.has(child) && this.all.size >= MOST_FRAMES)) return;
    this.all.set(child, { parent, pose, stamp });
  }

  // A frame and those above it, with the pose of the frame in each.
  above(frame) {
    const found = new Map([[frame, NOWHERE]]);
    let pose = NOWHERE;
    for (let at = this.all.get(frame); at && !found.has(at.parent); at = this.all.get(at.parent)) {
      pose = within(at.pose, pose);
      found.set(at.parent, pose);
    }
    return found;
  }

  // The topmost frame above a frame.
  root(frame) {
    return [...this.above(frame).keys()].at(-1);
  }

  // The pose of a frame in another one; null if that is not known.
  pose(frame, other) {
    if (frame === other) return NOWHERE;
    const [mine, others] = [this.above(frame), this.above(other)];
    for (const [name, pose] of mine) if (others.has(name)) return within(inverse(others.get(name)), pose);
    return null;
  }
}
