// A packed Hilbert R-tree over boxes.

const NODE_SIZE = 16;
const MAX_CELL = 65535;
const MAX_ROWS = 2 ** 23; // so that sort keys stay below 2 ** 53

export class Boxes {
  /** `boxes`: west, north, east, south of every row, as a Float64Array; `rows`: the rows to index. */
  constructor(boxes, rows) {
    const n = rows.length;
    const bounds = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 0; i < n; i += 1) extend(bounds, boxes, rows[i] * 4);
    this.bounds = bounds;
    const keys = new Float64Array(n);
    const scaleX = MAX_CELL / (bounds[2] - bounds[0] || 1);
    const scaleY = MAX_CELL / (bounds[3] - bounds[1] || 1);
    for (let i = 0; i < n; i += 1) {
      const at = rows[i] * 4;
      const x = ((boxes[at] + boxes[at + 2]) / 2 - bounds[0]) * scaleX;
      const y = ((boxes[at + 1] + boxes[at + 3]) / 2 - bounds[1]) * scaleY;
      keys[i] = Math.floor(hilbert(x | 0, y | 0) / 8) * MAX_ROWS + i; // the low part of the key is the row
    }
    keys.sort();
    const levels = [n];
    for (let size = n; size > 1;) levels.push((size = Math.ceil(size / NODE_SIZE)));
    const total = levels.reduce((sum, size) => sum + size, 0);
    this.rows = new Uint32Array(n);
    this.boxes = new Float64Array(total * 4);
    this.starts = [];
    let start = 0;
    levels.forEach((size) => { this.starts.push(start); start += size; });
    this.sizes = levels;
    for (let i = 0; i < n; i += 1) {
      const row = rows[keys[i] % MAX_ROWS];
      this.rows[i] = row;
      this.boxes.set(boxes.subarray(row * 4, row * 4 + 4), i * 4);
    }
    for (let level = 1; level < levels.length; level += 1) {
      for (let node = 0; node < levels[level]; node += 1) {
        const box = [Infinity, Infinity, -Infinity, -Infinity];
        const last = Math.min((node + 1) * NODE_SIZE, levels[level - 1]);
        for (let child = node * NODE_SIZE; child < last; child += 1) {
          extend(box, this.boxes, (this.starts[level - 1] + child) * 4);
        }
        this.boxes.set(box, (this.starts[level] + node) * 4);
      }
    }
  }

  /** Return the rows whose boxes intersect a box. */
  search(west, north, east, south) {
    const matches = [];
    if (!this.rows.length) return matches;
    const top = this.sizes.length - 1;
    const stack = [top, 0];
    while (stack.length) {
      const node = stack.pop();
      const level = stack.pop();
      const at = (this.starts[level] + node) * 4;
      const b = this.boxes;
      if (b[at] > east || b[at + 2] < west || b[at + 1] > south || b[at + 3] < north) continue;
      if (level === 0) { matches.push(this.rows[node]); continue; }
      const last = Math.min((node + 1) * NODE_SIZE, this.sizes[level - 1]);
      for (let child = node * NODE_SIZE; child < last; child += 1) stack.push(level - 1, child);
    }
    return matches;
  }
}

function extend(box, boxes, at) {
  if (boxes[at] < box[0]) box[0] = boxes[at];
  if (boxes[at + 1] < box[1]) box[1] = boxes[at + 1];
  if (boxes[at + 2] > box[2]) box[2] = boxes[at + 2];
  if (boxes[at + 3] > box[3]) box[3] = boxes[at + 3];
}

/** Return the position of a cell of a grid of 65,536 by 65,536 along the Hilbert curve. */
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
