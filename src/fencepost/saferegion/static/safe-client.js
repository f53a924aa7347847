// The client's rule: whether an event must be sent. The same as client.py, which says what the
// shapes are; no dependencies. `SafeClient` is exported to modules, and global without them.
"use strict";

(function (root) {
  function isIn(shape, x, y) {
    if (shape[0] === "round") {
      const across = (x - shape[1]) * shape[3];
      const along = (y - shape[2]) * shape[4];
      return across * across + along * along <= shape[5];
    }
    if (!(shape[1] <= x && x <= shape[3] && shape[2] <= y && y <= shape[4])) return false;
    const across = x - shape[1];
    const along = y - shape[2];
    for (let k = 5; k < shape.length; k += 3) {
      if (!(shape[k] * across + shape[k + 1] * along <= shape[k + 2])) return false;
    }
    return true;
  }

  class SafeRegion {
    constructor(fields) {
      Object.assign(this, fields);
    }

    static fromJSON(text) {
      const fields = JSON.parse(text);
      if (fields === null || fields.format !== 1) {
        throw new Error(`this is no safe region of format 1; saw ${String(text).slice(0, 60)}`);
      }
      return new SafeRegion(fields);
    }

    contains(x, y) {
      return (
        this.safe &&
        Number.isFinite(x) &&
        Number.isFinite(y) &&
        this.inside.every((shape) => isIn(shape, x, y)) &&
        !this.outside.some((shape) => isIn(shape, x, y))
      );
    }

    isUnchanged(attributes) {
      return Object.keys(this.attributes).every((name) =>
        isSame(own(this.attributes, name), own(attributes, name)),
      );
    }

    isSilent(event) {
      const found = attributesOf(event);
      const point = pointOf(own(found, this.position));
      return point !== null && this.contains(point[0], point[1]) && this.isUnchanged(found);
    }
  }

  class SafeClient {
    constructor() {
      this.region = null;
      this.sent = 0;
      this.keptBack = 0;
      this.waiting = false;
      this.last = {};
      this.withdrawn = -1;
    }

    shouldSend(event) {
      if (this.region !== null && !this.waiting && this.region.isSilent(event)) {
        this.keptBack += 1;
        return false;
      }
      this.waiting = true;
      this.last = attributesOf(event);
      this.sent += 1;
      return true;
    }

    accept(text) {
      const fields = JSON.parse(text);
      if (fields !== null && fields.format === 1 && "keep" in fields) {
        if (this.region !== null && this.region.number === fields.keep) {
          this.waiting = !this.answers(this.region.position, fields.at);
        }
        return;
      }
      const region = SafeRegion.fromJSON(text);
      if (this.answers(region.position, region.at) && region.version >= this.withdrawn) {
        this.region = region.safe ? region : null;
        this.waiting = false;
      }
    }

    answers(position, at) {
      const point = pointOf(own(this.last, position));
      return at !== null && point !== null && at[0] === point[0] && at[1] === point[1];
    }

    withdraw(version) {
      this.withdrawn = Math.max(this.withdrawn, version);
      if (this.region !== null && this.region.version < version) this.region = null;
    }
  }

  function own(mapping, name) {
    return Object.hasOwn(mapping, name) ? mapping[name] : undefined;
  }

  function attributesOf(event) {
    if (event.type !== "Feature") return event;
    const found = Object.create(null);
    const properties = event.properties || {};
    for (const [name, value] of Object.entries(properties)) found[name] = value;
    for (const [name, value] of Object.entries(properties)) found[`properties.${name}`] = value;
    found.id = event.id;
    found.geometry = event.geometry;
    return found;
  }

  const NUMBER = "([-+]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][-+]?[0-9]+)?)";
  const WKT_POINT = new RegExp(`^\\s*POINT\\s*\\(\\s*${NUMBER}\\s+${NUMBER}\\s*\\)\\s*$`, "i");

  function pointOf(value) {
    if (typeof value === "string") {
      const found = WKT_POINT.exec(value);
      return found === null ? null : finite(Number(found[1]), Number(found[2]));
    }
    if (value === null || typeof value !== "object" || value.type !== "Point") return null;
    const given = value.coordinates;
    if (!Array.isArray(given) || given.length < 2) return null;
    return finite(given[0], given[1]);
  }

  // Strings are not finite numbers either.
  function finite(x, y) {
    return Number.isFinite(x) && Number.isFinite(y) ? [x, y] : null;
  }

  // What is absent, null or NaN is missing, and two missing ones are alike.
  function isSame(one, other) {
    const a = one === undefined || Number.isNaN(one) ? null : one;
    const b = other === undefined || Number.isNaN(other) ? null : other;
    if (a === null || b === null || typeof a !== "object" || typeof b !== "object") {
      // Integers that doubles take for others, and infinities, are like nothing.
      return a === b && (typeof a !== "number" || Math.abs(a) < 2 ** 53 || !Number.isInteger(a))
        && Math.abs(a) !== Infinity;
    }
    if (Array.isArray(a) !== Array.isArray(b)) return false;
    const names = Object.keys(a);
    return (
      names.length === Object.keys(b).length &&
      names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]))
    );
  }

  const exported = { SafeClient, SafeRegion };
  if (typeof module === "object" && module.exports) module.exports = exported;
  else Object.assign(root, exported);
})(globalThis);
