// Drawing a region by hand: by pointer, by keyboard over the middle of the map, or as numbers.

import { byId, h, rounded } from "./dom.js";
import { aroundCircle, boxOf, distance } from "./geometry.js";
import { map, palette, space } from "./map.js";

const L = window.L;
const CLOSES = 12; // pixels from the first corner
const HINTS = {
  polygon: "Click corner after corner; double-click or Enter closes it, Backspace takes one back.",
  rectangle: "Press at one corner and drag to the other.",
  circle: "Press at the middle and drag outwards.",
  publish: "Click where the event is.",
};

const sketch = L.layerGroup().addTo(map);
let mode = "";
let points = []; // of what is being drawn, [x, y]
let pressed = false;
let released = -Infinity;
let follow = () => {};
let published = () => {};
export let shape = null;

export function onShape(listener) { follow = listener; }
export function onPlace(listener) { published = listener; }
export const drawing = () => mode;

/** Whether the pointer just let go of what it drew: the click that follows means nothing else. */
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
  byId("hint").textContent = mode ? `${HINTS[mode]} With the keyboard: move the map, Enter takes its middle. Esc stops.` : "";
  document.querySelectorAll("[data-draw]").forEach((button) =>
    button.setAttribute("aria-pressed", button.dataset.draw === (mode === "publish" ? "" : mode || shape?.kind || "")));
  byId("publish-by-click").setAttribute("aria-pressed", mode === "publish");
  paint();
}

export function setShape(next, tell = true) {
  shape = next;
  points = [];
  setMode(mode === "publish" ? mode : "");
  if (tell) follow(shape);
}

/** Coordinates to as many digits as the map can show. */
export function exact(value) {
  const digits = space === "planar" ? Math.max(0, Math.ceil(Math.log10(2 ** map.getZoom())) + 1) : Math.min(7, Math.max(3, Math.ceil(map.getZoom() / 3) + 2));
  return Number(value.toFixed(Math.min(12, digits)));
}

const position = ({ lat, lng }) => {
  const held = space === "planar" ? [lng, lat] : [Math.max(-180, Math.min(180, lng)), Math.max(-90, Math.min(90, lat))];
  return held.map(exact);
};

function finished(second) {
  const [first] = points;
  if (mode === "rectangle") {
    const box = boxOf([first, second]);
    if (box[0] < box[2] && box[1] < box[3]) return setShape({ kind: "rectangle", box });
  } else if (mode === "circle") {
    const radius = Number(distance(space, ...first, ...second).toPrecision(4));
    if (radius > 0) return setShape({ kind: "circle", center: first, radius });
  }
  points = [];
  return paint(); // nothing was spanned
}

function closePolygon() {
  released = performance.now();
  if (points.length >= 3) setShape({ kind: "polygon", corners: points });
}

function corner(at) {
  const last = points.at(-1);
  if (last && last[0] === at[0] && last[1] === at[1]) return;
  if (points.length >= 3) {
    const there = map.latLngToContainerPoint([points[0][1], points[0][0]]);
    if (there.distanceTo(map.latLngToContainerPoint([at[1], at[0]])) < CLOSES) { closePolygon(); return; }
  }
  points.push(at);
  paint(at);
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
  finished(position(map.mouseEventToLatLng(event)));
});
map.on("click", (event) => {
  if (mode === "polygon") corner(position(event.latlng));
  else if (mode === "publish") published(position(event.latlng));
});
map.on("dblclick", () => { if (mode === "polygon") closePolygon(); });
container.addEventListener("keydown", (event) => {
  if (!mode || event.target !== container) return;
  const middle = position(map.getCenter());
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    if (mode === "publish") published(middle);
    else if (mode === "polygon") {
      const last = points.at(-1);
      if (last && last[0] === middle[0] && last[1] === middle[1]) closePolygon(); else corner(middle);
    } else if (points.length) finished(middle);
    else { points = [middle]; paint(middle); }
  } else if (event.key === "Backspace" && mode === "polygon") {
    event.preventDefault();
    points.pop();
    paint();
  }
});

function paint(pointer) {
  sketch.clearLayers();
  const style = { color: palette().chosen, weight: 2, smoothFactor: 0.3, fillOpacity: 0.1, interactive: false };
  const latlngs = (all) => all.map(([x, y]) => [y, x]);
  if (mode && points.length) {
    if (mode === "polygon") {
      const line = pointer ? [...points, pointer] : points;
      sketch.addLayer(L.polyline(latlngs(line), { ...style, dashArray: "5 5" }));
      points.forEach(([x, y]) => sketch.addLayer(L.circleMarker([y, x], { ...style, radius: 4, fillOpacity: 1 })));
    } else if (pointer) {
      const [first] = points;
      sketch.addLayer(mode === "rectangle" ? L.rectangle(latlngs([first, pointer]), style) : round(first, distance(space, ...first, ...pointer), style));
    }
    return;
  }
  if (shape?.kind === "rectangle") sketch.addLayer(L.rectangle([[shape.box[1], shape.box[0]], [shape.box[3], shape.box[2]]], style));
  if (shape?.kind === "circle") sketch.addLayer(round(shape.center, shape.radius, style));
  if (shape?.kind === "polygon") sketch.addLayer(L.polygon(latlngs(shape.corners), style));
}

function round([x, y], radius, style) {
  if (space === "planar") return L.circle([y, x], { ...style, radius });
  const flat = aroundCircle(x, y, radius, 96);
  const corners = [];
  for (let i = 0; i < flat.length; i += 2) corners.push([flat[i + 1], flat[i]]);
  return L.polygon(corners, style);
}

// The same as numbers.

export function coordinateFields(into) {
  if (!shape) { into.replaceChildren(); return; }
  const number = (label, value, set) => h("label", { class: "field" }, label, h("input", {
    type: "number", step: "any", value, onchange: (e) => { if (e.target.value !== "") { set(Number(e.target.value)); setShape({ ...shape }); } },
  }));
  const xy = space === "planar" ? ["X", "Y"] : ["Longitude", "Latitude"];
  if (shape.kind === "rectangle") {
    const sides = space === "planar" ? ["Least x", "Least y", "Most x", "Most y"] : ["West", "South", "East", "North"];
    into.replaceChildren(...sides.map((label, n) => number(label, shape.box[n], (v) => { shape.box = shape.box.with(n, v); })));
  } else if (shape.kind === "circle") {
    into.replaceChildren(
      number(xy[0], shape.center[0], (v) => { shape.center = [v, shape.center[1]]; }),
      number(xy[1], shape.center[1], (v) => { shape.center = [shape.center[0], v]; }),
      number(space === "planar" ? "Radius" : "Radius in metres", shape.radius, (v) => { shape.radius = v; }));
  } else {
    into.replaceChildren(h("label", { class: "field wide" }, `Corners, ${xy.join(" ").toLowerCase()} on each line`,
      Object.assign(h("textarea", { rows: "4", onchange: (e) => {
        const corners = e.target.value.trim().split("\n").map((line) => line.trim().split(/[\s,]+/).map(Number));
        if (corners.length >= 3 && corners.every((one) => one.length === 2 && one.every(Number.isFinite))) setShape({ kind: "polygon", corners });
      } }), { value: shape.corners.map((one) => one.join(" ")).join("\n") })));
  }
}

/** A shape in the middle of the map, to begin with where no pointer is used. */
export function shapeInTheMiddle(kind) {
  const bounds = map.getBounds().pad(-0.35);
  const box = [bounds.getWest(), bounds.getSouth(), bounds.getEast(), bounds.getNorth()].map(exact);
  const center = position(map.getCenter());
  if (kind === "rectangle") return { kind, box };
  if (kind === "circle") return { kind, center, radius: Number(distance(space, ...center, box[2], center[1]).toPrecision(3)) };
  return { kind, corners: [[box[0], box[1]], [box[2], box[1]], [center[0], box[3]]] };
}

export const shapeText = () => (shape?.kind === "circle" ? `circle of ${rounded(shape.radius)}${space === "planar" ? "" : " m"}` : shape?.kind ?? "");
