// What is known of one subscription or event, beside the map.

import { ask, json, path } from "./api.js";
import { agreed, announce, byId, clock, count, h, plural, toast } from "./dom.js";
import { explanationTree } from "./explanation.js";
import * as live from "./live-layer.js";
import { choose, clearChosen, load, map, moves } from "./map.js";

const MATCHES = 12;
let before = null; // what had the focus
let asked = 0; // counts what was opened: answers that come late are dropped

function open(kind, title) {
  const detail = byId("detail");
  if (detail.hidden) before = document.activeElement;
  detail.hidden = false;
  byId("detail-kind").textContent = kind;
  byId("detail-title").textContent = title;
  byId("detail-body").replaceChildren(h("p", { class: "quiet-text" }, "…"));
  detail.focus({ preventScroll: true });
  asked += 1;
  return asked;
}

export function closeDetail() {
  if (byId("detail").hidden) return false;
  asked += 1;
  byId("detail").hidden = true;
  clearChosen();
  live.mark(null);
  if (before?.isConnected) before.focus({ preventScroll: true });
  return true;
}

byId("detail-close").addEventListener("click", closeDetail);

function fill(mine, ...children) {
  if (mine === asked) byId("detail-body").replaceChildren(...children.flat().filter(Boolean));
}

/** Show a subscription; with `go`, move the map to it. */
export async function showSubscription(id, go = false) {
  const mine = open("subscription", id);
  live.mark(null);
  try {
    const hasPlace = await choose(id, go);
    const one = await json("GET", path`/v1/subscriptions/${id}`);
    const kind = one.composite ? "composite" : one.track ? "tracked" : "expression";
    const matches = h("div", {}, h("p", { class: "quiet-text" }, "…"));
    fill(mine,
      h("dl", { class: "facts-list" },
        pair("Subscriber", one.subscriber), pair("Kind", kind), pair("Made", moment(one.created)),
        one.expires ? pair("Expires", moment(one.expires)) : null),
      h("h3", {}, one.composite ? "Composite" : "Expression"),
      h("pre", { class: "code", tabindex: "0" }, written(one.composite ?? one.expression)),
      one.track ? [h("h3", {}, "Track"), h("pre", { class: "code" }, written(one.track))] : null,
      one.payload === undefined ? null : [h("h3", {}, "Payload"), h("pre", { class: "code" }, written(one.payload))],
      h("div", { class: "row-of-controls" },
        hasPlace ? h("button", { type: "button", onclick: () => choose(id, true) }, "Zoom to it")
          : h("span", { class: "quiet-text" }, "It names no place."),
        h("button", { type: "button", class: "danger", onclick: () => remove(id) }, "Delete")),
      h("h3", {}, "Matches lately"), matches);
    await fillMatches(matches, id);
  } catch (error) {
    fill(mine, h("p", { class: "problem" }, error.message));
  }
}

async function fillMatches(into, id) {
  try {
    const { matches, left_out: more } = await json("GET", `${path`/v1/subscriptions/${id}/matches`}?limit=${MATCHES}`);
    into.replaceChildren(
      matches.length
        ? h("ul", { class: "rows tight" }, matches.map((one) => h("li", {},
          h("button", { type: "button", class: "row", disabled: one.event === null, onclick: () => showEvent(one.event, id) },
            h("span", { class: "badge match" }, one.type), h("span", { class: "row-main" }, one.event === null ? "of several events" : `event ${count(one.event)}`),
            h("time", { datetime: one.at }, clock(one.at))))))
        : h("p", { class: "quiet-text" }, "None that is kept."),
      more ? h("p", { class: "quiet-text" }, `and ${count(more)} more`) : "");
  } catch (error) {
    into.replaceChildren(h("p", { class: "quiet-text" }, error.message));
  }
}

async function remove(id) {
  if (!(await agreed("Delete this subscription?", `“${id}” gets no more messages. This cannot be undone.`, "Delete"))) return;
  try {
    await ask("DELETE", path`/v1/subscriptions/${id}`);
    closeDetail();
    toast(`Deleted ${id}`);
    await load();
  } catch (error) {
    toast(error.message, "bad");
  }
}

/** Show an event, and why it matched a subscription or not. */
export async function showEvent(position, why = null) {
  const mine = open("event", `Event ${count(position)}`);
  clearChosen();
  try {
    const { event, received } = await json("GET", path`/v1/events/${position}`);
    const place = live.mark(position, event);
    if (place && !map.getBounds().pad(-0.1).contains(place)) map.panTo(place, { animate: moves() });
    const reason = h("div", { "aria-live": "polite" });
    const explain = (id) => fillReason(reason, position, id);
    const matched = h("div", {}, h("p", { class: "quiet-text" }, "…"));
    fill(mine,
      h("dl", { class: "facts-list" }, pair("Received", moment(received)), ...propertiesOf(event)),
      h("h3", {}, "Who matched"), matched,
      h("h3", {}, "Why, or why not"),
      h("form", { class: "ask-why", onsubmit: (e) => { e.preventDefault(); explain(e.target.elements.which.value); } },
        h("label", { class: "field" }, "Subscription",
          h("input", { type: "text", name: "which", id: "why-id", required: true, value: why ?? "", autocomplete: "off", placeholder: "its id, or click one on the map" })),
        h("button", { type: "submit" }, "Explain")),
      reason);
    byId("detail").dataset.event = position;
    await fillMatched(matched, position, explain);
    if (why !== null) await explain(why);
  } catch (error) {
    fill(mine, h("p", { class: "problem" }, error.message));
  }
}

/** Explain a subscription for the event that is shown; false where none is. */
export function explainShown(id) {
  const field = byId("why-id");
  if (byId("detail").hidden || !field) return false;
  field.value = id;
  field.form.requestSubmit();
  return true;
}

async function fillMatched(into, position, explain) {
  const { matches, left_out: more } = await json("GET", `${path`/v1/events/${position}/matches`}?limit=50`);
  const ids = matches.flatMap((one) => idsOf(one.data).map((id) => ({ id, subscriber: one.subscriber, type: one.type })));
  into.replaceChildren(
    ids.length
      ? h("ul", { class: "rows tight" }, ids.slice(0, 100).map(({ id, subscriber, type }) => h("li", {},
        h("button", { type: "button", class: "row", onclick: () => { byId("why-id").value = id; explain(id); } },
          h("span", { class: "badge match" }, type), h("span", { class: "row-main" }, id), h("span", { class: "quiet-text" }, subscriber === id ? "" : subscriber)))))
      : h("p", { class: "quiet-text" }, "Nobody asked for this event."),
    more ? h("p", { class: "quiet-text" }, "and more") : "");
}

async function fillReason(into, position, id) {
  choose(id, false);
  try {
    const { matches, explanation } = await json("GET", `${path`/v1/subscriptions/${id}/explanation`}?event=${position}`);
    into.replaceChildren(h("p", { class: "quiet-text" }, "Event ", h("b", {}, count(position)), " against ", h("b", {}, id)), explanationTree(explanation, matches));
    announce(matches ? `${id} matches` : `${id} does not match`);
  } catch (error) {
    into.replaceChildren(h("p", { class: "problem" }, error.message));
  }
}

export function idsOf(data) {
  const ids = data.subscriptions ?? [data.subscription ?? data.composite];
  return ids.filter((id) => typeof id === "string");
}

function propertiesOf(event) {
  const all = event.type === "Feature" ? event.properties ?? {} : event;
  const named = Object.entries(all).filter(([name]) => name !== "geometry");
  const found = named.slice(0, 40).map(([name, value]) => pair(name, typeof value === "string" ? value : JSON.stringify(value)));
  if (event.geometry) found.push(pair("geometry", placeText(event.geometry)));
  if (named.length > 40) found.push(pair("…", plural(named.length - 40, "more property", "more properties")));
  return found;
}

function placeText(geometry) {
  const text = typeof geometry === "string" ? geometry : geometry.type === "Point" ? `Point ${geometry.coordinates.join(", ")}` : geometry.type;
  return String(text).slice(0, 200);
}

const pair = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
const written = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const moment = (time) => new Date(time).toLocaleString();
