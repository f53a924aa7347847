// The table of subscriptions and their projected shapes, in growing typed arrays.

export const KINDS = ["expression", "track", "composite"];
export const BOX = 0, POLYGON = 1, LINE = 2, POINT = 3, CIRCLE = 4, AWAY = 0x80;

class GrowingArray {
  constructor(Type) { this.Type = Type; this.length = 0; this.items = new Type(1024); }

  reserve(count) {
    if (this.length + count <= this.items.length) return;
    const larger = new this.Type(Math.max(this.items.length * 2, this.length + count));
    larger.set(this.items.subarray(0, this.length));
    this.items = larger;
  }

  push(...values) {
    this.reserve(values.length);
    for (const value of values) { this.items[this.length] = value; this.length += 1; }
  }
}

export class Subscriptions {
  constructor(projection, circles) {
    this.projection = projection;
    this.circles = circles;
    this.clear();
  }

  clear() {
    this.rows = new Map(); // from id to row
    this.ids = [];
    this.subscriberOf = []; // of each row, as a position in `subscribers`
    this.subscribers = [];
    this.subscriberRows = new Map();
    this.summaries = [];
    this.searchText = []; // lowercase id and summary
    this.kinds = [];
    this.firstShape = []; // the shapes of a row are contiguous
    this.shapeCount = [];
    this.kind_ = new GrowingArray(Uint8Array);
    this.owner_ = new GrowingArray(Uint32Array);
    this.start_ = new GrowingArray(Uint32Array);
    this.start_.push(0);
    this.numbers = new GrowingArray(Float64Array);
    this.boxes = new GrowingArray(Float64Array);
  }

  get rowCount() { return this.rows.size; }
  get owner() { return this.owner_.items; }
  get kind() { return this.kind_.items; }

  /** Add the rows of a block; server/console/subscription_map.py has the layout. */
  add(buffer) {
    const view = new DataView(buffer);
    const length = view.getUint32(4, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    const n = header.ids.length;
    let offset = 8 + length;
    const take = (Type, size) => {
      const array = new Type(buffer, offset, size);
      offset += array.byteLength;
      return array;
    };
    const numbers = take(Float64Array, header.numbers);
    const starts = take(Uint32Array, header.shapes + 1);
    const owners = take(Uint32Array, header.shapes);
    const subscriberOf = take(Uint32Array, n);
    const summaryOf = take(Uint32Array, n);
    const shapeKinds = take(Uint8Array, header.shapes);
    const kinds = take(Uint8Array, n);
    const subscribers = header.subscribers.map((name) => this.subscriber(name));
    let shape = 0;
    for (let k = 0; k < n; k += 1) {
      const row = this.ids.length;
      this.rows.set(header.ids[k], row);
      this.ids.push(header.ids[k]);
      this.subscriberOf.push(subscribers[subscriberOf[k]]);
      this.summaries.push(header.summaries[summaryOf[k]]);
      this.searchText.push(`${header.ids[k]}\n${header.summaries[summaryOf[k]]}`.toLowerCase());
      this.kinds.push(kinds[k]);
      this.firstShape.push(this.kind_.length);
      for (; shape < header.shapes && owners[shape] === k; shape += 1) {
        this.addShape(row, shapeKinds[shape], numbers.subarray(starts[shape], starts[shape + 1]));
      }
      this.shapeCount.push(this.kind_.length - this.firstShape[row]);
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

  addShape(row, kind, coordinates) {
    const { projection } = this;
    const away = kind & AWAY;
    let baseKind = kind & ~AWAY;
    let numbers;
    if (baseKind === BOX) {
      const [west, south, east, north] = coordinates;
      numbers = [projection.x(west), projection.y(north), projection.x(east), projection.y(south)];
    } else if (baseKind === CIRCLE) {
      const [x, y, radiusOnGround] = coordinates;
      const radius = this.circles.radiusInWorld(projection, y, radiusOnGround);
      if (radius === null) {
        baseKind = POLYGON;
        numbers = this.projected(this.circles.circlePolygon(x, y, radiusOnGround));
      } else {
        numbers = [projection.x(x), projection.y(y), radius];
      }
    } else {
      numbers = this.projected(coordinates);
    }
    this.kind_.push(baseKind | away);
    this.owner_.push(row);
    this.numbers.push(...numbers);
    this.start_.push(this.numbers.length);
    this.boxes.push(...boundingBox(baseKind, numbers));
  }

  projected(coordinates) {
    const numbers = new Array(coordinates.length);
    for (let i = 0; i < coordinates.length; i += 2) {
      numbers[i] = this.projection.x(coordinates[i]);
      numbers[i + 1] = this.projection.y(coordinates[i + 1]);
    }
    return numbers;
  }

  remove(id) { this.rows.delete(id); }

  hasShapes(row) { return this.shapeCount[row] > 0; }

  /** Return the rows that pass a filter, and their shapes. */
  select({ text, subscriber, kind }) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const kindCode = KINDS.indexOf(kind);
    const shown = [];
    let shapeCount = 0;
    for (const row of this.rows.values()) {
      if (kindCode >= 0 && this.kinds[row] !== kindCode) continue;
      if (subscriber && this.subscribers[this.subscriberOf[row]] !== subscriber) continue;
      if (!words.every((word) => this.searchText[row].includes(word))) continue;
      shown.push(row);
      shapeCount += this.shapeCount[row];
    }
    const shapes = new Uint32Array(shapeCount);
    let k = 0;
    for (const row of shown) {
      for (let n = 0; n < this.shapeCount[row]; n += 1) { shapes[k] = this.firstShape[row] + n; k += 1; }
    }
    return { shown, shapes };
  }

  describe(row) {
    return {
      id: this.ids[row], subscriber: this.subscribers[this.subscriberOf[row]],
      summary: this.summaries[row], kind: KINDS[this.kinds[row]],
    };
  }

  /** Return the shapes of a subscription, in world coordinates. */
  shapesOf(id) {
    const row = this.rows.get(id);
    if (row === undefined) return [];
    const shapes = [];
    const end = this.firstShape[row] + this.shapeCount[row];
    for (let shape = this.firstShape[row]; shape < end; shape += 1) {
      shapes.push({
        kind: this.kind[shape], numbers: [...this.coordinates(shape)],
        box: [...this.boxes.items.subarray(shape * 4, shape * 4 + 4)],
      });
    }
    return shapes;
  }

  coordinates(shape) {
    return this.numbers.items.subarray(this.start_.items[shape], this.start_.items[shape + 1]);
  }

  size(shape) {
    const b = this.boxes.items;
    return (b[shape * 4 + 2] - b[shape * 4]) + (b[shape * 4 + 3] - b[shape * 4 + 1]);
  }

  /** Return whether a point is in a shape, or within reach of a line or a point. */
  contains(shape, x, y, reach) {
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

function boundingBox(kind, c) {
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
