// An occupancy grid as a picture.

import { colour } from "./dom.js";
import { heading } from "./places.js";

// The share of the way from one colour to the other, as a pixel.
function mixed(from, to, share) {
  const part = (shift) => Math.round(((from >> shift) & 255) * (1 - share) + ((to >> shift) & 255) * share);
  return ((255 << 24) | (part(0) << 16) | (part(8) << 8) | part(16)) >>> 0;
}

export class Ground {
  constructor(grid) {
    Object.assign(this, grid, { picture: null, painted: null });
  }

  // Paints the picture once, and again when the theme changes.
  paint() {
    const names = ["free", "wall", "unknown"].map(colour);
    if (this.painted === names.join()) return;
    this.painted = names.join();
    const [free, wall, unknown] = names.map((name) => parseInt(name.slice(1), 16));
    // Known cells are 0 to 100; all others are unknown.
    const pixels = Uint32Array.from({ length: 256 }, (_, cell) => (cell <= 100 ? mixed(free, wall, cell / 100) : mixed(unknown, 0, 0)));
    const { width, height, cells } = this;
    const image = new ImageData(width, height);
    const out = new Uint32Array(image.data.buffer);
    // The first row is the lowest.
    for (let y = 0, from = 0; y < height; y++) {
      const to = (height - 1 - y) * width;
      for (let x = 0; x < width; x++) out[to + x] = pixels[cells[from++]];
    }
    this.picture ??= Object.assign(document.createElement("canvas"), { width, height });
    this.picture.getContext("2d").putImageData(image, 0, 0);
  }

  // Draws it where metres are units, x to the right and y down.
  draw(context, scale) {
    this.paint();
    const { at: [x, y] } = this.origin;
    context.save();
    context.translate(x, -y);
    context.rotate(-heading(this.origin));
    context.scale(this.cell, this.cell);
    // Cells that are larger than pixels have edges.
    context.imageSmoothingEnabled = this.cell * scale < 1;
    context.drawImage(this.picture, 0, -this.height);
    context.restore();
  }

  corners() {
    const turn = heading(this.origin);
    const [x, y] = this.origin.at;
    const [right, up] = [this.width * this.cell, this.height * this.cell];
    return [[0, 0], [right, 0], [0, up], [right, up]].map(([a, b]) => [x + a * Math.cos(turn) - b * Math.sin(turn), y + a * Math.sin(turn) + b * Math.cos(turn)]);
  }
}
