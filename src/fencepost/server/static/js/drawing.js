// Draws a shape on the map: with the pointer, with the keyboard at the map's centre, or as numbers.

import { byId, h, rounded } from "./dom.js";
import { boxOf, circlePolygon, distance } from "./geometry.js";
import { map, palette, space } from "./map.js";

const L = window.L;
const CLOSE_DISTANCE = 12; // pixels from the first corner within which a click closes a polygon
const HINTS = {
  polygon: "Click each corner. Double-click or Enter closes the polygon, Backspace removes the last corner.",
  rectangle: "Drag from one corner to the opposite corner.",
  circle: "Drag from the centre outwards.",
  publish: "Click the location of the event.",
};

const sketch = L.layerGroup().addTo(map);
let mode = "";
let points = []; // corners of the unfinished shape, [x, y]
let pressed = false;
let released = -Infinity;
let shapeListener = () => {};
let locationListener = () => {};
export let shape = null;

export function onShape(listener) { shapeListener = listener; }
export function onLocation(listener) { locationListener = listener; }
export const drawing = () => mode;

/** Return whether a shape was just finished, so that the following click must be ignored. */
export const drewJustNow = () => performance.now() - released < 300;

export function setMode(next) {
  mode = next;
  points = [];
  pressed = false;
  const container = byId("map");
  container.dataset.mode = mode;
  if (!mode) delete container.dataset.mode;
  map.dragging[mode === "rectangle" || mode === "circle" ? "disable" : "enable"]();
  byId("hint").hidden = !mode;
  byId("hint").textContent = mode ? `${HINTS[mode]} With the keyboard: move the map and press Enter to use its centre. Esc stops.` : "";
  document.querySelectorAll("[data-draw]").forEach((button) =>
    button.setAttribute("aria-pressed", button.dataset.draw === (mode === "publish" ? "" : mode || shape?.kind || "")));
  byId("publish-by-click").setAttribute("aria-pressed", mode === "publish");
  paint();
}

export function setShape(next, notify = true) {
  shape = next;
  points = [];
  setMode(mode === "publish" ? mode : "");
  if (notify) shapeListener(shape);
}

/** Round a coordinate to the resolution of the map. */
export function roundCoordinate(value) {
  const digits = space === "planar" ? Math.max(0, Math.ceil(Math.log10(2 ** map.getZoom())) + 1) : Math.min(7, Math.max(3, Math.ceil(map.getZoom() / 3) + 2));
  return Number(value.toFixed(Math.min(12, digits)));
}

const position = ({ lat, lng }) => {
  const clamped = space === "planar" ? [lng, lat] : [Math.max(-180, Math.min(180, lng)), Math.max(-90, Math.min(90, lat))];
  return clamped.map(roundCoordinate);
};

function finish(second) {
  const [first] = points;
  if (mode === "rectangle") {
    const box = boxOf([first, second]);
    if (box[0] < box[2] && box[1] < box[3]) return setShape({ kind: "rectangle", box });
  } else if (mode === "circle") {
    const radius = Number(distance(space, ...first, ...second).toPrecision(4));
    if (radius > 0) return setShape({ kind: "circle", center: first, radius });
  }
  points = [];
  return paint(); // the shape is empty
}

function closePolygon() {
  released = performance.now();
  if (points.length >= 3) setShape({ kind: "polygon", corners: points });
}

function addCorner(corner) {
  const last = points.at(-1);
  if (last && last[0] === corner[0] && last[1] === corner[1]) return;
  if (points.length >= 3) {
    const first = map.latLngToContainerPoint([points[0][1], points[0][0]]);
    if (first.distanceTo(map.latLngToContainerPoint([corner[1], corner[0]])) < CLOSE_DISTANCE) { closePolygon(); return; }
  }
  points.push(corner);
  paint(corner);
}

const container = byId("map");

container.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || (mode !== "rectangle" && mode !== "circle")) return;
  container.setPointerCapture(event.pointerId);
  pressed = true;
  points = [position(map.mouseEventToLatLng(event))];
});
container.addEventListener("pointermove", (event) => {
  if (pressed || (mode === "polygon" && points.length)) paint(position(map.mouseEventToLatLng(event)));
});
container.addEventListener("pointerup", (event) => {
  if (!pressed) return;
  pressed = false;
  released = performance.now();
  finish(position(map.mouseEventToLatLng(event)));
});
map.on("click", (event) => {
  if (mode === "polygon") addCorner(position(event.latlng));
  else if (mode === "publish") locationListener(position(event.latlng));
});
map.on("dblclick", () => { if (mode === "polygon") closePolygon(); });
container.addEventListener("keydown", (event) => {
  if (!mode || event.target !== container) return;
  const centre = position(map.getCenter());
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    if (mode === "publish") locationListener(centre);
    else if (mode === "polygon") {
      const last = points.at(-1);
      if (last && last[0] === centre[0] && last[1] === centre[1]) closePolygon(); else addCorner(centre);
    } else if (points.length) finish(centre);
    else { points = [centre]; paint(centre); }
  } else if (event.key === "Backspace" && mode === "polygon") {
    event.preventDefault();
    points.pop();
    paint();
  }
});

function paint(pointer) {
  sketch.clearLayers();
  const style = { color: palette().selected, weight: 2, smoothFactor: 0.3, fillOpacity: 0.1, interactive: false };
  const latlngs = (positions) => positions.map(([x, y]) => [y, x]);
  if (mode && points.length) {
    if (mode === "polygon") {
      const line = pointer ? [...points, pointer] : points;
      sketch.addLayer(L.polyline(latlngs(line), { ...style, dashArray: "5 5" }));
      points.forEach(([x, y]) => sketch.addLayer(L.circleMarker([y, x], { ...style, radius: 4, fillOpacity: 1 })));
    } else if (pointer) {
      const [first] = points;
      sketch.addLayer(mode === "rectangle" ? L.rectangle(latlngs([first, pointer]), style) : circle(first, distance(space, ...first, ...pointer), style));
    }
    return;
  }
  if (shape?.kind === "rectangle") sketch.addLayer(L.rectangle([[shape.box[1], shape.box[0]], [shape.box[3], shape.box[2]]], style));
  if (shape?.kind === "circle") sketch.addLayer(circle(shape.center, shape.radius, style));
  if (shape?.kind === "polygon") sketch.addLayer(L.polygon(latlngs(shape.corners), style));
}

function circle([x, y], radius, style) {
  if (space === "planar") return L.circle([y, x], { ...style, radius });
  const coordinates = circlePolygon(x, y, radius, 96);
  const corners = [];
  for (let i = 0; i < coordinates.length; i += 2) corners.push([coordinates[i + 1], coordinates[i]]);
  return L.polygon(corners, style);
}

// The shape as numbers

/** Fill an element with fields for the coordinates of the shape. */
export function coordinateFields(element) {
  if (!shape) { element.replaceChildren(); return; }
  const number = (label, value, set) => h("label", { class: "field" }, label, h("input", {
    type: "number", step: "any", value, onchange: (e) => { if (e.target.value !== "") { set(Number(e.target.value)); setShape({ ...shape }); } },
  }));
  const xy = space === "planar" ? ["X", "Y"] : ["Longitude", "Latitude"];
  if (shape.kind === "rectangle") {
    const sides = space === "planar" ? ["Minimum X", "Minimum Y", "Maximum X", "Maximum Y"] : ["West", "South", "East", "North"];
    element.replaceChildren(...sides.map((label, n) => number(label, shape.box[n], (v) => { shape.box = shape.box.with(n, v); })));
  } else if (shape.kind === "circle") {
    element.replaceChildren(
      number(xy[0], shape.center[0], (v) => { shape.center = [v, shape.center[1]]; }),
      number(xy[1], shape.center[1], (v) => { shape.center = [shape.center[0], v]; }),
      number(space === "planar" ? "Radius" : "Radius in metres", shape.radius, (v) => { shape.radius = v; }));
  } else {
    element.replaceChildren(h("label", { class: "field wide" }, `Corners: ${xy.join(" and ").toLowerCase()} of one corner per line`,
      Object.assign(h("textarea", { rows: "4", onchange: (e) => {
        const corners = e.target.value.trim().split("\n").map((line) => line.trim().split(/[\s,]+/).map(Number));
        if (corners.length >= 3 && corners.every((corner) => corner.length === 2 && corner.every(Number.isFinite))) setShape({ kind: "polygon", corners });
      } }), { value: shape.corners.map((corner) => corner.join(" ")).join("\n") })));
  }
}

/** Return a shape at the centre of the map, to start from without a pointer. */
export function shapeAtCentre(kind) {
  const bounds = map.getBounds().pad(-0.35);
  const box = [bounds.getWest(), bounds.getSouth(), bounds.getEast(), bounds.getNorth()].map(roundCoordinate);
  const center = position(map.getCenter());
  if (kind === "rectangle") return { kind, box };
  if (kind === "circle") return { kind, center, radius: Number(distance(space, ...center, box[2], center[1]).toPrecision(3)) };
  return { kind, corners: [[box[0], box[1]], [box[2], box[1]], [center[0], box[3]]] };
}

export const shapeText = () => (shape?.kind === "circle" ? `circle of ${rounded(shape.radius)}${space === "planar" ? "" : " m"}` : shape?.kind ?? "");
