// The live feed: shows events in a list and on the map, and announces matches to screen readers.

import { key, socket } from "./api.js";
import { announce, byId, clock, count, h, plural } from "./dom.js";
import { showEvent } from "./detail.js";
import * as layer from "./live-layer.js";
import { load } from "./map.js";

const MAX_LISTED = 80;
const LIST_INTERVAL_MS = 400;
const ANNOUNCE_INTERVAL_MS = 5000;
const RELOAD_DELAY_MS = 400;
const MAX_RECONNECT_DELAY_MS = 15000;
const ACCESS_DENIED = [4401, 4403];

let events = []; // newest first
let paused = false;
let total = { events: 0, matched: 0, leftOut: 0 };
let listTimer = null;
let unannounced = 0; // matching events since the last announcement
let announceTimer = null;
let reloadTimer = null;
let reconnectDelay = 500;
let isDisabled = false;
let wasDisconnected = false;

export function start() {
  isDisabled = false;
  const feed = socket("/v1/live");
  feed.onopen = () => {
    reconnectDelay = 500;
    showState("on", "live");
    if (wasDisconnected) load(); // the feed did not report changes meanwhile
    wasDisconnected = false;
  };
  feed.onmessage = ({ data }) => showFrame(JSON.parse(data));
  feed.onclose = ({ code, reason }) => {
    if (isDisabled) return;
    if (ACCESS_DENIED.includes(code)) { showState("off", reason || "access denied"); return; }
    wasDisconnected = true;
    showState("off", "offline, reconnecting");
    setTimeout(start, reconnectDelay * (1 + Math.random()));
    reconnectDelay = Math.min(reconnectDelay * 2, MAX_RECONNECT_DELAY_MS);
  };
}

export function showState(name, text) {
  byId("status").dataset.state = name;
  byId("status-text").textContent = text;
}

export function showDisabled() {
  isDisabled = true;
  showState("off", key.get() ? "the live feed needs the scope admin" : "not live");
}

function showFrame(frame) {
  const { events: newEvents, left_out: leftOut, subscriptions_changed: changed } = frame;
  if (changed) reloadTimer ??= setTimeout(() => { reloadTimer = null; load(); }, RELOAD_DELAY_MS);
  if (!newEvents.length && !leftOut?.events) return;
  const now = Date.now();
  const matched = newEvents.filter((event) => event.messages > 0);
  total.events += newEvents.length + (leftOut?.events ?? 0);
  total.leftOut += leftOut?.events ?? 0;
  total.matched += matched.length;
  if (!paused) {
    layer.show(newEvents);
    events = [...newEvents.map((event) => ({ ...event, at: now })).reverse(), ...events].slice(0, MAX_LISTED * 3);
    listTimer ??= setTimeout(list, LIST_INTERVAL_MS);
  }
  announceMatches(matched.length, matched.at(-1));
}

/** Announce matches to screen readers, seldom enough to be listened to. */
function announceMatches(matches, last) {
  if (!matches) return;
  unannounced += matches;
  announceTimer ??= setTimeout(() => {
    const ids = last.matched.flatMap((match) => match.subscriptions).slice(0, 3).join(", ");
    announce(unannounced === 1 ? `Event ${last.position} matched ${ids}` : `${plural(unannounced, "event")} matched, the last one ${ids}`);
    unannounced = 0;
    announceTimer = null;
  }, unannounced > matches ? ANNOUNCE_INTERVAL_MS : 300);
}

function list() {
  listTimer = null;
  const onlyMatched = byId("only-matched").checked;
  const shown = events.filter((event) => !onlyMatched || event.messages > 0).slice(0, MAX_LISTED);
  byId("live-events").replaceChildren(...shown.map(row));
  byId("live-count").textContent = [
    plural(total.events, "event"), `${count(total.matched)} of the shown ones matched`,
    total.leftOut ? `${count(total.leftOut)} left out` : "",
  ].filter(Boolean).join(" · ");
}

function row({ position, event, messages, matched, at }) {
  const ids = matched.flatMap((match) => match.subscriptions);
  return h("li", {}, h("button", { type: "button", class: `row two-lines ${messages ? "matched" : ""}`, onclick: () => showEvent(position, ids[0] ?? null) },
    h("span", { class: "row-main with-badge" },
      h("span", { class: "cut" }, h("span", { class: "number" }, count(position)), " ", summary(event)),
      messages ? h("span", { class: "badge match" }, plural(messages, "match", "matches")) : null),
    h("span", { class: "row-more" }, h("time", {}, clock(at)), ids.length ? ` → ${ids.slice(0, 4).join(", ")}${ids.length > 4 ? " …" : ""}` : "")));
}

function summary(event) {
  if (!event) return "a large event";
  const attributes = event.type === "Feature" ? event.properties ?? {} : event;
  const entries = Object.entries(attributes).filter(([name, value]) => name !== "geometry" && typeof value !== "object");
  return entries.slice(0, 3).map(([name, value]) => `${name}: ${String(value).slice(0, 40)}`).join(", ") || "no properties";
}

byId("only-matched").addEventListener("change", list);
byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", paused);
  byId("pause").textContent = paused ? "Resume" : "Pause";
});

/** List events of the log until live events arrive. */
export function showLogged(logged) {
  events = logged.map(({ position, received, event }) => ({ position, event, messages: 0, matched: [], at: received }));
  if (events.length) {
    list();
    byId("live-count").textContent = "The latest events of the log. New events appear above.";
  }
}
