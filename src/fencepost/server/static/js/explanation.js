// Shows an explanation of why an event matched or not, as a tree.

import { duration, h, rounded } from "./dom.js";

const SIGNS = { true: "✓", false: "✕", unknown: "?" };
const OUTCOMES = { true: "true", false: "false", unknown: "unknown" };
const MAX_CHARS = 220;

export function explanationTree(explanation, matches) {
  const verdict = matches ? "It matches." : "It does not match.";
  return h("div", { class: "explanation" },
    h("p", { class: `verdict ${matches ? "yes" : "no"}` }, verdict),
    h("ul", { class: "tree" }, node(explanation)));
}

function node({ condition, outcome, compared, finding, parts }) {
  const children = parts.map(node);
  const operator = parts.length > 1 ? (/^OR$/.test(operatorOf(condition, parts)) ? "any of these" : "all of these") : "not";
  const text = parts.length ? operator : shortened(condition);
  return h("li", { class: `is-${outcome}` },
    h("div", { class: "condition" },
      h("span", { class: "sign", title: OUTCOMES[outcome], role: "img", "aria-label": OUTCOMES[outcome] }, SIGNS[outcome]),
      parts.length ? h("span", { class: "joint" }, text) : h("code", {}, text)),
    compared ? h("p", { class: "compared" }, readable(compared)) : null,
    facts(finding),
    children.length ? h("ul", {}, children) : null);
}

/** Return the operator between the first two parts of a condition. */
function operatorOf(condition, parts) {
  const first = condition.indexOf(parts[0].condition);
  const after = condition.slice(first + parts[0].condition.length).replace(/^[\s)]+/, "");
  return /^(AND|OR)\b/i.exec(after)?.[1].toUpperCase() ?? (condition.startsWith('{"op": "or"') ? "OR" : "AND");
}

function facts(finding) {
  const unit = finding.unit ? ` ${finding.unit}` : "";
  const items = [];
  const add = (text, kind = "") => items.push(h("li", { class: kind }, text));
  if (finding.relation !== undefined) add(`relation: ${finding.relation}`);
  if (finding.distance !== undefined) add(`distance ${rounded(finding.distance)}${unit}`);
  if (finding.off_by !== undefined) add(`off by ${rounded(finding.off_by)}${unit}`, "bad");
  if (finding.off_by_s !== undefined) add(`off by ${duration(finding.off_by_s)}`, "bad");
  if (finding.nearest !== undefined) add(`close to “${finding.nearest}”`);
  if (finding.missing) add(`missing: ${finding.missing.join(", ")}`, "bad");
  if (finding.extra) add(`not allowed: ${finding.extra.join(", ")}`, "bad");
  for (const attribute of finding.unusable ?? []) add(unusable(attribute), "bad");
  if (finding.problem !== undefined) add(finding.problem, "bad");
  return items.length ? h("ul", { class: "facts" }, items) : null;
}

function unusable({ attribute, seen, expected, problem }) {
  if (seen === "missing") return `${attribute} is missing`;
  return problem ? `${attribute}: ${problem}` : `${attribute} is of type ${seen}, but the condition needs ${expected}`;
}

/** Replace GeoJSON points in a text by "the point X, Y". */
const readable = (compared) => compared.replace(/\{'type': 'Point', 'coordinates': [[(]([^\])]*)(?:[\])]\})?/g, "the point $1");

/** Shorten long lists of coordinates in a condition, then the condition. */
export function shortened(text) {
  const short = text.replace(/\((\(?[-\d.eE\s,()]{90,}\)?)\)/g, (_, inside) => `(${inside.slice(0, 40)} … ${inside.slice(-14)})`);
  return short.length <= MAX_CHARS ? short : `${short.slice(0, MAX_CHARS)} …`;
}
