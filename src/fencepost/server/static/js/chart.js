// A small line chart of the latest values.

import { h, rounded, svg } from "./dom.js";

const MAX_VALUES = 90;
const WIDTH = 320;
const HEIGHT = 56;

export class Chart {
  constructor(title, unit, kind) {
    this.title = title;
    this.unit = unit;
    this.values = [];
    this.latest = h("b", {}, "–");
    this.peak = h("span", { class: "quiet-text" });
    this.area = svg("path", { class: "area" });
    this.line = svg("path", { class: "line", "vector-effect": "non-scaling-stroke" });
    this.graphic = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" }, this.area, this.line);
    this.element = h("figure", { class: `chart ${kind}` },
      h("figcaption", {}, h("span", {}, title), this.latest, this.peak), this.graphic);
  }

  add(value) {
    this.values.push(value);
    if (this.values.length > MAX_VALUES) this.values.shift();
    const peak = Math.max(...this.values);
    const top = peak || 1;
    const step = WIDTH / (MAX_VALUES - 1);
    const left = WIDTH - (this.values.length - 1) * step;
    const points = this.values.map((v, n) => `${(left + n * step).toFixed(1)} ${(HEIGHT - 2 - (v / top) * (HEIGHT - 6)).toFixed(1)}`);
    this.line.setAttribute("d", `M${points.join("L")}`);
    this.area.setAttribute("d", `M${left.toFixed(1)} ${HEIGHT}L${points.join("L")}L${WIDTH} ${HEIGHT}Z`);
    this.latest.textContent = `${rounded(value)}${this.unit}`;
    this.peak.textContent = `peak ${rounded(peak)}`;
    this.graphic.setAttribute("aria-label", `${this.title}: now ${rounded(value)}${this.unit}, at most ${rounded(peak)} in the last minutes`);
  }
}
