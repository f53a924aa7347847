// The map: tiles that the worker paints, what is chosen, and where the pointer is.

import { blocks } from "./api.js";
import { byId, count, h } from "./dom.js";
import { BOX, CIRCLE, AWAY, LINE, POINT } from "./subscriptions-table.js";
import { graticuleStep } from "./tile-painter.js";

const L = window.L;
const REACH = 5; // pixels
const worker = new Worker("/console/js/map-worker.js", { type: "module" });
const answers = new Map();
const tiles = new Map(); // those on the map, by ticket
const followers = [];
let ticket = 0;
let version = "";
let loading = null;

/** Whether things may move by themselves. */
export function moves() { return !matchMedia("(prefers-reduced-motion: reduce)").matches; }

export const map = L.map("map", {
  zoomControl: false, attributionControl: false, worldCopyJump: false, doubleClickZoom: false,
  zoomSnap: 0.5, wheelPxPerZoomLevel: 100, boxZoom: false, keyboardPanDelta: 100,
  zoomAnimation: moves(), fadeAnimation: moves(), inertia: moves(),
});
const panBy = map.panBy.bind(map);
map.panBy = (offset, options) => panBy(offset, moves() ? options : { ...options, animate: false });
export let space = "wgs84";

/** Have a function told what is listed, each time it changes. */
export const onSettled = (follow) => followers.push(follow);

worker.onerror = (error) => { throw new Error(`the map's worker failed: ${error.message}`); };
worker.onmessage = ({ data }) => {
  if (data.type === "answer") {
    answers.get(data.ticket)(data.answer);
    answers.delete(data.ticket);
  } else if (data.type === "tile") {
    const tile = tiles.get(data.ticket);
    if (!tile) return data.bitmap.close();
    tile.canvas.getContext("bitmaprenderer").transferFromImageBitmap(data.bitmap);
    tile.done?.();
    tile.done = null;
  } else {
    if (data.outgrown) load(true);
    repaint();
    followers.forEach((follow) => follow(data));
  }
  return undefined;
};

function question(type, more) {
  ticket += 1;
  const mine = ticket;
  worker.postMessage({ type, ticket: mine, ...more });
  return new Promise((answered) => answers.set(mine, answered));
}

const Tiles = L.GridLayer.extend({
  createTile({ x, y, z }, done) {
    const canvas = document.createElement("canvas");
    const size = this.getTileSize().x;
    canvas.width = canvas.height = size * ratio();
    ticket += 1;
    canvas.ticket = ticket;
    const tile = { canvas, x, y, z, size, done: () => done(null, canvas) };
    tiles.set(ticket, tile);
    worker.postMessage({ type: "tile", ticket, x, y, z, size });
    return canvas;
  },
});

const ratio = () => Math.min(2, window.devicePixelRatio || 1);

function repaint() {
  for (const [mine, { x, y, z, size }] of tiles) worker.postMessage({ type: "tile", ticket: mine, x, y, z, size });
}

/** The colours of the map, from the style sheet. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    sea: colour("sea"), land: colour("land"), coast: colour("coast"), graticule: colour("graticule"),
    away: colour("muted"), kinds: [colour("expression"), colour("track"), colour("composite")],
    matched: colour("match"), missed: colour("miss"), label: colour("map-label"), chosen: colour("chosen"),
  };
}

export function applyPalette() {
  worker.postMessage({ type: "look", palette: palette(), ratio: ratio() });
  repaint();
}

export async function begin(of) {
  space = of;
  const planar = of === "planar";
  map.options.crs = planar ? L.CRS.Simple : L.CRS.EPSG3857;
  const zooms = planar ? { minZoom: -24, maxZoom: 24 } : { minZoom: 1, maxZoom: 19 };
  map.setMinZoom(zooms.minZoom);
  map.setMaxZoom(zooms.maxZoom);
  if (!planar) {
    map.setMaxBounds([[-89, -200], [89, 200]]);
    map.options.maxBoundsViscosity = 0.7;
  }
  map.setView([planar ? 0 : 25, planar ? 0 : 5], planar ? 0 : 2, { animate: false });
  worker.postMessage({ type: "begin", space: of });
  const land = planar ? null : await landRings();
  worker.postMessage({ type: "look", palette: palette(), ratio: ratio(), land });
  const layer = new Tiles({
    ...zooms, noWrap: true, keepBuffer: 2, updateWhenZooming: false, updateWhenIdle: false,
    bounds: planar ? null : [[-90, -180], [90, 180]],
  });
  layer.on("tileunload", ({ tile }) => {
    tiles.delete(tile.ticket);
    worker.postMessage({ type: "drop", ticket: tile.ticket });
  });
  layer.addTo(map);
  new ResizeObserver(() => map.invalidateSize({ animate: false })).observe(byId("map"));
}

async function landRings() {
  const { rings } = await (await fetch("/console/land.json")).json();
  return rings.map((steps) => {
    const ring = [...steps];
    for (let i = 2; i < ring.length; i += 1) ring[i] += ring[i - 2];
    return ring.map((hundredths) => hundredths / 100);
  });
}

/** Get the subscriptions, or what changed since the last time. */
export function load(anew = false) {
  if (loading) {
    loading.again = true;
    return loading.done;
  }
  const mine = { again: false };
  loading = mine;
  mine.done = loadOnce(anew).finally(() => {
    loading = null;
    return mine.again ? load() : undefined;
  });
  return mine.done;
}

async function loadOnce(anew) {
  const since = anew ? "" : version;
  let total = 0;
  let loaded = 0;
  for await (const buffer of blocks(`/v1/map${since ? `?since=${encodeURIComponent(since)}` : ""}`)) {
    const length = new DataView(buffer).getUint32(4, true);
    const told = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    if (told.end) {
      version = told.version;
      worker.postMessage({ type: "finished", removed: told.removed });
      byId("map").dataset.version = version;
      byId("map").dataset.leftOut = told.left_out;
    } else if (told.ids) {
      loaded += told.ids.length;
      worker.postMessage({ type: "block", buffer }, [buffer]);
    } else {
      total = told.total;
      if (told.full) worker.postMessage({ type: "clear" });
    }
    showLoading(loaded, since || told.end || total < 5000 ? 0 : total);
  }
  showLoading(0, 0);
}

function showLoading(loaded, total) {
  byId("loading").hidden = !total;
  byId("loading-bar").max = total || 1;
  byId("loading-bar").value = loaded;
  byId("loading-text").textContent = total ? `${count(loaded)} of ${count(total)} subscriptions` : "";
}

export const setFilter = (given) => worker.postMessage({ type: "filter", given });

/** The subscriptions at a place of the map, smallest first. */
export function at(latlng, most) {
  const world = map.options.crs.latLngToPoint(latlng, 0);
  return question("hit", { x: world.x, y: world.y, reach: REACH / 2 ** map.getZoom(), most });
}

const toLatLng = (x, y) => map.options.crs.pointToLatLng(L.point(x, y), 0);

export async function fitAll() {
  const box = await question("bounds");
  if (box) fitWorld(box);
}

function fitWorld([west, north, east, south]) {
  const bounds = L.latLngBounds(toLatLng(west, north), toLatLng(east, south));
  map.fitBounds(bounds, { padding: [40, 40], maxZoom: space === "planar" ? 20 : 15, animate: moves() });
}

// What is chosen is drawn above the tiles.

const chosen = L.layerGroup().addTo(map);

export function clearChosen() { chosen.clearLayers(); }

/** Show the shapes of a subscription; with `go`, move the map to them. Whether there are any. */
export async function choose(id, go) {
  const shapes = await question("shapes", { id });
  chosen.clearLayers();
  const { chosen: color } = palette();
  for (const { kind, numbers } of shapes) chosen.addLayer(vector(kind, numbers, color));
  if (go && shapes.length) {
    const boxes = shapes.map((one) => one.box);
    fitWorld([
      Math.min(...boxes.map((b) => b[0])), Math.min(...boxes.map((b) => b[1])),
      Math.max(...boxes.map((b) => b[2])), Math.max(...boxes.map((b) => b[3])),
    ]);
  }
  return shapes.length > 0;
}

function vector(kind, c, color) {
  const style = { color, weight: 2.5, smoothFactor: 0.3, fillOpacity: 0.14, interactive: false, dashArray: kind & AWAY ? "6 5" : null };
  const plain = kind & ~AWAY;
  if (plain === BOX) return L.rectangle([toLatLng(c[0], c[1]), toLatLng(c[2], c[3])], style);
  if (plain === POINT) return L.circleMarker(toLatLng(c[0], c[1]), { ...style, radius: 7 });
  const rings = [[]];
  if (plain === CIRCLE) {
    for (let n = 0; n < 96; n += 1) {
      const turn = (n / 96) * 2 * Math.PI;
      rings[0].push(toLatLng(c[0] + c[2] * Math.cos(turn), c[1] + c[2] * Math.sin(turn)));
    }
  } else {
    for (let i = 0; i < c.length; i += 2) {
      if (Number.isNaN(c[i])) rings.push([]); else rings.at(-1).push(toLatLng(c[i], c[i + 1]));
    }
  }
  return plain === LINE ? L.polyline(rings, { ...style, fill: false }) : L.polygon(rings, style);
}

// Names of the lines of the graticule, at the edges.

const labels = h("div", { class: "graticule", "aria-hidden": "true" });
byId("map").append(labels);

function nameGraticule() {
  const planar = space === "planar";
  const bounds = map.getBounds();
  const size = map.getSize();
  const step = graticuleStep(planar, Math.round(map.getZoom()));
  const found = [];
  for (let n = Math.ceil(bounds.getWest() / step); n * step <= bounds.getEast(); n += 1) {
    if (!planar && Math.abs(n * step) > 180) continue;
    const { x } = map.latLngToContainerPoint([bounds.getSouth(), n * step]);
    if (x > 40 && x < size.x - 60) found.push(label(named(n * step, step, planar, "E", "W"), x + 3, size.y - 16));
  }
  for (let n = Math.ceil(bounds.getSouth() / step); n * step <= bounds.getNorth(); n += 1) {
    const { y } = map.latLngToContainerPoint([n * step, bounds.getWest()]);
    if (y > 130 && y < size.y - 30) found.push(label(named(n * step, step, planar, "N", "S"), 5, y - 14));
  }
  labels.replaceChildren(...found.slice(0, 80));
}

function label(text, x, y) {
  const made = h("span", {}, text);
  made.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  return made;
}

function named(value, step, planar, plus, minus) {
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const text = Math.abs(value).toFixed(digits);
  if (planar) return (value < 0 ? "−" : "") + Number(text).toLocaleString("en", { maximumFractionDigits: digits });
  return Number(text) === 0 ? "0°" : `${text}° ${value > 0 ? plus : minus}`;
}

map.on("moveend zoomend resize", nameGraticule);

// The pointer over the map says what is there.

const tip = h("div", { class: "tip", hidden: true });
byId("map").append(tip);
let asking = false;

map.on("mousemove", async (event) => {
  if (asking || byId("map").dataset.mode) return;
  asking = true;
  const { total, rows } = await at(event.latlng, 3);
  asking = false;
  tip.hidden = !total || Boolean(byId("map").dataset.mode);
  if (tip.hidden) return;
  const more = total > rows.length ? h("p", { class: "more" }, `and ${count(total - rows.length)} more`) : null;
  tip.replaceChildren(...rows.map((row) => h("p", {}, h("b", {}, row.id), " ", row.summary)), ...(more ? [more] : []));
  const { x, y } = event.containerPoint;
  const flip = x > map.getSize().x - 300;
  tip.style.transform = `translate(${flip ? x - 292 : x + 14}px, ${Math.min(y + 14, map.getSize().y - 96)}px)`;
});
map.on("mouseout movestart", () => { tip.hidden = true; });
