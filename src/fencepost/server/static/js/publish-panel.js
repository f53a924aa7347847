// The publish panel: publishes a test event, by a click or by coordinates.

import { json } from "./api.js";
import { showEvent } from "./detail.js";
import { byId, count, h, plural, showProblem } from "./dom.js";
import { drawing, onLocation, setMode } from "./drawing.js";

function properties() {
  let value;
  try {
    value = JSON.parse(byId("properties").value || "{}");
  } catch {
    throw new Error('the properties are not JSON; write them as in {"kind": "test"}');
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("the properties must be a JSON object");
  return value;
}

async function publish(coordinates) {
  showProblem(byId("publish-problem"));
  try {
    const geometry = coordinates && { type: "Point", coordinates };
    const { first, messages } = await json("POST", "/v1/events", { type: "Feature", geometry, properties: properties() });
    byId("published").replaceChildren(h("p", {}, `Event ${count(first)}: `, h("b", {}, plural(messages, "message")), ". ",
      h("button", { type: "button", class: "quiet", onclick: () => showEvent(first) }, "Show it")));
  } catch (error) {
    showProblem(byId("publish-problem"), error.message);
  }
}

onLocation((coordinates) => {
  [byId("publish-x").value, byId("publish-y").value] = coordinates;
  publish(coordinates);
});

byId("publish-by-click").addEventListener("click", () => setMode(drawing() === "publish" ? "" : "publish"));
byId("publish-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const [x, y] = [byId("publish-x").value, byId("publish-y").value];
  publish(x === "" || y === "" ? null : [Number(x), Number(y)]);
});
