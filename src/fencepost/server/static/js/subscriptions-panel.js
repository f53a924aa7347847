// The subscriptions panel: the list of subscriptions, and the filter of the list and the map.

import { byId, count, h, plural } from "./dom.js";
import { showSubscription } from "./detail.js";
import { onUpdate, setFilter } from "./map.js";

const filter = () => ({
  text: byId("filter-text").value,
  subscriber: byId("filter-subscriber").value.trim(),
  kind: byId("filter-kind").value,
});

let filterTimer = null;
function scheduleFilter() {
  clearTimeout(filterTimer);
  filterTimer = setTimeout(() => setFilter(filter()), 120);
}
["filter-text", "filter-subscriber", "filter-kind"].forEach((id) => byId(id).addEventListener("input", scheduleFilter));

onUpdate(({ total, shown, withoutShapes, listed, subscribers }) => {
  byId("map").dataset.total = total;
  byId("map").dataset.shown = shown;
  const summary = shown === total ? plural(total, "subscription") : `${count(shown)} of ${plural(total, "subscription")}`;
  const leftOut = Number(byId("map").dataset.leftOut ?? 0);
  byId("listed-count").textContent = [
    summary, withoutShapes ? `${count(withoutShapes)} without a location` : "", leftOut ? `${count(leftOut)} not loaded` : "",
  ].filter(Boolean).join(" · ");
  byId("listed").replaceChildren(
    ...(total ? listed.map(row) : [empty()]),
    ...(shown > listed.length ? [h("li", { class: "quiet-text more" }, `and ${count(shown - listed.length)} more; filter them above, or click on the map`)] : []));
  byId("subscriber-names").replaceChildren(...subscribers.map((name) => h("option", { value: name })));
});

const row = ({ id, subscriber, summary, kind }) => h("li", {},
  h("button", { type: "button", class: `row two-lines kind-${kind}`, onclick: () => showSubscription(id, true) },
    h("span", { class: "row-main" }, id, subscriber === id ? null : h("span", { class: "owner" }, subscriber)),
    h("span", { class: "row-more" }, summary)));

const empty = () => h("li", { class: "empty" },
  h("p", {}, h("b", {}, "No subscriptions yet.")),
  h("p", {}, "Draw a region under ", h("b", {}, "Subscribe"), " (press 3), or add subscriptions with a client."));

export function focusSearch() { byId("filter-text").focus(); }
