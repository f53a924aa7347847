// Keyboard shortcuts, which work everywhere except in fields.

import { byId, h } from "./dom.js";

const shortcuts = new Map(); // by key

/** Register a shortcut. */
export function shortcut(key, description, run) { shortcuts.set(key, { description, run }); }

const isField = (element) => element.matches?.("input, textarea, select, [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key !== "Escape" && isField(event.target)) return;
  const pressed = shortcuts.get(event.key);
  if (!pressed) return;
  event.preventDefault();
  pressed.run(event);
});

export function showShortcuts() {
  byId("shortcut-list").replaceChildren(...[...shortcuts].map(([key, { description }]) =>
    h("div", {}, h("dt", {}, h("kbd", {}, key === "Escape" ? "Esc" : key)), h("dd", {}, description))),
  h("div", {}, h("dt", {}, h("kbd", {}, "← ↑ → ↓"), " ", h("kbd", {}, "+ −")), h("dd", {}, "move and zoom the map when it has the focus")),
  h("div", {}, h("dt", {}, h("kbd", {}, "Enter")), h("dd", {}, "while drawing: use the centre of the map")));
  byId("shortcuts").showModal();
}
