// One curve: the points of the last minutes, and how it is drawn.

const MOST = 6000;
const LONGEST_S = 300;
// All of the newest points are kept; of the others the least and the greatest of each span.
const NEWEST = 3200;
const SPAN_S = 0.4;

export class Curve {
  constructor() {
    Object.assign(this, { times: [], values: [] });
  }

  // The line ends at a value that is not a number.
  add(at, value) {
    if (at <= this.times.at(-1)) return;
    const gap = !Number.isFinite(value);
    if (gap && Number.isNaN(this.values.at(-1) ?? NaN)) return;
    this.times.push(at);
    this.values.push(gap ? NaN : value);
    if (this.times.length >= MOST) this.thin(at - LONGEST_S);
  }

  // Nothing arrives for a while.
  rest() {
    this.add((this.times.at(-1) ?? 0) + 1e-3, NaN);
  }

  // Forgets old points, and thins out the older of the rest.
  thin(since) {
    const start = this.first(since);
    const end = Math.max(start, this.times.length - NEWEST);
    const kept = [];
    for (let i = start; i < end; ) {
      const span = Math.floor(this.times[i] / SPAN_S);
      let [low, high, gap] = [null, null, null];
      for (; i < end && Math.floor(this.times[i] / SPAN_S) === span; i++) {
        const value = this.values[i];
        if (Number.isNaN(value)) gap ??= i;
        else {
          if (low === null || value < this.values[low]) low = i;
          if (high === null || value > this.values[high]) high = i;
        }
      }
      const three = new Set([low, high, gap].filter((n) => n !== null));
      kept.push(...[...three].sort((a, b) => a - b));
    }
    const rest = (list) => kept.map((n) => list[n]).concat(list.slice(end));
    [this.times, this.values] = [rest(this.times), rest(this.values)];
  }

  newest() {
    return this.values.findLast((value) => !Number.isNaN(value));
  }

  // The first point that is not before a time.
  first(at) {
    let [low, high] = [0, this.times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The point nearest to a time, if there is one within `reach` seconds.
  near(at, reach) {
    const after = this.first(at);
    const best = [after - 1, after]
      .filter((i) => Math.abs(this.times[i] - at) <= reach && !Number.isNaN(this.values[i]))
      .sort((a, b) => Math.abs(this.times[a] - at) - Math.abs(this.times[b] - at))[0];
    return best === undefined ? null : { at: this.times[best], value: this.values[best] };
  }

  // The least and the greatest value since a time.
  range(since) {
    let [low, high] = [Infinity, -Infinity];
    for (let i = this.first(since); i < this.values.length; i++) {
      // Comparisons with NaN are false.
      if (this.values[i] < low) low = this.values[i];
      if (this.values[i] > high) high = this.values[i];
    }
    return [low, high];
  }

  // Draws the points since a time: the first, least, greatest and last value of each column of pixels.
  draw(context, since, x, y) {
    let column = null;
    let part = [];
    const flush = () => {
      if (part.length === 0) return;
      const shown = part.length > 4 ? [part[0], Math.min(...part), Math.max(...part), part.at(-1)] : part;
      for (const value of shown) context.lineTo(column, y(value));
      part = [];
    };
    context.beginPath();
    for (let i = Math.max(0, this.first(since) - 1); i < this.times.length; i++) {
      const value = this.values[i];
      const at = Math.round(x(this.times[i]) * 2) / 2;
      if (Number.isNaN(value) || at !== column) flush();
      if (Number.isNaN(value)) {
        context.stroke();
        context.beginPath();
        continue;
      }
      column = at;
      part.push(value);
    }
    flush();
    context.stroke();
  }
}

// Round numbers from `low` to `high`, at most about `most`, and how to write them.
export function ticks(low, high, most) {
  const raw = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((n) => n * power >= raw * 0.999) * power;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const first = Math.ceil(low / step - 1e-6);
  const marks = [];
  for (let n = first; n * step <= high + step * 1e-6 && marks.length < 50; n++) marks.push(n * step);
  const odd = digits > 9 || Math.max(Math.abs(low), Math.abs(high)) >= 1e12;
  return marks.map((mark) => [mark, odd ? mark.toExponential(3) : mark.toFixed(digits)]);
}
