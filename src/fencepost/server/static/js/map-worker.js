// The worker of the map: keeps the shapes of subscriptions, paints tiles, and finds shapes at a point.

import { Boxes } from "./boxes.js";
import { circlePolygon, projection, radiusInWorld } from "./geometry.js";
import { Subscriptions } from "./subscriptions-table.js";
import { TilePainter } from "./tile-painter.js";

const MAX_LISTED = 200;
const MAX_HITS = 40;
const UPDATE_DELAY_MS = 1200; // while blocks arrive
const MAX_REPLACED_ROWS = 50000; // beyond it, the map is loaded again

let table = null;
let painter = null;
let index = null;
let filter = { text: "", subscriber: "", kind: "" };
let updateTimer = null;
const queue = new Map(); // tiles to paint, by ticket

const handlers = {
  init({ space }) {
    table = new Subscriptions(projection(space), { circlePolygon, radiusInWorld });
    painter = new TilePainter(projection(space));
    update();
  },
  style({ palette, ratio, land }) { painter.setStyle(palette, ratio, land); },
  block({ buffer }) {
    table.add(buffer);
    updateTimer ??= setTimeout(update, UPDATE_DELAY_MS);
  },
  clear() { table.clear(); },
  finished({ removed }) {
    removed.forEach((id) => table.remove(id));
    update();
  },
  filter({ filter: next }) { filter = next; update(); },
  tile(tile) {
    queue.set(tile.ticket, tile);
    if (queue.size === 1) paintChannel.port1.postMessage(0);
  },
  drop({ ticket }) { queue.delete(ticket); },
  hit({ ticket, x, y, reach, limit = MAX_HITS }) {
    const shapes = index.search(x - reach, y - reach, x + reach, y + reach)
      .filter((shape) => table.contains(shape, x, y, reach))
      .sort((a, b) => table.size(a) - table.size(b));
    const rows = [...new Set(shapes.map((shape) => table.owner[shape]))];
    postMessage({ type: "answer", ticket, answer: { total: rows.length, rows: rows.slice(0, limit).map((row) => table.describe(row)) } });
  },
  shapes({ ticket, id }) { postMessage({ type: "answer", ticket, answer: table.shapesOf(id) }); },
  bounds({ ticket }) { postMessage({ type: "answer", ticket, answer: index.rows.length ? index.bounds : null }); },
};

// One tile per message, so that other messages are handled between tiles.
const paintChannel = new MessageChannel();
paintChannel.port2.onmessage = () => {
  const newest = [...queue.keys()].pop();
  if (newest === undefined) return;
  const tile = queue.get(newest);
  queue.delete(newest);
  const bitmap = painter.paint(tile, table, index);
  postMessage({ type: "tile", ticket: tile.ticket, bitmap }, [bitmap]);
  if (queue.size) paintChannel.port1.postMessage(0);
};

/** Apply the filter and build the index, after the table or the filter changed. */
function update() {
  clearTimeout(updateTimer);
  updateTimer = null;
  const { shown, shapes } = table.select(filter);
  index = new Boxes(table.boxes.items, shapes);
  postMessage({
    type: "updated",
    total: table.rowCount,
    shown: shown.length,
    withoutShapes: shown.reduce((sum, row) => sum + (table.hasShapes(row) ? 0 : 1), 0),
    listed: shown.slice(0, MAX_LISTED).map((row) => table.describe(row)),
    subscribers: table.subscribers.slice(0, 1000),
    mustReload: table.ids.length > 2 * table.rowCount + MAX_REPLACED_ROWS,
  });
}

onmessage = ({ data }) => handlers[data.type](data);
