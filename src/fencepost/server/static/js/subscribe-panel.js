// The subscribe panel: creates a subscription from a shape and conditions.

import { json, path } from "./api.js";
import * as cql from "./cql.js";
import { showEvent, showSubscription } from "./detail.js";
import { byId, count, h, plural, showProblem, toast } from "./dom.js";
import { coordinateFields, drawing, onShape, setMode, setShape, shape, shapeAtCentre } from "./drawing.js";
import { load } from "./map.js";

const MAX_TRIED_EVENTS = 200;
let isEdited = false; // whether the user edited the expression

function conditions() {
  return [...byId("conditions").children].map((row) => ({
    attribute: row.querySelector("[name=attribute]").value,
    operator: row.querySelector("[name=operator]").value,
    value: row.querySelector("[name=value]").value,
  }));
}

function addCondition() {
  const row = h("div", { class: "condition-row", role: "group", "aria-label": "Condition" },
    h("input", { type: "text", name: "attribute", placeholder: "attribute", "aria-label": "Attribute", oninput: buildExpression }),
    h("select", { name: "operator", "aria-label": "Comparison", oninput: (e) => {
      row.querySelector("[name=value]").hidden = e.target.value === "null";
      buildExpression();
    } }, cql.OPERATORS.map(([value, label]) => h("option", { value }, label))),
    h("input", { type: "text", name: "value", placeholder: "value", "aria-label": "Value", oninput: buildExpression }),
    h("button", { type: "button", class: "quiet", "aria-label": "Remove this condition", onclick: () => { row.remove(); buildExpression(); byId("add-condition").focus(); } }, "✕"));
  byId("conditions").append(row);
  row.querySelector("input").focus();
}

function buildExpression() {
  if (isEdited) return;
  byId("expression").value = cql.expression(shape, conditions());
  showProblem(byId("expression-problem"));
}

function setEdited(edited) {
  isEdited = edited;
  byId("rebuild").hidden = !edited;
}

onShape(() => {
  coordinateFields(byId("coordinates"));
  setEdited(false);
  buildExpression();
});

export function draw(kind) {
  if (!kind) return setShape(null);
  if (drawing() === kind) return setShape(shapeAtCentre(kind)); // a second time: start from numbers
  return setMode(kind);
}

document.querySelectorAll("[data-draw]").forEach((button) => button.addEventListener("click", (event) => {
  // A press with the keyboard starts with a shape whose numbers can be edited.
  if (event.detail === 0 && button.dataset.draw) setShape(shapeAtCentre(button.dataset.draw));
  else draw(button.dataset.draw);
}));

byId("add-condition").addEventListener("click", addCondition);
byId("expression").addEventListener("input", () => setEdited(true));
byId("rebuild").addEventListener("click", () => { setEdited(false); buildExpression(); });

function showError(error) {
  const text = byId("expression").value;
  const snippet = error.position === null ? "" : ` At “${text.slice(Math.max(0, error.position - 12), error.position)}▸${text.slice(error.position, error.position + 12)}”`;
  showProblem(byId("expression-problem"), error.message + snippet);
  if (error.position !== null) byId("expression").setSelectionRange(error.position, error.position + 1);
}

async function tryExpression() {
  const element = byId("tried");
  showProblem(byId("expression-problem"));
  element.replaceChildren(h("p", { class: "quiet-text" }, "…"));
  try {
    const { events } = await json("GET", `/v1/events?limit=${MAX_TRIED_EVENTS}`);
    const { results } = await json("POST", "/v1/try", { expression: byId("expression").value, events: events.map(({ event }) => event) });
    const matching = events.filter((_, n) => results[n].matches);
    element.replaceChildren(
      h("p", {}, h("b", {}, `${count(matching.length)} of the last ${plural(events.length, "event")}`), " match."),
      h("ul", { class: "rows tight" }, matching.slice(0, 20).map(({ position }) => h("li", {},
        h("button", { type: "button", class: "row", onclick: () => showEvent(position) }, h("span", { class: "badge match" }, "match"), h("span", { class: "row-main" }, `event ${count(position)}`))))));
  } catch (error) {
    element.replaceChildren();
    showError(error);
  }
}

byId("try").addEventListener("click", tryExpression);

byId("subscribe-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  showProblem(byId("expression-problem"));
  const id = byId("new-id").value;
  const definition = { expression: byId("expression").value };
  if (byId("new-subscriber").value) definition.subscriber = byId("new-subscriber").value;
  try {
    await json("PUT", path`/v1/subscriptions/${id}`, definition, { "if-none-match": "*" });
    toast(`Added ${id}`, "good");
    setShape(null);
    byId("conditions").replaceChildren();
    byId("tried").replaceChildren();
    suggestId();
    buildExpression();
    await load();
    showSubscription(id);
  } catch (error) {
    showError(error);
  }
});

export function suggestId() {
  const letters = "bcdfghjkmnpqrstvwxz23456789";
  const random = [...crypto.getRandomValues(new Uint8Array(6))].map((n) => letters[n % letters.length]).join("");
  byId("new-id").value = `console-${random}`;
}

suggestId();
