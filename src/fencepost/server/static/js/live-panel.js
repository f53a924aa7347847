// Events as they come: a list, a layer of the map, and now and then a word for who cannot see it.

import { key, socket } from "./api.js";
import { announce, byId, clock, count, h, plural } from "./dom.js";
import { showEvent } from "./detail.js";
import * as layer from "./live-layer.js";
import { load } from "./map.js";

const KEPT = 80;
const LISTED_EVERY_MS = 400;
const TOLD_EVERY_MS = 5000;
const RELOAD_AFTER_MS = 400;
const REFUSED = [4401, 4403];

let seen = []; // newest first
let paused = false;
let total = { events: 0, matched: 0, leftOut: 0 };
let drawn = null;
let untold = 0;
let telling = null;
let reloading = null;
let wait = 500;
let closed = false;
let missed = false;

export function start() {
  closed = false;
  const open = socket("/v1/live");
  open.onopen = () => {
    wait = 500;
    state("on", "live");
    if (missed) load(); // what changed in between was told to nobody here
    missed = false;
  };
  open.onmessage = ({ data }) => take(JSON.parse(data));
  open.onclose = ({ code, reason }) => {
    if (closed) return;
    if (REFUSED.includes(code)) { state("off", reason || "not allowed"); return; }
    missed = true;
    state("off", "offline, trying again");
    setTimeout(start, wait + Math.random() * wait);
    wait = Math.min(wait * 2, 15000);
  };
}

export function state(name, text) {
  byId("status").dataset.state = name;
  byId("status-text").textContent = text;
}

export function noLive() {
  closed = true;
  state("off", key.get() ? "live needs the scope admin" : "not live");
}

function take(frame) {
  const { events, left_out: leftOut, subscriptions_changed: changed } = frame;
  if (changed) reloading ??= setTimeout(() => { reloading = null; load(); }, RELOAD_AFTER_MS);
  if (!events.length && !leftOut?.events) return;
  const now = Date.now();
  const matched = events.filter((one) => one.messages > 0);
  total.events += events.length + (leftOut?.events ?? 0);
  total.leftOut += leftOut?.events ?? 0;
  total.matched += matched.length;
  if (!paused) {
    layer.show(events);
    seen = [...events.map((one) => ({ ...one, at: now })).reverse(), ...seen].slice(0, KEPT * 3);
    drawn ??= setTimeout(list, LISTED_EVERY_MS);
  }
  tell(matched.length, matched.at(-1));
}

/** Matches in words for screen readers, not more often than they can be listened to. */
function tell(matches, last) {
  if (!matches) return;
  untold += matches;
  telling ??= setTimeout(() => {
    const whom = last.matched.flatMap((one) => one.subscriptions).slice(0, 3).join(", ");
    announce(untold === 1 ? `Event ${last.position} matched ${whom}` : `${plural(untold, "event")} matched, the last one ${whom}`);
    untold = 0;
    telling = null;
  }, untold > matches ? TOLD_EVERY_MS : 300);
}

function list() {
  drawn = null;
  const only = byId("only-matched").checked;
  const shown = seen.filter((one) => !only || one.messages > 0).slice(0, KEPT);
  byId("seen").replaceChildren(...shown.map(row));
  byId("live-count").textContent = [
    plural(total.events, "event"), `${count(total.matched)} shown that matched`,
    total.leftOut ? `${count(total.leftOut)} too many to show` : "",
  ].filter(Boolean).join(" · ");
}

function row({ position, event, messages, matched, at }) {
  const whom = matched.flatMap((one) => one.subscriptions);
  return h("li", {}, h("button", { type: "button", class: `row two-lines ${messages ? "matched" : ""}`, onclick: () => showEvent(position, whom[0] ?? null) },
    h("span", { class: "row-main with-badge" },
      h("span", { class: "cut" }, h("span", { class: "number" }, count(position)), " ", summary(event)),
      messages ? h("span", { class: "badge match" }, plural(messages, "match", "matches")) : null),
    h("span", { class: "row-more" }, h("time", {}, clock(at)), whom.length ? ` → ${whom.slice(0, 4).join(", ")}${whom.length > 4 ? " …" : ""}` : "")));
}

function summary(event) {
  if (!event) return "a large event";
  const all = event.type === "Feature" ? event.properties ?? {} : event;
  const told = Object.entries(all).filter(([name, value]) => name !== "geometry" && typeof value !== "object");
  return told.slice(0, 3).map(([name, value]) => `${name}: ${String(value).slice(0, 40)}`).join(", ") || "no properties";
}

byId("only-matched").addEventListener("change", list);
byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", paused);
  byId("pause").textContent = paused ? "Go on" : "Pause";
});

/** Events of the log, to begin with. */
export function begin(events) {
  seen = events.map(({ position, received, event }) => ({ position, event, messages: 0, matched: [], at: received }));
  if (seen.length) {
    list();
    byId("live-count").textContent = "From the log; new ones appear above.";
  }
}
