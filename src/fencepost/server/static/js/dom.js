// Builds elements without parsing HTML, so that texts of events and subscriptions stay texts.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** Create an element. Attributes that begin with `on` are listeners; children are nodes or texts. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function showProblem(element, text) {
  element.textContent = text ?? "";
  element.hidden = !text;
}

export function announce(text) {
  byId("announce").textContent = text;
}

export function toast(text, kind = "") {
  const element = h("p", { class: `toast ${kind}` }, text);
  byId("toasts").append(element);
  setTimeout(() => element.remove(), 6000);
}

/** Ask for confirmation. Resolves to whether the user confirmed. */
export function confirm(title, text, action) {
  const dialog = byId("confirm");
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = action;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

const integer = new Intl.NumberFormat("en");
const threeDigits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const count = (n) => integer.format(n);
export const rounded = (n) => (Math.abs(n) >= 1000 ? integer.format(Math.round(n)) : threeDigits.format(n));
export const plural = (n, singular, many = `${singular}s`) => `${count(n)} ${n === 1 ? singular : many}`;

export function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${threeDigits.format(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export function clock(time) {
  return new Date(time).toLocaleTimeString([], { hour12: false });
}
