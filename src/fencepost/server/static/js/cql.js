// Builds a CQL2 expression from a drawn shape and the conditions of the form.

const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const KEYWORDS = new Set(["and", "or", "not", "like", "between", "in", "is", "null", "true", "false", "casei", "accenti", "div", "timestamp", "date", "interval", "point", "polygon", "bbox", "linestring"]);

export const OPERATORS = [
  ["=", "is"], ["<>", "is not"], [">", ">"], [">=", "≥"], ["<", "<"], ["<=", "≤"],
  ["words", "has the words"], ["in", "is one of"], ["like", "is like"], ["null", "is missing"],
];

export const quoteName = (name) => (PLAIN_NAME.test(name) && !KEYWORDS.has(name.toLowerCase()) ? name : `"${name.replaceAll('"', '""')}"`);
export const quoteText = (text) => `'${String(text).replaceAll("'", "''")}'`;

function literal(input) {
  const trimmed = input.trim();
  if (trimmed !== "" && Number.isFinite(Number(trimmed))) return String(Number(trimmed));
  if (/^(true|false)$/i.test(trimmed)) return trimmed.toUpperCase();
  return quoteText(trimmed);
}

const split = (input, separator) => input.split(separator).map((item) => item.trim()).filter(Boolean);

function condition({ attribute, operator, value }) {
  const left = quoteName(attribute);
  if (operator === "null") return `${left} IS NULL`;
  if (operator === "words") {
    const words = split(value, /[\s,]+/);
    return words.length ? `A_CONTAINS(${left}, (${words.map(quoteText).join(", ")}))` : null;
  }
  if (operator === "in") {
    const items = split(value, ",");
    return items.length ? `${left} IN (${items.map(literal).join(", ")})` : null;
  }
  if (value.trim() === "") return null;
  return operator === "like" ? `${left} LIKE ${quoteText(value)}` : `${left} ${operator} ${literal(value)}`;
}

export function shapeCondition(shape) {
  const positions = (corners) => corners.map(([x, y]) => `${x} ${y}`).join(", ");
  switch (shape?.kind) {
    case "rectangle": return `S_INTERSECTS(geometry, BBOX(${shape.box.join(", ")}))`;
    case "circle": return `S_DWITHIN(geometry, POINT(${shape.center.join(" ")}), ${shape.radius})`;
    case "polygon": return `S_INTERSECTS(geometry, POLYGON((${positions([...shape.corners, shape.corners[0]])})))`;
    default: return null;
  }
}

export function expression(shape, conditions) {
  const parts = [shapeCondition(shape), ...conditions.filter((row) => row.attribute.trim()).map(condition)];
  return parts.filter(Boolean).join("\n  AND ");
}
