// Why an event matched or not, as a tree that can be read.

import { duration, h, rounded } from "./dom.js";

const SIGNS = { true: "✓", false: "✕", unknown: "?" };
const WORDS = { true: "holds", false: "does not hold", unknown: "cannot be known" };
const LONG = 220;

export function explanationTree(explanation, matches) {
  const verdict = matches ? "It matches." : "It does not match.";
  return h("div", { class: "explanation" },
    h("p", { class: `verdict ${matches ? "yes" : "no"}` }, verdict),
    h("ul", { class: "tree" }, node(explanation)));
}

function node({ condition, outcome, compared, finding, parts }) {
  const inner = parts.map(node);
  const joined = parts.length > 1 ? (/^OR$/.test(between(condition, parts)) ? "any of these" : "all of these") : null;
  const text = parts.length ? (joined ?? "not") : shortened(condition);
  return h("li", { class: `is-${outcome}` },
    h("div", { class: "condition" },
      h("span", { class: "sign", title: WORDS[outcome], role: "img", "aria-label": WORDS[outcome] }, SIGNS[outcome]),
      parts.length ? h("span", { class: "joint" }, text) : h("code", {}, text)),
    compared ? h("p", { class: "compared" }, plainer(compared)) : null,
    facts(finding),
    inner.length ? h("ul", {}, inner) : null);
}

/** The word that joins the first two parts of a condition. */
function between(condition, parts) {
  const first = condition.indexOf(parts[0].condition);
  const after = condition.slice(first + parts[0].condition.length).replace(/^[\s)]+/, "");
  return /^(AND|OR)\b/i.exec(after)?.[1].toUpperCase() ?? (condition.startsWith('{"op": "or"') ? "OR" : "AND");
}

function facts(finding) {
  const unit = finding.unit ? ` ${finding.unit}` : "";
  const told = [];
  const add = (text, kind = "") => told.push(h("li", { class: kind }, text));
  if (finding.relation !== undefined) add(`relation: ${finding.relation}`);
  if (finding.distance !== undefined) add(`distance ${rounded(finding.distance)}${unit}`);
  if (finding.off_by !== undefined) add(`off by ${rounded(finding.off_by)}${unit}`, "bad");
  if (finding.off_by_s !== undefined) add(`off by ${duration(finding.off_by_s)}`, "bad");
  if (finding.nearest !== undefined) add(`close to “${finding.nearest}”`);
  if (finding.missing) add(`missing: ${finding.missing.join(", ")}`, "bad");
  if (finding.extra) add(`not allowed: ${finding.extra.join(", ")}`, "bad");
  for (const one of finding.unusable ?? []) add(unusable(one), "bad");
  if (finding.problem !== undefined) add(finding.problem, "bad");
  return told.length ? h("ul", { class: "facts" }, told) : null;
}

function unusable({ attribute, seen, expected, problem }) {
  if (seen === "missing") return `${attribute} is missing`;
  return problem ? `${attribute}: ${problem}` : `${attribute} is ${seen}; the condition takes ${expected}`;
}

/** GeoJSON points among what was compared, as people write them. */
const plainer = (compared) => compared.replace(/\{'type': 'Point', 'coordinates': [[(]([^\])]*)(?:[\])]\})?/g, "the point $1");

/** A long condition without the middle of its coordinates. */
export function shortened(text) {
  const less = text.replace(/\((\(?[-\d.eE\s,()]{90,}\)?)\)/g, (_, inside) => `(${inside.slice(0, 40)} … ${inside.slice(-14)})`);
  return less.length <= LONG ? less : `${less.slice(0, LONG)} …`;
}
