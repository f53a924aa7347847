// From a drawn region and conditions to an expression in CQL2.

const BARE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const WORDS = new Set(["and", "or", "not", "like", "between", "in", "is", "null", "true", "false", "casei", "accenti", "div", "timestamp", "date", "interval", "point", "polygon", "bbox", "linestring"]);

export const OPERATORS = [
  ["=", "is"], ["<>", "is not"], [">", ">"], [">=", "≥"], ["<", "<"], ["<=", "≤"],
  ["words", "has the words"], ["in", "is one of"], ["like", "is like"], ["null", "is missing"],
];

export const name = (given) => (BARE.test(given) && !WORDS.has(given.toLowerCase()) ? given : `"${given.replaceAll('"', '""')}"`);
export const text = (given) => `'${String(given).replaceAll("'", "''")}'`;

function value(given) {
  const plain = given.trim();
  if (plain !== "" && Number.isFinite(Number(plain))) return String(Number(plain));
  if (/^(true|false)$/i.test(plain)) return plain.toUpperCase();
  return text(plain);
}

const listed = (given, separator) => given.split(separator).map((one) => one.trim()).filter(Boolean);

function condition({ attribute, operator, given }) {
  const left = name(attribute);
  if (operator === "null") return `${left} IS NULL`;
  if (operator === "words") {
    const words = listed(given, /[\s,]+/);
    return words.length ? `A_CONTAINS(${left}, (${words.map(text).join(", ")}))` : null;
  }
  if (operator === "in") {
    const items = listed(given, ",");
    return items.length ? `${left} IN (${items.map(value).join(", ")})` : null;
  }
  if (given.trim() === "") return null;
  return operator === "like" ? `${left} LIKE ${text(given)}` : `${left} ${operator} ${value(given)}`;
}

export function region(shape) {
  const positions = (all) => all.map(([x, y]) => `${x} ${y}`).join(", ");
  switch (shape?.kind) {
    case "rectangle": return `S_INTERSECTS(geometry, BBOX(${shape.box.join(", ")}))`;
    case "circle": return `S_DWITHIN(geometry, POINT(${shape.center.join(" ")}), ${shape.radius})`;
    case "polygon": return `S_INTERSECTS(geometry, POLYGON((${positions([...shape.corners, shape.corners[0]])})))`;
    default: return null;
  }
}

export function expression(shape, conditions) {
  const parts = [region(shape), ...conditions.filter((one) => one.attribute.trim()).map(condition)];
  return parts.filter(Boolean).join("\n  AND ");
}
