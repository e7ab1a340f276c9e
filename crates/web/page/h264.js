// Finds in H.264 pictures (Annex B) where decoding can begin and which pictures are missing (ITU-T H.264, 7.3). Uses no DOM.

const [SLICE, IDR, PARAMETERS, PICTURE_PARAMETERS, DELIMITER] = [1, 5, 7, 8, 9];
// The first slice must begin within this many bytes.
const MOST_BYTES = 1 << 14;
const MOST_UNIT = 1024;
// Profiles with additional fields before the one that is read.
const HIGH = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

// The NAL units that begin in the first bytes of a picture, each from its start code to the next one.
export function units(bytes) {
  const found = [];
  const most = Math.min(bytes.length, MOST_BYTES);
  for (let at = 0; at + 3 < most; at++) {
    if (bytes[at] !== 0 || bytes[at + 1] !== 0 || bytes[at + 2] !== 1) continue;
    if (found.length > 0) found.at(-1).end = at;
    at += 3;
    found.push({ type: bytes[at] & 31, isReference: (bytes[at] & 96) !== 0, start: at, end: bytes.length });
    // Nothing after the first slice is needed.
    if (found.at(-1).type >= SLICE && found.at(-1).type <= IDR) break;
  }
  return found;
}

// Reads the bits after a unit's header byte.
class Bits {
  constructor(bytes, { start, end }) {
    const raw = bytes.subarray(start + 1, Math.min(end, start + MOST_UNIT));
    // A three after two zeros only prevents a false start code (7.4.1).
    this.bytes = raw.filter((byte, i) => !(byte === 3 && i > 1 && raw[i - 1] === 0 && raw[i - 2] === 0));
    this.at = 0;
  }

  bits(count) {
    let value = 0;
    for (; count > 0; count--, this.at++) {
      if (this.at >= this.bytes.length * 8) throw new Error("the picture is cut short");
      value = value * 2 + ((this.bytes[this.at >> 3] >> (7 - (this.at & 7))) & 1);
    }
    return value;
  }

  // ue(v)
  number() {
    let zeros = 0;
    while (this.bits(1) === 0) if (++zeros > 32) throw new Error("the picture is damaged");
    return 2 ** zeros - 1 + this.bits(zeros);
  }

  // se(v)
  signed() {
    const code = this.number();
    return code % 2 === 1 ? (code + 1) / 2 : -code / 2;
  }

  scaling(size) {
    let [last, next] = [8, 8];
    for (let i = 0; i < size && next !== 0; i++) {
      next = (last + this.signed() + 256) & 255;
      if (next !== 0) last = next;
    }
  }
}

// The name of a stream's codec, and the layout of its picture numbers.
function parameters(bytes, unit) {
  const bits = new Bits(bytes, unit);
  const [profile, constraints, level] = [bits.bits(8), bits.bits(8), bits.bits(8)];
  bits.number();
  let planes = false;
  if (HIGH.includes(profile)) {
    const chroma = bits.number();
    planes = chroma === 3 && bits.bits(1) === 1;
    bits.number();
    bits.number();
    bits.bits(1);
    const lists = bits.bits(1) === 0 ? 0 : chroma === 3 ? 12 : 8;
    for (let i = 0; i < lists; i++) if (bits.bits(1) === 1) bits.scaling(i < 6 ? 16 : 64);
  }
  const length = bits.number() + 4;
  if (length > 16) throw new Error("the parameters are damaged");
  const name = [profile, constraints, level].map((part) => part.toString(16).padStart(2, "0"));
  return { codec: `avc1.${name.join("")}`, planes, length };
}

// A picture's number.
function frameNumber(bytes, unit, { planes, length }) {
  const bits = new Bits(bytes, unit);
  for (let i = 0; i < 3; i++) bits.number();
  if (planes) bits.bits(2);
  return bits.bits(length);
}

// Passes the pictures that can be decoded: from a key frame up to the first gap.
export class Order {
  constructor() {
    Object.assign(this, { stream: null, head: null, last: null, at: 0, period: null });
  }

  // Waits for the next key frame, since nothing before it can be decoded.
  lose() {
    this.last = null;
  }

  // Returns the input for the decoder, `{ isKey, codec, data }`, for a picture published at `at` (seconds), or null until the
  // next key frame. Throws if the picture cannot be read.
  take(bytes, at) {
    try {
      return this.next(bytes, at);
    } catch (error) {
      this.lose();
      throw error;
    }
  }

  next(bytes, at) {
    const found = units(bytes);
    const slice = found.find(({ type }) => type <= IDR && type >= SLICE);
    const own = found.find(({ type }) => type === PARAMETERS);
    if (own) {
      this.stream = parameters(bytes, own);
      // Kept for key frames that come without parameters.
      const both = found.filter(({ type }) => type === PARAMETERS || type === PICTURE_PARAMETERS);
      this.head = joined(both.map(({ start, end }) => bytes.subarray(start - 3, Math.min(end, start + MOST_UNIT))));
    }
    if (!slice || !this.stream) return null;
    const isKey = slice.type === IDR;
    const number = frameNumber(bytes, slice, this.stream);
    if (!isKey && !this.continues(number, at)) {
      this.lose();
      return null;
    }
    this.period = this.last === null ? null : this.smooth(at - this.at);
    this.at = at;
    if (isKey || slice.isReference) this.last = number;
    return { isKey, codec: this.stream.codec, data: isKey && !own ? this.withHead(bytes, found) : bytes };
  }

  // A delimiter must come first.
  withHead(bytes, [first]) {
    const at = first.type === DELIMITER ? first.end : 0;
    return joined([bytes.subarray(0, at), this.head, bytes.subarray(at)]);
  }

  // Whether this picture directly follows the last one.
  continues(number, at) {
    if (this.last === null) return false;
    const turn = 2 ** this.stream.length;
    // Numbers wrap around: after a pause this long, a whole round of pictures may be missing.
    const isLate = this.period !== null && at - this.at > turn * this.period;
    return !isLate && number === (this.last + 1) % turn;
  }

  smooth(period) {
    return this.period === null ? period : this.period + (period - this.period) / 8;
  }
}

function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
