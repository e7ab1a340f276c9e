// Reads the messages that the page draws, in ROS 1's serialization.

export class Reader {
  constructor(view) {
    Object.assign(this, { view, at: 0 });
  }

  step(size) {
    const at = this.at;
    if (at + size > this.view.byteLength) throw new Error("the message is too short");
    this.at = at + size;
    return at;
  }

  u8() {
    return this.view.getUint8(this.step(1));
  }

  u32() {
    return this.view.getUint32(this.step(4), true);
  }

  f32() {
    return this.view.getFloat32(this.step(4), true);
  }

  f64() {
    return this.view.getFloat64(this.step(8), true);
  }

  bytes() {
    const size = this.u32();
    const at = this.step(size);
    return new Uint8Array(this.view.buffer, this.view.byteOffset + at, size);
  }

  text() {
    return new TextDecoder().decode(this.bytes());
  }

  floats() {
    const size = this.u32();
    const at = this.step(size * 4);
    return Float32Array.from({ length: size }, (_, i) => this.view.getFloat32(at + 4 * i, true));
  }

  header() {
    this.u32();
    return this.origin();
  }

  // A header without its sequence number.
  origin() {
    const stamp = this.u32() + this.u32() / 1e9;
    return { stamp, frame: this.text() };
  }
}

export const IMAGE = "sensor_msgs/Image";
export const COMPRESSED = "sensor_msgs/CompressedImage";
export const VIDEO = "foxglove_msgs/CompressedVideo";
export const SCAN = "sensor_msgs/LaserScan";

// Bytes of a pixel, and where its red, green and blue are.
const ENCODINGS = {
  rgb8: [3, 0, 1, 2],
  bgr8: [3, 2, 1, 0],
  rgba8: [4, 0, 1, 2],
  bgra8: [4, 2, 1, 0],
  mono8: [1, 0, 0, 0],
  "8UC1": [1, 0, 0, 0],
  "8UC3": [3, 2, 1, 0],
};
const MOST_PIXELS = 1 << 26;

// A raw image as the pixels of a canvas.
export function image(view) {
  const reader = new Reader(view);
  const header = reader.header();
  const [height, width] = [reader.u32(), reader.u32()];
  const encoding = reader.text();
  reader.u8();
  const step = reader.u32();
  const data = reader.bytes();
  const layout = ENCODINGS[encoding];
  if (!layout) throw new Error(`the encoding ${encoding} is not shown; rgb8, bgr8, rgba8, bgra8 and mono8 are`);
  const [size, red, green, blue] = layout;
  if (width === 0 || height === 0) throw new Error("the image is empty");
  if (width * height > MOST_PIXELS) throw new Error(`${width}×${height} is too large to show`);
  if (step < width * size || data.length < step * (height - 1) + width * size) throw new Error("the image is too short");
  const pixels = new ImageData(width, height);
  const out = pixels.data;
  let to = 0;
  for (let y = 0; y < height; y++) {
    let from = y * step;
    for (let x = 0; x < width; x++, from += size, to += 4) {
      out[to] = data[from + red];
      out[to + 1] = data[from + green];
      out[to + 2] = data[from + blue];
      out[to + 3] = 255;
    }
  }
  return { header, pixels, encoding, bytes: view.byteLength };
}

// A compressed image, or a picture of a video.
export function compressed(view, type) {
  const reader = new Reader(view);
  const isVideo = type === VIDEO;
  const header = isVideo ? reader.origin() : reader.header();
  const first = isVideo ? null : reader.text();
  const data = reader.bytes();
  const format = first ?? reader.text();
  const isH264 = /h264/i.test(format);
  if (isVideo && !isH264) throw new Error(`the format ${format} is not shown; h264 is`);
  return { header, format, data, isH264 };
}

// A JPEG or PNG; the browser decodes it.
export function still({ format, data }) {
  const type = data[0] === 0x89 ? "image/png" : "image/jpeg";
  if (type === "image/jpeg" && data[0] !== 0xff) throw new Error(`the format ${format} is not shown; jpeg, png and h264 are`);
  return { blob: new Blob([data], { type }), encoding: type.slice(6) };
}

export function scan(view) {
  const reader = new Reader(view);
  const header = reader.header();
  const [start, end, step] = [reader.f32(), reader.f32(), reader.f32()];
  reader.f32();
  reader.f32();
  const [least, most] = [reader.f32(), reader.f32()];
  return { header, start, end, step, least, most, ranges: reader.floats(), bytes: view.byteLength };
}
