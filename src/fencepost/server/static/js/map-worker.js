// Off the main thread: what subscriptions look like, tiles of them, and which are at a place.

import { Boxes } from "./boxes.js";
import { aroundCircle, projection, radiusInWorld } from "./geometry.js";
import { Subscriptions } from "./subscriptions-table.js";
import { TilePainter } from "./tile-painter.js";

const LISTED = 200;
const HITS = 40;
const SETTLE_MS = 1200; // while blocks come
const OUTGROWN = 50000; // rows that were replaced, beyond which all is loaded anew

let table = null;
let painter = null;
let index = null;
let filter = { text: "", subscriber: "", kind: "" };
let settling = null;
const queue = new Map(); // tiles that wait, by ticket

const work = {
  begin({ space }) {
    table = new Subscriptions(projection(space), { aroundCircle, radiusInWorld });
    painter = new TilePainter(projection(space));
    settle();
  },
  look({ palette, ratio, land }) { painter.look(palette, ratio, land); },
  block({ buffer }) {
    table.add(buffer);
    settling ??= setTimeout(settle, SETTLE_MS);
  },
  clear() { table.clear(); },
  finished({ removed }) {
    removed.forEach((id) => table.remove(id));
    settle();
  },
  filter({ given }) { filter = given; settle(); },
  tile(tile) {
    queue.set(tile.ticket, tile);
    if (queue.size === 1) later.port1.postMessage(0);
  },
  drop({ ticket }) { queue.delete(ticket); },
  hit({ ticket, x, y, reach, most = HITS }) {
    const found = index.meeting(x - reach, y - reach, x + reach, y + reach)
      .filter((shape) => table.isAt(shape, x, y, reach))
      .sort((a, b) => table.size(a) - table.size(b));
    const ids = [...new Set(found.map((shape) => table.owner[shape]))];
    postMessage({ type: "answer", ticket, answer: { total: ids.length, rows: ids.slice(0, most).map((row) => table.told(row)) } });
  },
  shapes({ ticket, id }) { postMessage({ type: "answer", ticket, answer: table.shapesOf(id) }); },
  bounds({ ticket }) { postMessage({ type: "answer", ticket, answer: index.rows.length ? index.bounds : null }); },
};

const later = new MessageChannel();
later.port2.onmessage = () => {
  const newest = [...queue.keys()].pop();
  if (newest === undefined) return;
  const tile = queue.get(newest);
  queue.delete(newest);
  const bitmap = painter.paint(tile, table, index);
  postMessage({ type: "tile", ticket: tile.ticket, bitmap }, [bitmap]);
  if (queue.size) later.port1.postMessage(0);
};

function settle() {
  clearTimeout(settling);
  settling = null;
  const { shown, rows } = table.select(filter);
  index = new Boxes(table.boxes.items, rows);
  postMessage({
    type: "settled",
    total: table.size_,
    shown: shown.length,
    placeless: shown.reduce((sum, row) => sum + (table.hasPlace(row) ? 0 : 1), 0),
    listed: shown.slice(0, LISTED).map((row) => table.told(row)),
    subscribers: table.subscribers.slice(0, 1000),
    outgrown: table.ids.length > 2 * table.size_ + OUTGROWN,
  });
}

onmessage = ({ data }) => work[data.type](data);
