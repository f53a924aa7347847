// The health panel: rates, queues, endpoints and dead letters.

import { json } from "./api.js";
import { Chart } from "./chart.js";
import { byId, clock, confirm, count, duration, h, plural, rounded, toast } from "./dom.js";

const POLL_INTERVAL_MS = 2000;
const MAX_LISTED = 100;

const charts = {
  events: new Chart("Events", " /s", "plain"),
  messages: new Chart("Matches", " /s", "warm"),
  unread: new Chart("Unread messages", "", "plain"),
  lag: new Chart("Longest lag", " s", "plain"),
};
byId("charts").append(...Object.values(charts).map((chart) => chart.element));
let previous = null; // counters of the last poll
let timer = null;
let longestQueues = new Map(); // by subscriber

export function start() {
  clearTimeout(timer);
  poll();
}

export function stop() { clearTimeout(timer); }

async function poll() {
  try {
    if (!document.hidden) showStats(await json("GET", "/v1/stats"));
    if (!document.hidden && !byId("health").hidden) await Promise.all([showQueues(), showDeadLetters()]);
  } catch { /* the live panel shows that the server cannot be reached */ }
  timer = setTimeout(poll, POLL_INTERVAL_MS);
}

function showStats(stats) {
  const current = { at: performance.now() / 1000, ...stats.server };
  if (previous && current.at > previous.at && current.events >= previous.events) {
    const rate = (name) => (current[name] - previous[name]) / (current.at - previous.at);
    charts.events.add(rate("events"));
    charts.messages.add(rate("messages"));
    byId("now-events").textContent = rounded(rate("events"));
    byId("now-matches").textContent = rounded(rate("messages"));
  }
  previous = current;
  charts.unread.add(stats.unread);
  charts.lag.add(Math.max(0, ...stats.queues.map((queue) => queue.lag_s)));
  byId("now-unread").textContent = rounded(stats.unread);
  showMissing(stats.index.attributes_not_found);
  longestQueues = new Map(stats.queues.map((queue) => [queue.subscriber, queue]));
}

function showMissing(attributes) {
  const shown = byId("missing-attributes");
  shown.hidden = !attributes.length;
  shown.textContent = `Subscriptions name attributes that no event had, and match nothing there: ${attributes.join(", ")}.`;
}

async function showQueues() {
  const { subscribers: page, next } = await json("GET", `/v1/subscribers?limit=${MAX_LISTED}`);
  const byName = new Map(page.map((subscriber) => [subscriber.subscriber, subscriber]));
  for (const [name, queue] of longestQueues) if (!byName.has(name)) byName.set(name, { ...queue, connections: null, endpoint: null });
  const rows = [...byName.values()].sort((a, b) => b.depth - a.depth || (a.subscriber < b.subscriber ? -1 : 1));
  const maxDepth = Math.max(1, ...rows.map((row) => row.depth));
  byId("queues").replaceChildren(
    rows.length ? h("table", {},
      h("thead", {}, h("tr", {}, ["Subscriber", "Unread", "Lag", "Delivery"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map((row) => queueRow(row, maxDepth)))) : h("p", { class: "quiet-text" }, "There are no subscribers."),
    next ? h("p", { class: "quiet-text" }, `The first ${MAX_LISTED} subscribers by name, and the subscribers with the longest queues.`) : "");
}

function queueRow(row, maxDepth) {
  return h("tr", {},
    h("th", { scope: "row" }, row.subscriber),
    h("td", { class: "figure" }, h("meter", { min: 0, max: maxDepth, value: row.depth, "aria-hidden": "true" }), count(row.depth)),
    h("td", { class: "figure" }, row.depth ? duration(row.lag_s) : "–"),
    h("td", {}, delivery(row)));
}

function delivery({ connections, endpoint }) {
  if (endpoint) {
    const isFailing = endpoint.failures > 0;
    const target = endpoint.url ?? endpoint.topic ?? "";
    return h("span", { class: `badge ${isFailing ? "bad" : "good"}`, title: isFailing ? `${endpoint.problem ?? ""} Next attempt: ${endpoint.retry_at ?? ""}` : target },
      endpoint.kind, isFailing ? ` failed ${plural(endpoint.failures, "time")}` : "");
  }
  return connections ? h("span", { class: "badge good" }, plural(connections, "connection")) : h("span", { class: "quiet-text" }, "–");
}

async function showDeadLetters() {
  const { dead_letters: letters } = await json("GET", "/v1/dead-letters?limit=20");
  byId("letters").replaceChildren(...(letters.length
    ? [h("ul", { class: "rows tight" }, letters.map((letter) => h("li", { class: "letter" },
      h("p", {}, h("span", { class: "badge bad" }, letter.source), " ", h("time", {}, clock(letter.at)), letter.subscriber ? ` ${letter.subscriber}` : ""),
      h("p", {}, letter.reason), h("code", {}, letter.body.slice(0, 200))))),
    h("button", { type: "button", class: "danger", onclick: removeAll }, "Remove all")]
    : [h("p", { class: "quiet-text" }, "None: all input was usable, and all messages were delivered or are waiting.")]));
}

async function removeAll() {
  if (!(await confirm("Remove all dead letters?", "The unusable input and the undeliverable messages are deleted.", "Remove"))) return;
  try {
    const { removed } = await json("DELETE", "/v1/dead-letters");
    toast(`${plural(removed, "dead letter")} removed`);
    await showDeadLetters();
  } catch (error) {
    toast(error.message, "bad");
  }
}
