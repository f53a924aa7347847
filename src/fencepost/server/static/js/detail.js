// The detail panel: a subscription, or an event and why it matched.

import { json, path, send } from "./api.js";
import { announce, byId, clock, confirm, count, h, plural, toast } from "./dom.js";
import { explanationTree } from "./explanation.js";
import * as live from "./live-layer.js";
import { animates, clearSelection, load, map, select } from "./map.js";

const MAX_MATCHES = 12;
const MAX_PROPERTIES = 40;
let previousFocus = null;
let generation = 0; // changes whenever the content does; responses of an older one are dropped

function open(kind, title) {
  const detail = byId("detail");
  if (detail.hidden) previousFocus = document.activeElement;
  detail.hidden = false;
  byId("detail-kind").textContent = kind;
  byId("detail-title").textContent = title;
  byId("detail-body").replaceChildren(h("p", { class: "quiet-text" }, "…"));
  detail.focus({ preventScroll: true });
  generation += 1;
  return generation;
}

export function closeDetail() {
  if (byId("detail").hidden) return false;
  generation += 1;
  byId("detail").hidden = true;
  clearSelection();
  live.mark(null);
  if (previousFocus?.isConnected) previousFocus.focus({ preventScroll: true });
  return true;
}

byId("detail-close").addEventListener("click", closeDetail);

function fill(opened, ...children) {
  if (opened === generation) byId("detail-body").replaceChildren(...children.flat().filter(Boolean));
}

/** Show a subscription; with `zoom`, zoom the map to it. */
export async function showSubscription(id, zoom = false) {
  const opened = open("subscription", id);
  live.mark(null);
  try {
    const hasShapes = await select(id, zoom);
    const subscription = await json("GET", path`/v1/subscriptions/${id}`);
    const kind = subscription.composite ? "composite" : subscription.track ? "tracked" : "expression";
    const matches = h("div", {}, h("p", { class: "quiet-text" }, "…"));
    fill(opened,
      h("dl", { class: "facts-list" },
        fact("Subscriber", subscription.subscriber), fact("Kind", kind), fact("Created", dateTime(subscription.created)),
        subscription.expires ? fact("Expires", dateTime(subscription.expires)) : null),
      h("h3", {}, subscription.composite ? "Composite" : "Expression"),
      h("pre", { class: "code", tabindex: "0" }, format(subscription.composite ?? subscription.expression)),
      subscription.track ? [h("h3", {}, "Track"), h("pre", { class: "code" }, format(subscription.track))] : null,
      subscription.payload === undefined ? null : [h("h3", {}, "Payload"), h("pre", { class: "code" }, format(subscription.payload))],
      h("div", { class: "row-of-controls" },
        hasShapes ? h("button", { type: "button", onclick: () => select(id, true) }, "Zoom to it")
          : h("span", { class: "quiet-text" }, "It has no location."),
        h("button", { type: "button", class: "danger", onclick: () => remove(id) }, "Delete")),
      h("h3", {}, "Recent matches"), matches);
    await fillMatches(matches, id);
  } catch (error) {
    fill(opened, h("p", { class: "problem" }, error.message));
  }
}

async function fillMatches(element, id) {
  try {
    const { matches, left_out: leftOut } = await json("GET", `${path`/v1/subscriptions/${id}/matches`}?limit=${MAX_MATCHES}`);
    element.replaceChildren(
      matches.length
        ? h("ul", { class: "rows tight" }, matches.map((match) => h("li", {},
          h("button", { type: "button", class: "row", disabled: match.event === null, onclick: () => showEvent(match.event, id) },
            h("span", { class: "badge match" }, match.type), h("span", { class: "row-main" }, match.event === null ? "several events" : `event ${count(match.event)}`),
            h("time", { datetime: match.at }, clock(match.at))))))
        : h("p", { class: "quiet-text" }, "No recent matches."),
      leftOut ? h("p", { class: "quiet-text" }, `and ${count(leftOut)} more`) : "");
  } catch (error) {
    element.replaceChildren(h("p", { class: "quiet-text" }, error.message));
  }
}

async function remove(id) {
  if (!(await confirm("Delete this subscription?", `“${id}” causes no more messages. This cannot be undone.`, "Delete"))) return;
  try {
    await send("DELETE", path`/v1/subscriptions/${id}`);
    closeDetail();
    toast(`Deleted ${id}`);
    await load();
  } catch (error) {
    toast(error.message, "bad");
  }
}

/** Show an event; with the id of a subscription, explain why it matched or not. */
export async function showEvent(position, explainedId = null) {
  const opened = open("event", `Event ${count(position)}`);
  clearSelection();
  try {
    const { event, received } = await json("GET", path`/v1/events/${position}`);
    const place = live.mark(position, event);
    if (place && !map.getBounds().pad(-0.1).contains(place)) map.panTo(place, { animate: animates() });
    const reason = h("div", { "aria-live": "polite" });
    const explain = (id) => fillReason(reason, position, id);
    const matched = h("div", {}, h("p", { class: "quiet-text" }, "…"));
    fill(opened,
      h("dl", { class: "facts-list" }, fact("Received", dateTime(received)), ...propertiesOf(event)),
      h("h3", {}, "Matching subscriptions"), matched,
      h("h3", {}, "Why it matches or not"),
      h("form", { class: "ask-why", onsubmit: (e) => { e.preventDefault(); explain(e.target.elements.which.value); } },
        h("label", { class: "field" }, "Subscription",
          h("input", { type: "text", name: "which", id: "why-id", required: true, value: explainedId ?? "", autocomplete: "off", placeholder: "id, or click a subscription on the map" })),
        h("button", { type: "submit" }, "Explain")),
      reason);
    byId("detail").dataset.event = position;
    await fillMatched(matched, position, explain);
    if (explainedId !== null) await explain(explainedId);
  } catch (error) {
    fill(opened, h("p", { class: "problem" }, error.message));
  }
}

/** Explain why the shown event matches a subscription or not; false if no event is shown. */
export function explainShown(id) {
  const field = byId("why-id");
  if (byId("detail").hidden || !field) return false;
  field.value = id;
  field.form.requestSubmit();
  return true;
}

async function fillMatched(element, position, explain) {
  const { matches, left_out: leftOut } = await json("GET", `${path`/v1/events/${position}/matches`}?limit=50`);
  const ids = matches.flatMap((match) => idsOf(match.data).map((id) => ({ id, subscriber: match.subscriber, type: match.type })));
  element.replaceChildren(
    ids.length
      ? h("ul", { class: "rows tight" }, ids.slice(0, 100).map(({ id, subscriber, type }) => h("li", {},
        h("button", { type: "button", class: "row", onclick: () => { byId("why-id").value = id; explain(id); } },
          h("span", { class: "badge match" }, type), h("span", { class: "row-main" }, id), h("span", { class: "quiet-text" }, subscriber === id ? "" : subscriber)))))
      : h("p", { class: "quiet-text" }, "No subscription matched this event."),
    leftOut ? h("p", { class: "quiet-text" }, "and more") : "");
}

async function fillReason(element, position, id) {
  select(id, false);
  try {
    const { matches, explanation } = await json("GET", `${path`/v1/subscriptions/${id}/explanation`}?event=${position}`);
    element.replaceChildren(h("p", { class: "quiet-text" }, "Event ", h("b", {}, count(position)), " and ", h("b", {}, id)), explanationTree(explanation, matches));
    announce(matches ? `${id} matches` : `${id} does not match`);
  } catch (error) {
    element.replaceChildren(h("p", { class: "problem" }, error.message));
  }
}

export function idsOf(data) {
  const ids = data.subscriptions ?? [data.subscription ?? data.composite];
  return ids.filter((id) => typeof id === "string");
}

function propertiesOf(event) {
  const attributes = event.type === "Feature" ? event.properties ?? {} : event;
  const entries = Object.entries(attributes).filter(([name]) => name !== "geometry");
  const facts = entries.slice(0, MAX_PROPERTIES).map(([name, value]) => fact(name, typeof value === "string" ? value : JSON.stringify(value)));
  if (event.geometry) facts.push(fact("geometry", geometryText(event.geometry)));
  if (entries.length > MAX_PROPERTIES) facts.push(fact("…", plural(entries.length - MAX_PROPERTIES, "more property", "more properties")));
  return facts;
}

function geometryText(geometry) {
  const text = typeof geometry === "string" ? geometry : geometry.type === "Point" ? `Point ${geometry.coordinates.join(", ")}` : geometry.type;
  return String(text).slice(0, 200);
}

const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
const format = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const dateTime = (time) => new Date(time).toLocaleString();
