// A test event, by a click or by its coordinates.

import { json } from "./api.js";
import { showEvent } from "./detail.js";
import { byId, count, h, plural, problem } from "./dom.js";
import { drawing, onPlace, setMode } from "./drawing.js";

function properties() {
  let found;
  try {
    found = JSON.parse(byId("properties").value || "{}");
  } catch {
    throw new Error('the properties are not JSON; write them as in {"kind": "test"}');
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) throw new Error("the properties are a JSON object");
  return found;
}

async function publish(at) {
  problem(byId("publish-problem"));
  try {
    const geometry = at && { type: "Point", coordinates: at };
    const { first, messages } = await json("POST", "/v1/events", { type: "Feature", geometry, properties: properties() });
    byId("published").replaceChildren(h("p", {}, `Event ${count(first)}: `, h("b", {}, plural(messages, "message")), ". ",
      h("button", { type: "button", class: "quiet", onclick: () => showEvent(first) }, "Show it")));
  } catch (error) {
    problem(byId("publish-problem"), error.message);
  }
}

onPlace((at) => {
  [byId("publish-x").value, byId("publish-y").value] = at;
  publish(at);
});

byId("publish-by-click").addEventListener("click", () => setMode(drawing() === "publish" ? "" : "publish"));
byId("publish-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const [x, y] = [byId("publish-x").value, byId("publish-y").value];
  publish(x === "" || y === "" ? null : [Number(x), Number(y)]);
});
