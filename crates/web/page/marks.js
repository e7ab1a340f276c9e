// Draws the marks of a map at places of the screen.

import { colour } from "./dom.js";

const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
const LONGEST = 2000;

const length = (m) => (m < 1 ? `${Math.round(m * 100)} cm` : `${m} m`);

// Draws a line through points of the screen.
export function line(context, points, name, width) {
  context.strokeStyle = colour(name);
  context.lineWidth = width;
  context.beginPath();
  for (const point of points) context.lineTo(...point);
  context.stroke();
}

// Ahead is where the tip points.
export function arrow(context, [x, y], turn, name) {
  context.save();
  context.translate(x, y);
  context.rotate(-turn);
  const shape = [[11, 0], [-8, 7], [-4, 0], [-8, -7], [11, 0]];
  line(context, shape, "paper", 3);
  context.fillStyle = colour(name);
  context.fill();
  context.restore();
}

// Lines of metres.
export function squares(context, { x, y, scale }, width, height) {
  const step = STEPS.find((s) => s * scale >= 28) ?? LONGEST;
  // The places of multiples of the step on a side of the screen.
  const places = (middle, size) => {
    const found = [];
    const reach = size / 2 / scale;
    for (let n = Math.ceil((middle - reach) / step); n * step <= middle + reach; n++) found.push((n * step - middle) * scale);
    return found;
  };
  for (const at of places(x, width)) {
    const right = Math.round(width / 2 + at) + 0.5;
    line(context, [[right, 0], [right, height]], "line", 1);
  }
  for (const at of places(y, height)) {
    const down = Math.round(height / 2 - at) + 0.5;
    line(context, [[0, down], [width, down]], "line", 1);
  }
}

// How long a metre is.
export function bar(context, { scale }, height) {
  const step = STEPS.find((s) => s * scale >= 50) ?? LONGEST;
  const [x, y, wide] = [12, height - 12, step * scale];
  const shape = [[x, y - 6], [x, y], [x + wide, y], [x + wide, y - 6]];
  line(context, shape, "paper", 5);
  line(context, shape, "ink", 2);
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  context.lineJoin = "round";
  context.strokeStyle = colour("paper");
  context.fillStyle = colour("ink");
  context.lineWidth = 4;
  context.strokeText(length(step), x + wide / 2, y - 8);
  context.fillText(length(step), x + wide / 2, y - 8);
}
