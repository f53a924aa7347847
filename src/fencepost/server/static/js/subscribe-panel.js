// Making a subscription by hand.

import { json, path } from "./api.js";
import * as cql from "./cql.js";
import { showEvent, showSubscription } from "./detail.js";
import { byId, count, h, plural, problem, toast } from "./dom.js";
import { coordinateFields, drawing, onShape, setMode, setShape, shape, shapeInTheMiddle } from "./drawing.js";
import { load } from "./map.js";

const RECENT = 200;
let byHand = false; // whether the expression was edited

function rows() {
  return [...byId("conditions").children].map((row) => ({
    attribute: row.querySelector("[name=attribute]").value,
    operator: row.querySelector("[name=operator]").value,
    given: row.querySelector("[name=given]").value,
  }));
}

function addCondition() {
  const row = h("div", { class: "condition-row", role: "group", "aria-label": "Condition" },
    h("input", { type: "text", name: "attribute", placeholder: "attribute", "aria-label": "Attribute", oninput: build }),
    h("select", { name: "operator", "aria-label": "Comparison", oninput: (e) => {
      row.querySelector("[name=given]").hidden = e.target.value === "null";
      build();
    } }, cql.OPERATORS.map(([value, shown]) => h("option", { value }, shown))),
    h("input", { type: "text", name: "given", placeholder: "value", "aria-label": "Value", oninput: build }),
    h("button", { type: "button", class: "quiet", "aria-label": "Remove this condition", onclick: () => { row.remove(); build(); byId("add-condition").focus(); } }, "✕"));
  byId("conditions").append(row);
  row.querySelector("input").focus();
}

function build() {
  if (byHand) return;
  byId("expression").value = cql.expression(shape, rows());
  problem(byId("expression-problem"));
}

function edited(now) {
  byHand = now;
  byId("rebuild").hidden = !now;
}

onShape(() => {
  coordinateFields(byId("coordinates"));
  edited(false);
  build();
});

export function draw(kind) {
  if (!kind) return setShape(null);
  if (drawing() === kind) return setShape(shapeInTheMiddle(kind)); // chosen again: as numbers
  return setMode(kind);
}

document.querySelectorAll("[data-draw]").forEach((button) => button.addEventListener("click", (event) => {
  // Pressed by keyboard, there is a shape to begin with, whose numbers can be changed.
  if (event.detail === 0 && button.dataset.draw) setShape(shapeInTheMiddle(button.dataset.draw));
  else draw(button.dataset.draw);
}));

byId("add-condition").addEventListener("click", addCondition);
byId("expression").addEventListener("input", () => edited(true));
byId("rebuild").addEventListener("click", () => { edited(false); build(); });

function refused(error) {
  const text = byId("expression").value;
  const where = error.position === null ? "" : ` At: “${text.slice(Math.max(0, error.position - 12), error.position)}▸${text.slice(error.position, error.position + 12)}”`;
  problem(byId("expression-problem"), error.message + where);
  if (error.position !== null) byId("expression").setSelectionRange(error.position, error.position + 1);
}

async function tryIt() {
  const into = byId("tried");
  problem(byId("expression-problem"));
  into.replaceChildren(h("p", { class: "quiet-text" }, "…"));
  try {
    const { events } = await json("GET", `/v1/events?limit=${RECENT}`);
    const { results } = await json("POST", "/v1/try", { expression: byId("expression").value, events: events.map((one) => one.event) });
    const hits = events.filter((_, n) => results[n].matches);
    into.replaceChildren(
      h("p", {}, h("b", {}, `${count(hits.length)} of the last ${plural(events.length, "event")}`), " would have matched."),
      h("ul", { class: "rows tight" }, hits.slice(0, 20).map((one) => h("li", {},
        h("button", { type: "button", class: "row", onclick: () => showEvent(one.position) }, h("span", { class: "badge match" }, "match"), h("span", { class: "row-main" }, `event ${count(one.position)}`))))));
  } catch (error) {
    into.replaceChildren();
    refused(error);
  }
}

byId("try").addEventListener("click", tryIt);

byId("subscribe-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  problem(byId("expression-problem"));
  const id = byId("new-id").value;
  const asked = { expression: byId("expression").value };
  if (byId("new-subscriber").value) asked.subscriber = byId("new-subscriber").value;
  try {
    await json("PUT", path`/v1/subscriptions/${id}`, asked, { "if-none-match": "*" });
    toast(`Subscribed ${id}`, "good");
    setShape(null);
    byId("conditions").replaceChildren();
    byId("tried").replaceChildren();
    suggestId();
    build();
    await load();
    showSubscription(id);
  } catch (error) {
    refused(error);
  }
});

export function suggestId() {
  const letters = "bcdfghjkmnpqrstvwxz23456789";
  const random = [...crypto.getRandomValues(new Uint8Array(6))].map((n) => letters[n % letters.length]).join("");
  byId("new-id").value = `by-hand-${random}`;
}

suggestId();
