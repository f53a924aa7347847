// The map: tiles from the worker, the selected subscription, and the tip at the pointer.

import { blocks } from "./api.js";
import { byId, count, h } from "./dom.js";
import { BOX, CIRCLE, AWAY, LINE, POINT } from "./subscriptions-table.js";
import { graticuleStep } from "./tile-painter.js";

const L = window.L;
const HIT_DISTANCE = 5; // pixels
const worker = new Worker("/console/js/map-worker.js", { type: "module" });
const pendingRequests = new Map(); // resolvers, by ticket
const tiles = new Map(); // tiles on the map, by ticket
const updateListeners = [];
let ticket = 0;
let version = "";
let loading = null;

/** Return whether animations are allowed. */
export function animates() { return !matchMedia("(prefers-reduced-motion: reduce)").matches; }

export const map = L.map("map", {
  zoomControl: false, attributionControl: false, worldCopyJump: false, doubleClickZoom: false,
  zoomSnap: 0.5, wheelPxPerZoomLevel: 100, boxZoom: false, keyboardPanDelta: 100,
  zoomAnimation: animates(), fadeAnimation: animates(), inertia: animates(),
});
const panBy = map.panBy.bind(map);
map.panBy = (offset, options) => panBy(offset, animates() ? options : { ...options, animate: false });
export let space = "wgs84";

/** Call a function with the listed subscriptions whenever they change. */
export const onUpdate = (listener) => updateListeners.push(listener);

worker.onerror = (error) => { throw new Error(`the map's worker failed: ${error.message}`); };
worker.onmessage = ({ data }) => {
  if (data.type === "answer") {
    pendingRequests.get(data.ticket)(data.answer);
    pendingRequests.delete(data.ticket);
  } else if (data.type === "tile") {
    const tile = tiles.get(data.ticket);
    if (!tile) return data.bitmap.close();
    tile.canvas.getContext("bitmaprenderer").transferFromImageBitmap(data.bitmap);
    tile.done?.();
    tile.done = null;
  } else {
    if (data.mustReload) load(true);
    repaint();
    updateListeners.forEach((listener) => listener(data));
  }
  return undefined;
};

/** Send a request to the worker. Resolves to its answer. */
function request(type, parameters) {
  ticket += 1;
  const ownTicket = ticket;
  worker.postMessage({ type, ticket: ownTicket, ...parameters });
  return new Promise((resolve) => pendingRequests.set(ownTicket, resolve));
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
  for (const [tileTicket, { x, y, z, size }] of tiles) worker.postMessage({ type: "tile", ticket: tileTicket, x, y, z, size });
}

/** Return the colours of the map, from the style sheet. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    sea: colour("sea"), land: colour("land"), coast: colour("coast"), graticule: colour("graticule"),
    away: colour("muted"), kinds: [colour("expression"), colour("track"), colour("composite")],
    matched: colour("match"), missed: colour("miss"), label: colour("map-label"), selected: colour("selected"),
  };
}

export function applyPalette() {
  worker.postMessage({ type: "style", palette: palette(), ratio: ratio() });
  repaint();
}

export async function initMap(mapSpace) {
  space = mapSpace;
  const planar = mapSpace === "planar";
  map.options.crs = planar ? L.CRS.Simple : L.CRS.EPSG3857;
  const zooms = planar ? { minZoom: -24, maxZoom: 24 } : { minZoom: 1, maxZoom: 19 };
  map.setMinZoom(zooms.minZoom);
  map.setMaxZoom(zooms.maxZoom);
  if (!planar) {
    map.setMaxBounds([[-89, -200], [89, 200]]);
    map.options.maxBoundsViscosity = 0.7;
  }
  map.setView([planar ? 0 : 25, planar ? 0 : 5], planar ? 0 : 2, { animate: false });
  worker.postMessage({ type: "init", space: mapSpace });
  const land = planar ? null : await landRings();
  worker.postMessage({ type: "style", palette: palette(), ratio: ratio(), land });
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

/** Load the changes of the map since the last time, or the whole map. */
export function load(whole = false) {
  if (loading) {
    loading.mustRepeat = true;
    return loading.done;
  }
  const current = { mustRepeat: false };
  loading = current;
  current.done = loadOnce(whole).finally(() => {
    loading = null;
    return current.mustRepeat ? load() : undefined;
  });
  return current.done;
}

async function loadOnce(whole) {
  const since = whole ? "" : version;
  let total = 0;
  let loaded = 0;
  for await (const buffer of blocks(`/v1/map${since ? `?since=${encodeURIComponent(since)}` : ""}`)) {
    const length = new DataView(buffer).getUint32(4, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    if (header.end) {
      version = header.version;
      worker.postMessage({ type: "finished", removed: header.removed });
      byId("map").dataset.version = version;
      byId("map").dataset.leftOut = header.left_out;
    } else if (header.ids) {
      loaded += header.ids.length;
      worker.postMessage({ type: "block", buffer }, [buffer]);
    } else {
      total = header.total;
      if (header.full) worker.postMessage({ type: "clear" });
    }
    showLoading(loaded, since || header.end || total < 5000 ? 0 : total);
  }
  showLoading(0, 0);
}

function showLoading(loaded, total) {
  byId("loading").hidden = !total;
  byId("loading-bar").max = total || 1;
  byId("loading-bar").value = loaded;
  byId("loading-text").textContent = total ? `${count(loaded)} of ${count(total)} subscriptions` : "";
}

export const setFilter = (filter) => worker.postMessage({ type: "filter", filter });

/** Find the subscriptions at a point of the map, smallest first. */
export function subscriptionsAt(latlng, limit) {
  const world = map.options.crs.latLngToPoint(latlng, 0);
  return request("hit", { x: world.x, y: world.y, reach: HIT_DISTANCE / 2 ** map.getZoom(), limit });
}

const toLatLng = (x, y) => map.options.crs.pointToLatLng(L.point(x, y), 0);

export async function fitAll() {
  const box = await request("bounds");
  if (box) fitWorld(box);
}

function fitWorld([west, north, east, south]) {
  const bounds = L.latLngBounds(toLatLng(west, north), toLatLng(east, south));
  map.fitBounds(bounds, { padding: [40, 40], maxZoom: space === "planar" ? 20 : 15, animate: animates() });
}

// The shapes of the selected subscription, above the tiles.

const selection = L.layerGroup().addTo(map);

export function clearSelection() { selection.clearLayers(); }

/** Select a subscription; with `zoom`, zoom to its shapes. Resolves to whether it has any. */
export async function select(id, zoom) {
  const shapes = await request("shapes", { id });
  selection.clearLayers();
  const { selected: color } = palette();
  for (const { kind, numbers } of shapes) selection.addLayer(vector(kind, numbers, color));
  if (zoom && shapes.length) {
    const boxes = shapes.map((shape) => shape.box);
    fitWorld([
      Math.min(...boxes.map((b) => b[0])), Math.min(...boxes.map((b) => b[1])),
      Math.max(...boxes.map((b) => b[2])), Math.max(...boxes.map((b) => b[3])),
    ]);
  }
  return shapes.length > 0;
}

function vector(kind, c, color) {
  const style = { color, weight: 2.5, smoothFactor: 0.3, fillOpacity: 0.14, interactive: false, dashArray: kind & AWAY ? "6 5" : null };
  const baseKind = kind & ~AWAY;
  if (baseKind === BOX) return L.rectangle([toLatLng(c[0], c[1]), toLatLng(c[2], c[3])], style);
  if (baseKind === POINT) return L.circleMarker(toLatLng(c[0], c[1]), { ...style, radius: 7 });
  const rings = [[]];
  if (baseKind === CIRCLE) {
    for (let n = 0; n < 96; n += 1) {
      const turn = (n / 96) * 2 * Math.PI;
      rings[0].push(toLatLng(c[0] + c[2] * Math.cos(turn), c[1] + c[2] * Math.sin(turn)));
    }
  } else {
    for (let i = 0; i < c.length; i += 2) {
      if (Number.isNaN(c[i])) rings.push([]); else rings.at(-1).push(toLatLng(c[i], c[i + 1]));
    }
  }
  return baseKind === LINE ? L.polyline(rings, { ...style, fill: false }) : L.polygon(rings, style);
}

// Labels of the graticule, at the edges

const labels = h("div", { class: "graticule", "aria-hidden": "true" });
byId("map").append(labels);

function labelGraticule() {
  const planar = space === "planar";
  const bounds = map.getBounds();
  const size = map.getSize();
  const step = graticuleStep(planar, Math.round(map.getZoom()));
  const elements = [];
  for (let n = Math.ceil(bounds.getWest() / step); n * step <= bounds.getEast(); n += 1) {
    if (!planar && Math.abs(n * step) > 180) continue;
    const { x } = map.latLngToContainerPoint([bounds.getSouth(), n * step]);
    if (x > 40 && x < size.x - 60) elements.push(label(coordinateText(n * step, step, planar, "E", "W"), x + 3, size.y - 16));
  }
  for (let n = Math.ceil(bounds.getSouth() / step); n * step <= bounds.getNorth(); n += 1) {
    const { y } = map.latLngToContainerPoint([n * step, bounds.getWest()]);
    if (y > 130 && y < size.y - 30) elements.push(label(coordinateText(n * step, step, planar, "N", "S"), 5, y - 14));
  }
  labels.replaceChildren(...elements.slice(0, 80));
}

function label(text, x, y) {
  const element = h("span", {}, text);
  element.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  return element;
}

function coordinateText(value, step, planar, plus, minus) {
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const text = Math.abs(value).toFixed(digits);
  if (planar) return (value < 0 ? "−" : "") + Number(text).toLocaleString("en", { maximumFractionDigits: digits });
  return Number(text) === 0 ? "0°" : `${text}° ${value > 0 ? plus : minus}`;
}

map.on("moveend zoomend resize", labelGraticule);

// The tip at the pointer

const tip = h("div", { class: "tip", hidden: true });
byId("map").append(tip);
let isRequesting = false;

map.on("mousemove", async (event) => {
  if (isRequesting || byId("map").dataset.mode) return;
  isRequesting = true;
  const { total, rows } = await subscriptionsAt(event.latlng, 3);
  isRequesting = false;
  tip.hidden = !total || Boolean(byId("map").dataset.mode);
  if (tip.hidden) return;
  const more = total > rows.length ? h("p", { class: "more" }, `and ${count(total - rows.length)} more`) : null;
  tip.replaceChildren(...rows.map((row) => h("p", {}, h("b", {}, row.id), " ", row.summary)), ...(more ? [more] : []));
  const { x, y } = event.containerPoint;
  const flip = x > map.getSize().x - 300;
  tip.style.transform = `translate(${flip ? x - 292 : x + 14}px, ${Math.min(y + 14, map.getSize().y - 96)}px)`;
});
map.on("mouseout movestart", () => { tip.hidden = true; });
