// Reads the messages that the map draws, and turns poses from one frame into another.

import { Reader } from "./messages.js";

export const GRID = "nav_msgs/OccupancyGrid";
export const ODOMETRY = "nav_msgs/Odometry";
export const PATH = "nav_msgs/Path";
export const POSE = "geometry_msgs/PoseStamped";
export const TRANSFORMS = ["tf2_msgs/TFMessage", "tf/tfMessage"];

// Cells of a side of a map.
const MOST_CELLS = 4096;
// Places of a path that are drawn.
const MOST_PLACES = 20000;

// Some write "/map" where others write "map".
const plain = (frame) => frame.replace(/^\/+/, "");

function header(reader) {
  const { stamp, frame } = reader.header();
  return { stamp, frame: plain(frame) };
}

const three = (reader) => [reader.f64(), reader.f64(), reader.f64()];

// A pose, or a transform from a child's frame to its parent's: position, and rotation, which may be missing.
function pose(reader) {
  const at = three(reader);
  const turn = [...three(reader), reader.f64()];
  const length = Math.hypot(...turn);
  if (![...at, length].every(Number.isFinite)) throw new Error("a pose has values that are no numbers");
  return { at, turn: length > 0 ? turn.map((part) => part / length) : [0, 0, 0, 1] };
}

export function grid(view) {
  const reader = new Reader(view);
  const { frame } = header(reader);
  reader.step(8);
  const [cell, width, height] = [reader.f32(), reader.u32(), reader.u32()];
  const origin = pose(reader);
  if (width > MOST_CELLS || height > MOST_CELLS) throw new Error(`${width}×${height} cells are too many to show: at most ${MOST_CELLS}×${MOST_CELLS}`);
  const cells = reader.bytes();
  if (width === 0 || height === 0) throw new Error("the map is empty");
  if (!(cell > 0 && cell < 1e6)) throw new Error("the map's cells have no size");
  if (cells.length !== width * height) throw new Error(`the map has ${cells.length} cells instead of ${width}×${height}`);
  return { frame, cell, width, height, origin, cells };
}

export function odometry(view) {
  const reader = new Reader(view);
  const { frame } = header(reader);
  reader.text();
  const at = pose(reader);
  reader.step(36 * 8);
  const [x, y] = three(reader);
  return { frame, pose: at, speed: Math.hypot(x, y) };
}

export function path(view) {
  const reader = new Reader(view);
  const { frame } = header(reader);
  const places = [];
  for (let left = Math.min(reader.u32(), MOST_PLACES); left > 0; left--) {
    header(reader);
    places.push(pose(reader));
  }
  return { frame, places };
}

export function stamped(view) {
  const reader = new Reader(view);
  const { frame } = header(reader);
  return { frame, places: [pose(reader)] };
}

export function transforms(view) {
  const reader = new Reader(view);
  const found = [];
  for (let left = reader.u32(); left > 0; left--) {
    const { stamp, frame } = header(reader);
    found.push({ stamp, parent: frame, child: plain(reader.text()), pose: pose(reader) });
  }
  return found;
}

// Turns a place by a quaternion.
function turned([x, y, z, w], [a, b, c]) {
  const [i, j, k] = [2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)];
  return [a + w * i + y * k - z * j, b + w * j + z * i - x * k, c + w * k + x * j - y * i];
}

// Transforms a place at `inner` in a frame that is itself at `outer`.
export function within(outer, inner) {
  const [x, y, z, w] = outer.turn;
  const [a, b, c, d] = inner.turn;
  const at = turned(outer.turn, inner.at).map((part, i) => part + outer.at[i]);
  const turn = [w * a + x * d + y * c - z * b, w * b - x * c + y * d + z * a, w * c + x * b - y * a + z * d, w * d - x * a - y * b - z * c];
  return { at, turn };
}

export function inverse({ at, turn: [x, y, z, w] }) {
  const turn = [-x, -y, -z, w];
  return { at: turned(turn, at).map((part) => -part), turn };
}

// The direction of a pose on the ground, against the x axis.
export function heading({ turn: [x, y, z, w] }) {
  return Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z));
}
