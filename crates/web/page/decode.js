// Reads numbers of any message by its definition, in ROS 1's serialization.

const SIZES = { bool: 1, byte: 1, char: 1, int8: 1, uint8: 1, int16: 2, uint16: 2, int32: 4, uint32: 4, float32: 4, int64: 8, uint64: 8, float64: 8, time: 8, duration: 8 };
const LONGEST_TEXT = 1 << 20;
const MOST_FIELDS = 4096;
const DEEPEST = 32;
// Numbers that are offered of one type, and steps of one look at a type or a message.
const MOST_NUMBERS = 2000;
const MOST_STEPS = 1 << 20;
// Longer arrays are offered by the index, not number by number.
const LISTED = 32;

const READ = {
  bool: (view, at) => view.getUint8(at),
  byte: (view, at) => view.getInt8(at),
  char: (view, at) => view.getUint8(at),
  int8: (view, at) => view.getInt8(at),
  uint8: (view, at) => view.getUint8(at),
  int16: (view, at) => view.getInt16(at, true),
  uint16: (view, at) => view.getUint16(at, true),
  int32: (view, at) => view.getInt32(at, true),
  uint32: (view, at) => view.getUint32(at, true),
  int64: (view, at) => Number(view.getBigInt64(at, true)),
  uint64: (view, at) => Number(view.getBigUint64(at, true)),
  float32: (view, at) => view.getFloat32(at, true),
  float64: (view, at) => view.getFloat64(at, true),
  time: (view, at) => view.getUint32(at, true) + view.getUint32(at + 4, true) / 1e9,
  duration: (view, at) => view.getInt32(at, true) + view.getInt32(at + 4, true) / 1e9,
};

// The fields that lines of a definition state; constants are none.
function fields(lines) {
  const found = [];
  for (const line of lines) {
    const text = line.split("#", 1)[0].trim();
    if (text === "" || text.includes("=")) continue;
    const [, type, list, count, name] = /^([\w/]+)(\[(\d*)\])?\s+(\w+)$/.exec(text) ?? [];
    if (!name) throw new Error("the definition has a line that is no field");
    // `count` is null for one value, Infinity for a list.
    found.push({ name, type, count: !list ? null : count === "" ? Infinity : Number(count) });
    if (found.length > MOST_FIELDS) throw new Error("the definition has too many fields");
  }
  return found;
}

// A type with those that it contains. `size` is null where it depends on the message.
class Types {
  constructor(root, text) {
    if (text.length > LONGEST_TEXT) throw new Error("the definition is too long");
    this.parts = new Map();
    this.made = new Map();
    for (const [i, part] of text.split(/^=+\s*$/m).entries()) {
      const lines = part.split("\n");
      if (i === 0) {
        this.parts.set(root, lines);
        continue;
      }
      const start = lines.findIndex((line) => line.trim() !== "");
      const name = /^MSG:\s*(\S+)/.exec(lines[start]?.trim() ?? "")?.[1];
      if (name) this.parts.set(name, lines.slice(start + 1));
    }
  }

  // The full name of a type that a type of `from` names.
  full(name, from) {
    if (name === "Header") return "std_msgs/Header";
    return name.includes("/") ? name : `${from.split("/", 1)[0]}/${name}`;
  }

  make(name, depth = 0) {
    const known = this.made.get(name);
    if (known) return known;
    const lines = this.parts.get(name);
    if (!lines) throw new Error(`the definition of ${name} is missing`);
    if (depth > DEEPEST) throw new Error("the definition is nested too deeply");
    const type = { fields: fields(lines), size: 0 };
    for (const field of type.fields) {
      const plain = field.type in SIZES || field.type === "string";
      field.type = plain ? { plain: field.type, size: SIZES[field.type] ?? null } : this.make(this.full(field.type, name), depth + 1);
      const size = field.count === Infinity || field.type.size === null ? null : field.type.size * (field.count ?? 1);
      type.size = size === null || type.size === null ? null : type.size + size;
    }
    this.made.set(name, type);
    return type;
  }
}

// "a.b[3].c" as ["a", "b", 3, "c"].
const split = (path) => path.match(/\w+/g)?.map((part) => (/^\d/.test(part) ? Number(part) : part)) ?? [];

// The requested values of a message, as a tree whose leaves are positions in the answer.
function wanted(paths) {
  const root = new Map();
  paths.forEach((path, i) => {
    let at = root;
    const parts = split(path);
    parts.forEach((part, n) => {
      if (!at.has(part)) at.set(part, { places: [], below: new Map() });
      const next = at.get(part);
      if (n === parts.length - 1) next.places.push(i);
      at = next.below;
    });
  });
  return root;
}

// Walks through one message.
class Walk {
  constructor(view, answer) {
    Object.assign(this, { view, answer, at: 0, steps: 0 });
  }

  step(size) {
    const at = this.at;
    if (!(at + size <= this.view.byteLength)) throw new Error("the message is too short");
    if (++this.steps > MOST_STEPS) throw new Error("the message has too many parts");
    this.at = at + size;
    return at;
  }

  count() {
    return this.view.getUint32(this.step(4), true);
  }

  skip(type, times = 1) {
    if (type.size !== null) {
      this.step(type.size * times);
      return;
    }
    for (let i = 0; i < times; i++) {
      if (type.plain) this.step(this.count());
      else for (const field of type.fields) this.field(field, null);
    }
  }

  // Reads the requested parts of a value.
  value(type, want) {
    if (type.plain === "string") {
      this.skip(type);
    } else if (type.plain) {
      const at = this.step(type.size);
      for (const place of want.places) this.answer[place] = READ[type.plain](this.view, at);
    } else {
      this.fields(type, want.below);
    }
  }

  // Reads the requested parts of a struct. If it is the root, the rest of the message stays unread.
  fields(type, below, root = false) {
    let left = below.size;
    for (const field of type.fields) {
      if (root && left === 0) return;
      const want = below.get(field.name) ?? null;
      if (want) left -= 1;
      this.field(field, want);
    }
  }

  field({ type, count }, want) {
    if (count === null) {
      if (want) this.value(type, want);
      else this.skip(type);
      return;
    }
    const length = count === Infinity ? this.count() : count;
    const indices = want ? [...want.below.keys()].filter((i) => i < length).sort((a, b) => a - b) : [];
    let done = 0;
    for (const index of indices) {
      this.skip(type, index - done);
      this.value(type, want.below.get(index));
      done = index + 1;
    }
    this.skip(type, length - done);
  }
}

// The content of a channel's messages.
class Layout {
  constructor(channel) {
    if (channel.encoding !== "ros1") throw new Error(`the encoding ${channel.encoding} is not read`);
    this.root = new Types(channel.schemaName, channel.schema).make(channel.schemaName);
    this.listed = null;
  }

  // The paths of all numbers. `[]` is an index that is to be chosen.
  numbers() {
    if (this.listed) return this.listed;
    const found = [];
    let steps = 0;
    const add = (type, path) => {
      if (found.length >= MOST_NUMBERS || ++steps > MOST_STEPS) return;
      if (type.plain) {
        if (type.plain !== "string") found.push(path);
        return;
      }
      for (const field of type.fields) {
        const name = path === "" ? field.name : `${path}.${field.name}`;
        if (field.count === null) add(field.type, name);
        else if (field.type.plain && field.count <= LISTED) for (let i = 0; i < field.count; i++) add(field.type, `${name}[${i}]`);
        else add(field.type, `${name}[]`);
      }
    };
    add(this.root, "");
    return (this.listed = found);
  }

  // Whether the type has a number at a path.
  has(path) {
    let [type, count] = [this.root, null];
    for (const part of split(path)) {
      if (typeof part === "number") {
        if (count === null || part >= count) return false;
        count = null;
        continue;
      }
      const field = count === null && type.fields?.find(({ name }) => name === part);
      if (!field) return false;
      ({ type, count } = field);
    }
    return count === null && type.plain !== undefined && type.plain !== "string";
  }

  // A function from a message to the numbers at paths; null where a list is shorter.
  reader(paths) {
    const tree = wanted(paths);
    return (view) => {
      const answer = Array(paths.length).fill(null);
      new Walk(view, answer).fields(this.root, tree, true);
      return answer;
    };
  }
}

// Channels stay the same objects while they exist.
const layouts = new WeakMap();

// The layout of a channel's messages.
export function layout(channel) {
  if (!layouts.has(channel)) {
    let made;
    try {
      made = new Layout(channel);
    } catch (error) {
      made = error;
    }
    layouts.set(channel, made);
  }
  const made = layouts.get(channel);
  if (made instanceof Error) throw made;
  return made;
}
