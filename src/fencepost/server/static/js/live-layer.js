// Events on the map, fading as they age.

import { map, moves, palette } from "./map.js";
import { byId, h } from "./dom.js";
import { middle, placesOf } from "./geometry.js";

const L = window.L;
const FADES_S = 45;
const MOST = 1500;
const PULSE_S = 1.6;

const canvas = h("canvas", { class: "live-layer", "aria-hidden": "true" });
byId("map").append(canvas);
const ctx = canvas.getContext("2d");
let shown = []; // newest last: position, places, matched, since
let colours = null;
let waiting = false;
let marked = null;

export function recolour() {
  colours = palette();
  draw();
}

/** Show events; those without a place are not shown. */
export function show(events) {
  const now = performance.now() / 1000;
  for (const { position, event, messages } of events) {
    const places = placesOf(event);
    if (places) shown.push({ position, places, at: middle(places), matched: messages > 0, since: now });
  }
  if (shown.length > MOST) shown = shown.slice(-MOST);
  draw();
}

/** Mark one event, whether it has faded or not; null for none. */
export function mark(position, event) {
  const places = event && placesOf(event);
  marked = places ? { position, places, at: middle(places) } : null;
  draw();
  return marked && L.latLng(marked.at[1], marked.at[0]);
}

/** The event nearest to a point of the container, within reach. */
export function eventAt(point, reach = 9) {
  let best = null;
  let least = reach;
  for (const one of shown) {
    const there = map.latLngToContainerPoint([one.at[1], one.at[0]]);
    const far = there.distanceTo(point);
    if (far <= least) { least = far; best = one.position; }
  }
  return best;
}

function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(paint);
}

function paint() {
  waiting = false;
  colours ??= palette();
  const size = map.getSize();
  const ratio = Math.min(2, devicePixelRatio || 1);
  if (canvas.width !== size.x * ratio || canvas.height !== size.y * ratio) {
    canvas.width = size.x * ratio;
    canvas.height = size.y * ratio;
  }
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, size.x, size.y);
  const now = performance.now() / 1000;
  shown = shown.filter((one) => now - one.since < FADES_S);
  for (const one of shown) spot(one, now);
  if (marked) {
    outline(marked.places, colours.chosen, 1, 2);
    const { x, y } = map.latLngToContainerPoint([marked.at[1], marked.at[0]]);
    ctx.beginPath();
    ctx.arc(x, y, 9, 0, 2 * Math.PI);
    ctx.strokeStyle = colours.chosen;
    ctx.lineWidth = 2.5;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
  canvas.dataset.shown = shown.length;
  canvas.dataset.matched = shown.filter((one) => one.matched).length;
  if (!shown.length) return;
  if (moves()) draw(); else setTimeout(draw, 1000);
}

function spot({ places, at, matched, since }, now) {
  const age = now - since;
  const colour = matched ? colours.matched : colours.missed;
  const strength = Math.max(0, 1 - age / FADES_S) ** 0.8 * (matched ? 1 : 0.75);
  const { x, y } = map.latLngToContainerPoint([at[1], at[0]]);
  outline(places, colour, strength * 0.9, 1.5);
  if (matched && age < PULSE_S && moves()) {
    ctx.globalAlpha = (1 - age / PULSE_S) * 0.7;
    ctx.strokeStyle = colour;
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.arc(x, y, 6 + (age / PULSE_S) * 20, 0, 2 * Math.PI);
    ctx.stroke();
  }
  ctx.globalAlpha = strength;
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.arc(x, y, matched ? 5 : 3.5, 0, 2 * Math.PI);
  ctx.fill();
  ctx.globalAlpha = strength * 0.9;
  ctx.strokeStyle = colours.sea;
  ctx.lineWidth = 1.25;
  ctx.stroke();
}

function outline({ lines }, colour, strength, width) {
  if (!lines.length) return;
  ctx.globalAlpha = strength;
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.beginPath();
  for (const line of lines) {
    line.forEach(([lon, lat], n) => {
      const { x, y } = map.latLngToContainerPoint([lat, lon]);
      if (n) ctx.lineTo(x, y); else ctx.moveTo(x, y);
    });
  }
  ctx.stroke();
}

map.on("move zoom resize viewreset", draw);
