// Subscriptions and their shapes in typed arrays that grow; shapes are projected when they come.

export const KINDS = ["expression", "track", "composite"];
export const BOX = 0, POLYGON = 1, LINE = 2, POINT = 3, CIRCLE = 4, AWAY = 0x80;

class Growing {
  constructor(Type) { this.Type = Type; this.length = 0; this.items = new Type(1024); }

  room(more) {
    if (this.length + more <= this.items.length) return;
    const wider = new this.Type(Math.max(this.items.length * 2, this.length + more));
    wider.set(this.items.subarray(0, this.length));
    this.items = wider;
  }

  push(...values) {
    this.room(values.length);
    for (const value of values) { this.items[this.length] = value; this.length += 1; }
  }
}

export class Subscriptions {
  constructor(to, circles) {
    this.to = to;
    this.circles = circles;
    this.clear();
  }

  clear() {
    this.rows = new Map(); // from id to row
    this.ids = [];
    this.whose = []; // of each row, as a position in `subscribers`
    this.subscribers = [];
    this.subscriberRows = new Map();
    this.summaries = [];
    this.found = []; // lowercase text to search in
    this.kinds = [];
    this.first = []; // shapes of a row lie together
    this.count = [];
    this.kind_ = new Growing(Uint8Array);
    this.owner_ = new Growing(Uint32Array);
    this.start_ = new Growing(Uint32Array);
    this.start_.push(0);
    this.numbers = new Growing(Float64Array);
    this.boxes = new Growing(Float64Array);
  }

  get size_() { return this.rows.size; }
  get owner() { return this.owner_.items; }
  get kind() { return this.kind_.items; }

  /** Take a block of the server. */
  add(buffer) {
    const view = new DataView(buffer);
    const length = view.getUint32(4, true);
    const told = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    const n = told.ids.length;
    let at = 8 + length;
    const take = (Type, size) => {
      const taken = new Type(buffer, at, size);
      at += taken.byteLength;
      return taken;
    };
    const numbers = take(Float64Array, told.numbers);
    const starts = take(Uint32Array, told.shapes + 1);
    const owners = take(Uint32Array, told.shapes);
    const whose = take(Uint32Array, n);
    const what = take(Uint32Array, n);
    const shapeKinds = take(Uint8Array, told.shapes);
    const kinds = take(Uint8Array, n);
    const subscribers = told.subscribers.map((name) => this.subscriber(name));
    let shape = 0;
    for (let one = 0; one < n; one += 1) {
      const row = this.ids.length;
      this.rows.set(told.ids[one], row);
      this.ids.push(told.ids[one]);
      this.whose.push(subscribers[whose[one]]);
      this.summaries.push(told.summaries[what[one]]);
      this.found.push(`${told.ids[one]}\n${told.summaries[what[one]]}`.toLowerCase());
      this.kinds.push(kinds[one]);
      this.first.push(this.kind_.length);
      for (; shape < told.shapes && owners[shape] === one; shape += 1) {
        this.addShape(row, shapeKinds[shape], numbers.subarray(starts[shape], starts[shape + 1]));
      }
      this.count.push(this.kind_.length - this.first[row]);
    }
  }

  subscriber(name) {
    let row = this.subscriberRows.get(name);
    if (row === undefined) {
      row = this.subscribers.push(name) - 1;
      this.subscriberRows.set(name, row);
    }
    return row;
  }

  addShape(row, kind, given) {
    const { to } = this;
    const away = kind & AWAY;
    const plain = kind & ~AWAY;
    let what = plain;
    let numbers;
    if (plain === BOX) {
      numbers = [to.x(given[0]), to.y(given[3]), to.x(given[2]), to.y(given[1])];
    } else if (plain === CIRCLE) {
      const radius = this.circles.radiusInWorld(to, given[1], given[2]);
      if (radius === null) {
        what = POLYGON;
        numbers = this.projected(this.circles.aroundCircle(given[0], given[1], given[2]));
      } else {
        numbers = [to.x(given[0]), to.y(given[1]), radius];
      }
    } else {
      numbers = this.projected(given);
    }
    this.kind_.push(what | away);
    this.owner_.push(row);
    this.numbers.push(...numbers);
    this.start_.push(this.numbers.length);
    this.boxes.push(...boxAround(what, numbers));
  }

  projected(given) {
    const found = new Array(given.length);
    for (let i = 0; i < given.length; i += 2) {
      found[i] = this.to.x(given[i]);
      found[i + 1] = this.to.y(given[i + 1]);
    }
    return found;
  }

  remove(id) { this.rows.delete(id); }

  hasPlace(row) { return this.count[row] > 0; }

  /** The rows that a filter lets through, and their shapes. */
  select({ text, subscriber, kind }) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = KINDS.indexOf(kind);
    const shown = [];
    let shapes = 0;
    for (const row of this.rows.values()) {
      if (wanted >= 0 && this.kinds[row] !== wanted) continue;
      if (subscriber && this.subscribers[this.whose[row]] !== subscriber) continue;
      if (!words.every((word) => this.found[row].includes(word))) continue;
      shown.push(row);
      shapes += this.count[row];
    }
    const rows = new Uint32Array(shapes);
    let at = 0;
    for (const row of shown) {
      for (let n = 0; n < this.count[row]; n += 1) { rows[at] = this.first[row] + n; at += 1; }
    }
    return { shown, rows };
  }

  told(row) {
    return {
      id: this.ids[row], subscriber: this.subscribers[this.whose[row]],
      summary: this.summaries[row], kind: KINDS[this.kinds[row]],
    };
  }

  /** The shapes of a subscription in pixels of the world, to be drawn apart. */
  shapesOf(id) {
    const row = this.rows.get(id);
    if (row === undefined) return [];
    const found = [];
    for (let shape = this.first[row]; shape < this.first[row] + this.count[row]; shape += 1) {
      found.push({
        kind: this.kind[shape], numbers: [...this.coordinates(shape)],
        box: [...this.boxes.items.subarray(shape * 4, shape * 4 + 4)],
      });
    }
    return found;
  }

  coordinates(shape) {
    return this.numbers.items.subarray(this.start_.items[shape], this.start_.items[shape + 1]);
  }

  size(shape) {
    const b = this.boxes.items;
    return (b[shape * 4 + 2] - b[shape * 4]) + (b[shape * 4 + 3] - b[shape * 4 + 1]);
  }

  /** Whether a place is in a shape, or within reach of a line or point. */
  isAt(shape, x, y, reach) {
    const c = this.coordinates(shape);
    switch (this.kind[shape] & ~AWAY) {
      case CIRCLE: return Math.hypot(x - c[0], y - c[1]) <= c[2] + reach;
      case POINT: return Math.hypot(x - c[0], y - c[1]) <= reach * 2;
      case LINE: return nearLine(c, x, y, reach * 1.5);
      case POLYGON: return inRings(c, x, y) || nearLine(c, x, y, reach);
      default: return true;
    }
  }
}

function boxAround(kind, c) {
  if (kind === BOX) return c;
  if (kind === CIRCLE) return [c[0] - c[2], c[1] - c[2], c[0] + c[2], c[1] + c[2]];
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < c.length; i += 2) {
    if (Number.isNaN(c[i])) continue;
    box[0] = Math.min(box[0], c[i]); box[1] = Math.min(box[1], c[i + 1]);
    box[2] = Math.max(box[2], c[i]); box[3] = Math.max(box[3], c[i + 1]);
  }
  return box;
}

function inRings(c, x, y) {
  let inside = false;
  for (let start = 0; start < c.length;) {
    let end = start;
    while (end < c.length && !Number.isNaN(c[end])) end += 2;
    for (let i = start, j = end - 2; i < end; j = i, i += 2) {
      if ((c[i + 1] > y) !== (c[j + 1] > y)
        && x < ((c[j] - c[i]) * (y - c[i + 1])) / (c[j + 1] - c[i + 1]) + c[i]) inside = !inside;
    }
    start = end + 2;
  }
  return inside;
}

function nearLine(c, x, y, reach) {
  for (let i = 2; i < c.length; i += 2) {
    if (Number.isNaN(c[i]) || Number.isNaN(c[i - 2])) continue;
    const dx = c[i] - c[i - 2], dy = c[i + 1] - c[i - 1];
    const t = Math.max(0, Math.min(1, ((x - c[i - 2]) * dx + (y - c[i - 1]) * dy) / (dx * dx + dy * dy || 1)));
    if (Math.hypot(x - c[i - 2] - t * dx, y - c[i - 1] - t * dy) <= reach) return true;
  }
  return false;
}
