// The console's entry point: signs in, starts all parts, and switches between panels.

import { json, key } from "./api.js";
import { closeDetail, explainShown, showEvent, showSubscription } from "./detail.js";
import { byId, h, showProblem } from "./dom.js";
import { drawing, drewJustNow, setMode } from "./drawing.js";
import * as health from "./health-panel.js";
import * as layer from "./live-layer.js";
import * as live from "./live-panel.js";
import { applyPalette, fitAll, initMap, load, map, subscriptionsAt } from "./map.js";
import "./publish-panel.js";
import { shortcut, showShortcuts } from "./shortcuts.js";
import { draw } from "./subscribe-panel.js";
import { focusSearch } from "./subscriptions-panel.js";

const L = window.L;
const tabs = [...document.querySelectorAll("[role=tab]")];

// Panels

function openPanel(name, focus = false) {
  for (const tab of tabs) {
    const isSelected = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", isSelected);
    tab.tabIndex = isSelected ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !isSelected;
    if (isSelected && focus) tab.focus();
  }
  if (name === "health") health.start();
  if (name !== "publish" && drawing() === "publish") setMode("");
}

tabs.forEach((tab, n) => {
  tab.addEventListener("click", () => openPanel(tab.getAttribute("aria-controls")));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    openPanel(tabs[(n + step + tabs.length) % tabs.length].getAttribute("aria-controls"), true);
  });
  shortcut(String(n + 1), `open ${tab.textContent}`, () => openPanel(tab.getAttribute("aria-controls"), true));
});

// Themes

const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";

function recolour() {
  byId("theme").textContent = isDark() ? "Light" : "Dark";
  applyPalette();
  layer.recolour();
}

function toggleTheme() {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("fencepost.theme", next);
  recolour();
}

byId("theme").addEventListener("click", toggleTheme);
dark.addEventListener("change", recolour);

// The map

map.on("click", async (event) => {
  if (drawing() || drewJustNow()) return;
  const position = layer.eventAt(event.containerPoint);
  if (position !== null) { showEvent(position); return; }
  const { total, rows } = await subscriptionsAt(event.latlng);
  if (!total) { closeDetail(); return; }
  if (explainShown(rows[0].id)) return;
  if (total === 1) { showSubscription(rows[0].id); return; }
  L.popup({ className: "choice", closeButton: false, maxHeight: 280, autoPan: false })
    .setLatLng(event.latlng).setContent(choices(total, rows)).openOn(map);
});

function choices(total, rows) {
  return h("div", {}, h("p", { class: "quiet-text" }, `${total.toLocaleString("en")} subscriptions here`),
    h("ul", { class: "rows tight" }, rows.map((row) => h("li", {},
      h("button", { type: "button", class: `row kind-${row.kind}`, onclick: () => { map.closePopup(); showSubscription(row.id); } }, h("span", { class: "row-main" }, row.id))))));
}

byId("zoom-in").addEventListener("click", () => map.zoomIn());
byId("zoom-out").addEventListener("click", () => map.zoomOut());
byId("fit").addEventListener("click", fitAll);

// Keys

shortcut("/", "find a subscription", () => { openPanel("subscriptions"); focusSearch(); });
shortcut("m", "go to the map", () => byId("map").focus());
shortcut("f", "show all subscriptions", fitAll);
shortcut("p", "draw a polygon", () => { openPanel("subscribe"); draw("polygon"); });
shortcut("r", "draw a rectangle", () => { openPanel("subscribe"); draw("rectangle"); });
shortcut("c", "draw a circle", () => { openPanel("subscribe"); draw("circle"); });
shortcut("t", "switch between light and dark", toggleTheme);
shortcut("?", "show keyboard shortcuts", showShortcuts);
shortcut("Escape", "stop drawing, or close the details", () => {
  if (drawing()) { setMode(""); byId("map").focus(); return; }
  closeDetail();
});
byId("help").addEventListener("click", showShortcuts);

// Signing in

function askForKey(message) {
  showProblem(byId("sign-in-problem"), message);
  byId("key").value = "";
  byId("sign-in").showModal();
  return new Promise((resolve) => byId("sign-in").addEventListener("close", () => resolve(byId("key").value.trim()), { once: true }));
}
byId("sign-in").addEventListener("cancel", (event) => event.preventDefault());
byId("sign-out").addEventListener("click", () => { key.set(""); location.reload(); });

async function signIn() {
  for (;;) {
    try {
      return await json("GET", "/v1/me");
    } catch (error) {
      if (error.status !== 401) throw error;
      const hadKey = key.get();
      key.set("");
      key.set(await askForKey(hadKey ? error.message : ""));
    }
  }
}

async function start() {
  live.showState("off", "connecting");
  const me = await signIn();
  const hasScope = (scope) => me.scopes.includes(scope);
  byId("sign-out").hidden = !key.get();
  byId("where").textContent = `${me.tenant} · ${me.space === "planar" ? "planar" : "WGS 84"}`;
  if (me.space === "planar") [byId("label-x").textContent, byId("label-y").textContent] = ["X", "Y"];
  await initMap(me.space);
  recolour();
  byId("do-publish").disabled = byId("publish-by-click").disabled = !hasScope("publish");
  byId("do-subscribe").disabled = byId("try").disabled = !hasScope("subscribe");
  if (hasScope("admin")) {
    live.showLogged((await json("GET", "/v1/events?limit=60")).events);
    live.start();
    health.start();
  } else {
    live.showDisabled();
  }
  if (hasScope("subscribe")) {
    await load();
    await fitAll();
  }
  document.body.dataset.ready = "";
}

start().catch((error) => {
  live.showState("off", error.message);
});
