// A packed R-tree over boxes: sorted along a Hilbert curve, sixteen to a node.

const NODE = 16;
const SIDE = 65535;
const ROOM = 2 ** 23; // more than there are shapes; keys stay below 2 ** 53

export class Boxes {
  /** `boxes`: west, north, east, south of each in turn, as a Float64Array; `rows`: their numbers. */
  constructor(boxes, rows) {
    const n = rows.length;
    const bounds = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 0; i < n; i += 1) grow(bounds, boxes, rows[i] * 4);
    this.bounds = bounds;
    const keys = new Float64Array(n);
    const wide = SIDE / (bounds[2] - bounds[0] || 1);
    const high = SIDE / (bounds[3] - bounds[1] || 1);
    for (let i = 0; i < n; i += 1) {
      const at = rows[i] * 4;
      const x = ((boxes[at] + boxes[at + 2]) / 2 - bounds[0]) * wide;
      const y = ((boxes[at + 1] + boxes[at + 3]) / 2 - bounds[1]) * high;
      keys[i] = Math.floor(hilbert(x | 0, y | 0) / 8) * ROOM + i; // a key that says which it was
    }
    keys.sort();
    const levels = [n];
    for (let size = n; size > 1;) levels.push((size = Math.ceil(size / NODE)));
    const total = levels.reduce((sum, size) => sum + size, 0);
    this.rows = new Uint32Array(n);
    this.boxes = new Float64Array(total * 4);
    this.starts = [];
    let start = 0;
    levels.forEach((size) => { this.starts.push(start); start += size; });
    this.sizes = levels;
    for (let i = 0; i < n; i += 1) {
      const row = rows[keys[i] % ROOM];
      this.rows[i] = row;
      this.boxes.set(boxes.subarray(row * 4, row * 4 + 4), i * 4);
    }
    for (let level = 1; level < levels.length; level += 1) {
      for (let node = 0; node < levels[level]; node += 1) {
        const box = [Infinity, Infinity, -Infinity, -Infinity];
        const last = Math.min((node + 1) * NODE, levels[level - 1]);
        for (let child = node * NODE; child < last; child += 1) {
          grow(box, this.boxes, (this.starts[level - 1] + child) * 4);
        }
        this.boxes.set(box, (this.starts[level] + node) * 4);
      }
    }
  }

  /** The rows whose boxes meet one. */
  meeting(west, north, east, south) {
    const found = [];
    if (!this.rows.length) return found;
    const top = this.sizes.length - 1;
    const waiting = [top, 0];
    while (waiting.length) {
      const node = waiting.pop();
      const level = waiting.pop();
      const at = (this.starts[level] + node) * 4;
      const b = this.boxes;
      if (b[at] > east || b[at + 2] < west || b[at + 1] > south || b[at + 3] < north) continue;
      if (level === 0) { found.push(this.rows[node]); continue; }
      const last = Math.min((node + 1) * NODE, this.sizes[level - 1]);
      for (let child = node * NODE; child < last; child += 1) waiting.push(level - 1, child);
    }
    return found;
  }
}

function grow(box, boxes, at) {
  if (boxes[at] < box[0]) box[0] = boxes[at];
  if (boxes[at + 1] < box[1]) box[1] = boxes[at + 1];
  if (boxes[at + 2] > box[2]) box[2] = boxes[at + 2];
  if (boxes[at + 3] > box[3]) box[3] = boxes[at + 3];
}

/** The place of a cell of 65,536 by 65,536 along the curve. */
function hilbert(x, y) {
  let d = 0;
  for (let s = 32768; s > 0; s >>= 1) {
    const rx = (x & s) > 0 ? 1 : 0;
    const ry = (y & s) > 0 ? 1 : 0;
    d += s * s * ((3 * rx) ^ ry);
    if (ry === 0) {
      if (rx === 1) { x = s - 1 - (x & (s - 1)); y = s - 1 - (y & (s - 1)); }
      [x, y] = [y, x];
    }
  }
  return d;
}
