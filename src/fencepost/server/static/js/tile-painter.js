// Paints a tile of the map: land, graticule, and the shapes of subscriptions.

import { AWAY, BOX, CIRCLE, LINE, POINT } from "./subscriptions-table.js";

const MIN_SIZE = 3; // pixels; smaller shapes are counted in cells instead of drawn
const MIN_SIZE_AMONG_MANY = 7;
const MIN_SIZE_DASHED = 12;
const MANY_SHAPES = 1500; // of a tile
const CELL_SIZE = 3;
const MAX_DOUBLINGS = 7; // of the count of a cell, up to its full colour
const SHAPES_PER_PATH = 48; // of more than FEW_SHAPES
const FEW_SHAPES = 400;
const GRATICULE_STEPS = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];

/** Return the distance between graticule lines at a zoom, in degrees or planar units. */
export function graticuleStep(planar, zoom, latitude = 0) {
  const pixels = planar ? 2 ** zoom : ((256 * 2 ** zoom) / 360) / Math.cos((latitude * Math.PI) / 180);
  if (!planar) return GRATICULE_STEPS.find((step) => step * pixels <= 220) ?? GRATICULE_STEPS.at(-1);
  const minStep = 120 / pixels;
  const power = 10 ** Math.floor(Math.log10(minStep));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= minStep);
}

export class TilePainter {
  constructor(projection) {
    this.projection = projection;
    this.ratio = 1;
    this.palette = null;
    this.rings = [];
  }

  setStyle(palette, ratio, land) {
    this.palette = palette;
    this.ratio = ratio;
    if (land) this.rings = land.map((ring) => this.projected(ring));
  }

  projected(ring) {
    const numbers = new Float64Array(ring.length);
    for (let i = 0; i < ring.length; i += 2) {
      numbers[i] = this.projection.x(ring[i]);
      numbers[i + 1] = this.projection.y(ring[i + 1]);
    }
    return numbers;
  }

  paint({ x, y, z, size }, table, index) {
    const pixels = size * this.ratio;
    const canvas = new OffscreenCanvas(pixels, pixels);
    const ctx = canvas.getContext("2d");
    const scale = 2 ** z * this.ratio; // from world coordinates to canvas pixels
    const west = (x * size) / 2 ** z;
    const north = (y * size) / 2 ** z;
    const frame = { ctx, scale, west, north, pixels, width: pixels / scale };
    ctx.lineJoin = "round";
    ctx.fillStyle = this.palette.sea;
    ctx.fillRect(0, 0, pixels, pixels);
    if (!this.projection.planar && z < 8) this.paintLand(frame, z);
    this.paintGraticule(frame, z);
    this.paintShapes(frame, table, index);
    return canvas.transferToImageBitmap();
  }

  paintLand({ ctx, scale, west, north }, z) {
    ctx.globalAlpha = z > 5 ? (8 - z) / 3 : 1; // the coastline is too coarse for high zooms
    ctx.beginPath();
    for (const ring of this.rings) {
      for (let i = 0; i < ring.length; i += 2) {
        const px = (ring[i] - west) * scale, py = (ring[i + 1] - north) * scale;
        if (i) ctx.lineTo(px, py); else ctx.moveTo(px, py);
      }
      ctx.closePath();
    }
    ctx.fillStyle = this.palette.land;
    ctx.fill("evenodd");
    ctx.strokeStyle = this.palette.coast;
    ctx.lineWidth = this.ratio * 0.75;
    ctx.stroke();
    ctx.globalAlpha = 1;
  }

  paintGraticule({ ctx, scale, west, north, pixels, width }, z) {
    const step = graticuleStep(this.projection.planar, z);
    ctx.strokeStyle = this.palette.graticule;
    ctx.lineWidth = this.ratio * 0.75;
    ctx.beginPath();
    if (this.projection.planar) {
      for (let at = Math.ceil(west / step) * step; at <= west + width; at += step) line(ctx, (at - west) * scale, 0, 0, pixels);
      for (let at = Math.ceil(north / step) * step; at <= north + width; at += step) line(ctx, 0, (at - north) * scale, pixels, 0);
    } else {
      const from = (west / 256) * 360 - 180, to = ((west + width) / 256) * 360 - 180;
      for (let n = Math.ceil(from / step); n * step <= to; n += 1) line(ctx, (this.projection.x(n * step) - west) * scale, 0, 0, pixels);
      const top = latitude(north), bottom = latitude(north + width);
      for (let n = Math.ceil(bottom / step); n * step <= top; n += 1) line(ctx, 0, (this.projection.y(n * step) - north) * scale, pixels, 0);
    }
    ctx.stroke();
  }

  paintShapes(frame, table, index) {
    const { ctx, scale, west, north, pixels, width } = frame;
    const margin = (4 * this.ratio) / scale;
    const shapes = index.search(west - margin, north - margin, west + width + margin, north + width + margin);
    if (!shapes.length) return;
    const side = Math.ceil(pixels / (CELL_SIZE * this.ratio));
    const cell = CELL_SIZE * this.ratio;
    const counts = [null, null, null, null]; // of each cell, by kind; AWAY shapes are the last kind
    const large = [[], [], []];
    const away = [];
    const boxes = table.boxes.items;
    const limit = (length) => (length * this.ratio) / scale;
    const minSize = limit(shapes.length > MANY_SHAPES ? MIN_SIZE_AMONG_MANY : MIN_SIZE);
    const minSizeAway = limit(MIN_SIZE_DASHED);
    for (const shape of shapes) {
      const at = shape * 4;
      const kind = table.kind[shape] & AWAY ? 3 : table.kinds[table.owner[shape]];
      const minSizeOfKind = kind === 3 ? minSizeAway : minSize;
      if (boxes[at + 2] - boxes[at] < minSizeOfKind && boxes[at + 3] - boxes[at + 1] < minSizeOfKind) {
        const cx = Math.floor((((boxes[at] + boxes[at + 2]) / 2 - west) * scale) / cell);
        const cy = Math.floor((((boxes[at + 1] + boxes[at + 3]) / 2 - north) * scale) / cell);
        if (cx < 0 || cy < 0 || cx >= side || cy >= side) continue;
        counts[kind] ??= new Uint32Array(side * side);
        counts[kind][cy * side + cx] += 1;
      } else if (kind === 3) {
        away.push(shape);
      } else {
        large[kind].push(shape);
      }
    }
    const colours = [...this.palette.kinds, this.palette.away];
    large.forEach((group, kind) => this.paintLarge(frame, table, group, colours[kind]));
    this.paintAway(frame, table, away);
    [3, 0, 1, 2].forEach((kind) => counts[kind] && paintCells(ctx, counts[kind], side, cell, colours[kind]));
  }

  paintLarge(frame, table, shapes, colour) {
    const { ctx } = frame;
    if (!shapes.length) return;
    const perPath = shapes.length <= FEW_SHAPES ? 1 : SHAPES_PER_PATH;
    const fill = Math.max(0.035, 0.16 / Math.sqrt(1 + shapes.length / 40));
    ctx.fillStyle = colour;
    ctx.strokeStyle = colour;
    ctx.lineWidth = this.ratio * (shapes.length <= FEW_SHAPES ? 1.25 : 0.75);
    for (let start = 0; start < shapes.length; start += perPath) {
      ctx.beginPath();
      const last = Math.min(start + perPath, shapes.length);
      const batch = shapes.slice(start, last);
      batch.filter((shape) => table.kind[shape] !== LINE).forEach((shape) => trace(frame, table, shape, this.ratio));
      ctx.globalAlpha = fill;
      ctx.fill(perPath === 1 ? "evenodd" : "nonzero");
      batch.filter((shape) => table.kind[shape] === LINE).forEach((shape) => trace(frame, table, shape, this.ratio));
      ctx.globalAlpha = shapes.length <= FEW_SHAPES ? 0.85 : 0.4;
      ctx.stroke();
    }
    ctx.globalAlpha = 1;
  }

  paintAway(frame, table, shapes) {
    const { ctx } = frame;
    if (!shapes.length) return;
    ctx.setLineDash([5 * this.ratio, 4 * this.ratio]);
    ctx.strokeStyle = this.palette.away;
    ctx.lineWidth = this.ratio;
    ctx.beginPath();
    shapes.forEach((shape) => trace(frame, table, shape, this.ratio));
    ctx.stroke();
    ctx.setLineDash([]);
  }
}

function line(ctx, x, y, dx, dy) {
  ctx.moveTo(x, y);
  ctx.lineTo(x + dx, y + dy);
}

const latitude = (y) => (Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / 256))) * 180) / Math.PI;

/** Paint counts of small shapes: the higher the count of a cell, the stronger its colour. */
function paintCells(ctx, cells, side, cell, colour) {
  ctx.fillStyle = colour;
  for (let at = 0; at < cells.length; at += 1) {
    if (!cells[at]) continue;
    ctx.globalAlpha = 0.2 + 0.7 * Math.min(1, Math.log2(1 + cells[at]) / MAX_DOUBLINGS);
    ctx.fillRect((at % side) * cell, Math.floor(at / side) * cell, cell, cell);
  }
  ctx.globalAlpha = 1;
}

function trace({ ctx, scale, west, north, pixels }, table, shape, ratio) {
  const c = table.coordinates(shape);
  const kind = table.kind[shape] & ~AWAY;
  if (kind === BOX) {
    // Clamped to the tile: far corners of large boxes exceed the range of canvas coordinates.
    const x0 = Math.max((c[0] - west) * scale, -9), y0 = Math.max((c[1] - north) * scale, -9);
    const x1 = Math.min((c[2] - west) * scale, pixels + 9), y1 = Math.min((c[3] - north) * scale, pixels + 9);
    ctx.rect(x0, y0, x1 - x0, y1 - y0);
  } else if (kind === CIRCLE || kind === POINT) {
    const radius = kind === CIRCLE ? c[2] * scale : 3.5 * ratio;
    const px = (c[0] - west) * scale, py = (c[1] - north) * scale;
    ctx.moveTo(px + radius, py);
    ctx.arc(px, py, radius, 0, 2 * Math.PI);
  } else {
    let isInPath = false;
    for (let i = 0; i < c.length; i += 2) {
      if (Number.isNaN(c[i])) { if (kind !== LINE) ctx.closePath(); isInPath = false; continue; }
      const px = (c[i] - west) * scale, py = (c[i + 1] - north) * scale;
      if (isInPath) ctx.lineTo(px, py); else ctx.moveTo(px, py);
      isInPath = true;
    }
    if (kind !== LINE) ctx.closePath();
  }
}
