// Draws live events on the map; they fade as they age.

import { animates, map, palette } from "./map.js";
import { byId, h } from "./dom.js";
import { centreOf, partsOf } from "./geometry.js";

const L = window.L;
const FADE_S = 45;
const MAX_SHOWN = 1500;
const PULSE_S = 1.6;

const canvas = h("canvas", { class: "live-layer", "aria-hidden": "true" });
byId("map").append(canvas);
const ctx = canvas.getContext("2d");
let shown = []; // newest last: position, parts, centre, matched, since
let colours = null;
let isScheduled = false;
let marked = null;

export function recolour() {
  colours = palette();
  draw();
}

/** Show events that have a geometry. */
export function show(events) {
  const now = performance.now() / 1000;
  for (const { position, event, messages } of events) {
    const parts = partsOf(event);
    if (parts) shown.push({ position, parts, centre: centreOf(parts), matched: messages > 0, since: now });
  }
  if (shown.length > MAX_SHOWN) shown = shown.slice(-MAX_SHOWN);
  draw();
}

/** Mark an event, even if it has faded; null to mark none. Returns its location, or null. */
export function mark(position, event) {
  const parts = event && partsOf(event);
  marked = parts ? { position, parts, centre: centreOf(parts) } : null;
  draw();
  return marked && L.latLng(marked.centre[1], marked.centre[0]);
}

/** Return the position of the nearest event within some pixels of a point; null if there is none. */
export function eventAt(point, maxDistance = 9) {
  let nearest = null;
  let minDistance = maxDistance;
  for (const { position, centre } of shown) {
    const distance = map.latLngToContainerPoint([centre[1], centre[0]]).distanceTo(point);
    if (distance <= minDistance) { minDistance = distance; nearest = position; }
  }
  return nearest;
}

function draw() {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(paint);
}

function paint() {
  isScheduled = false;
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
  shown = shown.filter((event) => now - event.since < FADE_S);
  for (const event of shown) drawEvent(event, now);
  if (marked) {
    drawLines(marked.parts, colours.selected, 1, 2);
    const { x, y } = map.latLngToContainerPoint([marked.centre[1], marked.centre[0]]);
    ctx.beginPath();
    ctx.arc(x, y, 9, 0, 2 * Math.PI);
    ctx.strokeStyle = colours.selected;
    ctx.lineWidth = 2.5;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
  canvas.dataset.shown = shown.length;
  canvas.dataset.matched = shown.filter((event) => event.matched).length;
  if (!shown.length) return;
  if (animates()) draw(); else setTimeout(draw, 1000);
}

function drawEvent({ parts, centre, matched, since }, now) {
  const age = now - since;
  const colour = matched ? colours.matched : colours.missed;
  const opacity = Math.max(0, 1 - age / FADE_S) ** 0.8 * (matched ? 1 : 0.75);
  const { x, y } = map.latLngToContainerPoint([centre[1], centre[0]]);
  drawLines(parts, colour, opacity * 0.9, 1.5);
  if (matched && age < PULSE_S && animates()) {
    ctx.globalAlpha = (1 - age / PULSE_S) * 0.7;
    ctx.strokeStyle = colour;
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.arc(x, y, 6 + (age / PULSE_S) * 20, 0, 2 * Math.PI);
    ctx.stroke();
  }
  ctx.globalAlpha = opacity;
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.arc(x, y, matched ? 5 : 3.5, 0, 2 * Math.PI);
  ctx.fill();
  ctx.globalAlpha = opacity * 0.9;
  ctx.strokeStyle = colours.sea;
  ctx.lineWidth = 1.25;
  ctx.stroke();
}

function drawLines({ lines }, colour, opacity, width) {
  if (!lines.length) return;
  ctx.globalAlpha = opacity;
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
