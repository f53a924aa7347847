// Rates, queues, endpoints and dead letters.

import { json } from "./api.js";
import { Chart } from "./chart.js";
import { agreed, byId, clock, count, duration, h, plural, rounded, toast } from "./dom.js";

const EVERY_MS = 2000;
const LISTED = 100;

const charts = {
  events: new Chart("Events", " /s", "plain"),
  messages: new Chart("Matches", " /s", "warm"),
  unread: new Chart("Unread messages", "", "plain"),
  lag: new Chart("Longest lag", " s", "plain"),
};
byId("charts").append(...Object.values(charts).map((one) => one.element));
let last = null;
let timer = null;
let deepest = new Map(); // the longest queues, by subscriber

export function start() {
  clearTimeout(timer);
  poll();
}

export function stop() { clearTimeout(timer); }

async function poll() {
  try {
    if (!document.hidden) take(await json("GET", "/v1/stats"));
    if (!document.hidden && !byId("health").hidden) await Promise.all([subscribers(), letters()]);
  } catch { /* the live connection says that the server is away */ }
  timer = setTimeout(poll, EVERY_MS);
}

function take(stats) {
  const now = { at: performance.now() / 1000, ...stats.server };
  if (last && now.at > last.at && now.events >= last.events) {
    const rate = (name) => (now[name] - last[name]) / (now.at - last.at);
    charts.events.add(rate("events"));
    charts.messages.add(rate("messages"));
    byId("now-events").textContent = rounded(rate("events"));
    byId("now-matches").textContent = rounded(rate("messages"));
  }
  last = now;
  charts.unread.add(stats.unread);
  charts.lag.add(Math.max(0, ...stats.queues.map((one) => one.lag_s)));
  byId("now-unread").textContent = rounded(stats.unread);
  deepest = new Map(stats.queues.map((one) => [one.subscriber, one]));
}

async function subscribers() {
  const { subscribers: page, next } = await json("GET", `/v1/subscribers?limit=${LISTED}`);
  const known = new Map(page.map((one) => [one.subscriber, one]));
  for (const [name, one] of deepest) if (!known.has(name)) known.set(name, { ...one, connections: null, endpoint: null });
  const all = [...known.values()].sort((a, b) => b.depth - a.depth || (a.subscriber < b.subscriber ? -1 : 1));
  const most = Math.max(1, ...all.map((one) => one.depth));
  byId("queues").replaceChildren(
    all.length ? h("table", {},
      h("thead", {}, h("tr", {}, ["Subscriber", "Unread", "Lag", "Reads by"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, all.map((one) => queue(one, most)))) : h("p", { class: "quiet-text" }, "Nobody has subscribed."),
    next ? h("p", { class: "quiet-text" }, `The first ${LISTED} by name, and those with the longest queues.`) : "");
}

function queue(one, most) {
  return h("tr", {},
    h("th", { scope: "row" }, one.subscriber),
    h("td", { class: "figure" }, h("meter", { min: 0, max: most, value: one.depth, "aria-hidden": "true" }), count(one.depth)),
    h("td", { class: "figure" }, one.depth ? duration(one.lag_s) : "–"),
    h("td", {}, reader(one)));
}

function reader({ connections, endpoint }) {
  if (endpoint) {
    const bad = endpoint.failures > 0;
    const where = endpoint.url ?? endpoint.topic ?? "";
    return h("span", { class: `badge ${bad ? "bad" : "good"}`, title: bad ? `${endpoint.problem ?? ""} Next: ${endpoint.retry_at ?? ""}` : where },
      endpoint.kind, bad ? ` failed ${plural(endpoint.failures, "time")}` : "");
  }
  return connections ? h("span", { class: "badge good" }, plural(connections, "connection")) : h("span", { class: "quiet-text" }, "–");
}

async function letters() {
  const { dead_letters: found } = await json("GET", "/v1/dead-letters?limit=20");
  byId("letters").replaceChildren(...(found.length
    ? [h("ul", { class: "rows tight" }, found.map((one) => h("li", { class: "letter" },
      h("p", {}, h("span", { class: "badge bad" }, one.source), " ", h("time", {}, clock(one.at)), one.subscriber ? ` ${one.subscriber}` : ""),
      h("p", {}, one.reason), h("code", {}, one.body.slice(0, 200))))),
    h("button", { type: "button", class: "danger", onclick: throwAway }, "Throw away all")]
    : [h("p", { class: "quiet-text" }, "None. Everything could be read and handed over.")]));
}

async function throwAway() {
  if (!(await agreed("Throw away the dead letters?", "What could not be read or handed over is then gone.", "Throw away"))) return;
  try {
    const { removed } = await json("DELETE", "/v1/dead-letters");
    toast(`${plural(removed, "dead letter")} thrown away`);
    await letters();
  } catch (error) {
    toast(error.message, "bad");
  }
}
