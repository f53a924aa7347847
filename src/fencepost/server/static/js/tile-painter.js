// A tile of the map: land, a graticule, and the shapes of subscriptions.

import { AWAY, BOX, CIRCLE, LINE, POINT } from "./subscriptions-table.js";

const SMALL = 3; // pixels; smaller shapes are counted, not drawn one by one
const SMALL_AMONG_MANY = 7;
const SMALL_DASHED = 12;
const MANY = 1500; // shapes to a tile
const CELL = 3;
const FULL = 7; // doublings of the number in a cell up to its full colour
const TOGETHER = 48; // shapes to a path where there are many
const FEW = 400;
const STEPS = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];

/** Degrees, or units of a plane, between lines of the graticule at a zoom. */
export function graticuleStep(planar, zoom, latitude = 0) {
  const pixels = planar ? 2 ** zoom : ((256 * 2 ** zoom) / 360) / Math.cos((latitude * Math.PI) / 180);
  if (!planar) return STEPS.find((step) => step * pixels <= 220) ?? STEPS.at(-1);
  const rough = 120 / pixels;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough);
}

export class TilePainter {
  constructor(to) {
    this.to = to;
    this.ratio = 1;
    this.palette = null;
    this.rings = [];
  }

  look(palette, ratio, land) {
    this.palette = palette;
    this.ratio = ratio;
    if (land) this.rings = land.map((ring) => this.ring(ring));
  }

  ring(ring) {
    const found = new Float64Array(ring.length);
    for (let i = 0; i < ring.length; i += 2) {
      found[i] = this.to.x(ring[i]);
      found[i + 1] = this.to.y(ring[i + 1]);
    }
    return found;
  }

  paint({ x, y, z, size }, table, index) {
    const pixels = size * this.ratio;
    const canvas = new OffscreenCanvas(pixels, pixels);
    const ctx = canvas.getContext("2d");
    const scale = 2 ** z * this.ratio; // from the world to the canvas
    const west = (x * size) / 2 ** z;
    const north = (y * size) / 2 ** z;
    const frame = { ctx, scale, west, north, pixels, width: pixels / scale };
    ctx.lineJoin = "round";
    ctx.fillStyle = this.palette.sea;
    ctx.fillRect(0, 0, pixels, pixels);
    if (!this.to.planar && z < 8) this.paintLand(frame, z);
    this.paintGraticule(frame, z);
    this.paintShapes(frame, table, index);
    return canvas.transferToImageBitmap();
  }

  paintLand({ ctx, scale, west, north }, z) {
    ctx.globalAlpha = z > 5 ? (8 - z) / 3 : 1; // too coarse to be shown from near
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
    const step = graticuleStep(this.to.planar, z);
    ctx.strokeStyle = this.palette.graticule;
    ctx.lineWidth = this.ratio * 0.75;
    ctx.beginPath();
    if (this.to.planar) {
      for (let at = Math.ceil(west / step) * step; at <= west + width; at += step) line(ctx, (at - west) * scale, 0, 0, pixels);
      for (let at = Math.ceil(north / step) * step; at <= north + width; at += step) line(ctx, 0, (at - north) * scale, pixels, 0);
    } else {
      const from = (west / 256) * 360 - 180, to = ((west + width) / 256) * 360 - 180;
      for (let n = Math.ceil(from / step); n * step <= to; n += 1) line(ctx, (this.to.x(n * step) - west) * scale, 0, 0, pixels);
      const top = latitude(north), bottom = latitude(north + width);
      for (let n = Math.ceil(bottom / step); n * step <= top; n += 1) line(ctx, 0, (this.to.y(n * step) - north) * scale, pixels, 0);
    }
    ctx.stroke();
  }

  paintShapes(frame, table, index) {
    const { ctx, scale, west, north, pixels, width } = frame;
    const margin = (4 * this.ratio) / scale;
    const found = index.meeting(west - margin, north - margin, west + width + margin, north + width + margin);
    if (!found.length) return;
    const side = Math.ceil(pixels / (CELL * this.ratio));
    const cell = CELL * this.ratio;
    const counts = [null, null, null, null]; // by kind; those to stay away from last
    const large = [[], [], []];
    const away = [];
    const boxes = table.boxes.items;
    const limit = (length) => (length * this.ratio) / scale;
    const small = limit(found.length > MANY ? SMALL_AMONG_MANY : SMALL);
    const smallAway = limit(SMALL_DASHED);
    for (const shape of found) {
      const at = shape * 4;
      const kind = table.kind[shape] & AWAY ? 3 : table.kinds[table.owner[shape]];
      const least = kind === 3 ? smallAway : small;
      if (boxes[at + 2] - boxes[at] < least && boxes[at + 3] - boxes[at + 1] < least) {
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
    large.forEach((shapes, kind) => this.paintLarge(frame, table, shapes, colours[kind]));
    this.paintAway(frame, table, away);
    [3, 0, 1, 2].forEach((kind) => counts[kind] && paintCells(ctx, counts[kind], side, cell, colours[kind]));
  }

  paintLarge(frame, table, shapes, colour) {
    const { ctx } = frame;
    if (!shapes.length) return;
    const together = shapes.length <= FEW ? 1 : TOGETHER;
    const fill = Math.max(0.035, 0.16 / Math.sqrt(1 + shapes.length / 40));
    ctx.fillStyle = colour;
    ctx.strokeStyle = colour;
    ctx.lineWidth = this.ratio * (shapes.length <= FEW ? 1.25 : 0.75);
    for (let start = 0; start < shapes.length; start += together) {
      ctx.beginPath();
      const last = Math.min(start + together, shapes.length);
      const some = shapes.slice(start, last);
      some.filter((shape) => table.kind[shape] !== LINE).forEach((shape) => trace(frame, table, shape, this.ratio));
      ctx.globalAlpha = fill;
      ctx.fill(together === 1 ? "evenodd" : "nonzero");
      some.filter((shape) => table.kind[shape] === LINE).forEach((shape) => trace(frame, table, shape, this.ratio));
      ctx.globalAlpha = shapes.length <= FEW ? 0.85 : 0.4;
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

/** Small shapes: the more of them in a cell, the more of its colour. */
function paintCells(ctx, cells, side, cell, colour) {
  ctx.fillStyle = colour;
  for (let at = 0; at < cells.length; at += 1) {
    if (!cells[at]) continue;
    ctx.globalAlpha = 0.2 + 0.7 * Math.min(1, Math.log2(1 + cells[at]) / FULL);
    ctx.fillRect((at % side) * cell, Math.floor(at / side) * cell, cell, cell);
  }
  ctx.globalAlpha = 1;
}

function trace({ ctx, scale, west, north, pixels }, table, shape, ratio) {
  const c = table.coordinates(shape);
  const kind = table.kind[shape] & ~AWAY;
  if (kind === BOX) {
    // Held near the tile: far corners of large boxes are beyond what a canvas can draw.
    const x0 = Math.max((c[0] - west) * scale, -9), y0 = Math.max((c[1] - north) * scale, -9);
    const x1 = Math.min((c[2] - west) * scale, pixels + 9), y1 = Math.min((c[3] - north) * scale, pixels + 9);
    ctx.rect(x0, y0, x1 - x0, y1 - y0);
  } else if (kind === CIRCLE || kind === POINT) {
    const radius = kind === CIRCLE ? c[2] * scale : 3.5 * ratio;
    const px = (c[0] - west) * scale, py = (c[1] - north) * scale;
    ctx.moveTo(px + radius, py);
    ctx.arc(px, py, radius, 0, 2 * Math.PI);
  } else {
    let begun = false;
    for (let i = 0; i < c.length; i += 2) {
      if (Number.isNaN(c[i])) { if (kind !== LINE) ctx.closePath(); begun = false; continue; }
      const px = (c[i] - west) * scale, py = (c[i + 1] - north) * scale;
      if (begun) ctx.lineTo(px, py); else ctx.moveTo(px, py);
      begun = true;
    }
    if (kind !== LINE) ctx.closePath();
  }
}
