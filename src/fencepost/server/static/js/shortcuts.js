// Keys that do something wherever the focus is, but for fields.

import { byId, h } from "./dom.js";

const keys = new Map();

/** Name a key, what it does, and do it. */
export function shortcut(key, what, run) { keys.set(key, { what, run }); }

const typing = (element) => element.matches?.("input, textarea, select, [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key !== "Escape" && typing(event.target)) return;
  const found = keys.get(event.key);
  if (!found) return;
  event.preventDefault();
  found.run(event);
});

export function showShortcuts() {
  byId("shortcut-list").replaceChildren(...[...keys].map(([key, { what }]) =>
    h("div", {}, h("dt", {}, h("kbd", {}, key === "Escape" ? "Esc" : key)), h("dd", {}, what))),
  h("div", {}, h("dt", {}, h("kbd", {}, "← ↑ → ↓"), " ", h("kbd", {}, "+ −")), h("dd", {}, "move and zoom the map, when it has the focus")),
  h("div", {}, h("dt", {}, h("kbd", {}, "Enter")), h("dd", {}, "while drawing: take the middle of the map")));
  byId("shortcuts").showModal();
}
