// The rule of the client: an object sends an event only if it may match a subscription. The same as
// client_rule.py, which describes the shapes. No dependencies. A module exports `SafeClient` and
// `SafeRegion`; a script defines them as globals.
"use strict";

(function (root) {
  function shapeContains(shape, x, y) {
    if (shape[0] === "round") {
      const dx = (x - shape[1]) * shape[3];
      const dy = (y - shape[2]) * shape[4];
      return dx * dx + dy * dy <= shape[5];
    }
    if (!(shape[1] <= x && x <= shape[3] && shape[2] <= y && y <= shape[4])) return false;
    const dx = x - shape[1];
    const dy = y - shape[2];
    for (let k = 5; k < shape.length; k += 3) {
      if (!(shape[k] * dx + shape[k + 1] * dy <= shape[k + 2])) return false;
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
        throw new Error(`this is not a safe region of format 1; saw ${String(text).slice(0, 60)}`);
      }
      return new SafeRegion(fields);
    }

    contains(x, y) {
      return (
        this.safe &&
        Number.isFinite(x) &&
        Number.isFinite(y) &&
        this.inside.every((shape) => shapeContains(shape, x, y)) &&
        !this.outside.some((shape) => shapeContains(shape, x, y))
      );
    }

    isUnchanged(attributes) {
      return Object.keys(this.attributes).every((name) =>
        valuesEqual(ownValue(this.attributes, name), ownValue(attributes, name)),
      );
    }

    isSilent(event) {
      const attributes = attributesOf(event);
      const point = pointOf(ownValue(attributes, this.position));
      return (
        point !== null && this.contains(point[0], point[1]) && this.isUnchanged(attributes)
      );
    }
  }

  class SafeClient {
    constructor() {
      this.region = null;
      this.sent = 0;
      this.keptBack = 0;
      this.awaitsAnswer = false;
      this.lastSent = {};
      this.withdrawnVersion = -1;
    }

    shouldSend(event) {
      if (this.region !== null && !this.awaitsAnswer && this.region.isSilent(event)) {
        this.keptBack += 1;
        return false;
      }
      this.awaitsAnswer = true;
      this.lastSent = attributesOf(event);
      this.sent += 1;
      return true;
    }

    accept(text) {
      const fields = JSON.parse(text);
      if (fields !== null && fields.format === 1 && "keep" in fields) {
        if (this.region !== null && this.region.number === fields.keep) {
          this.awaitsAnswer = !this.answers(this.region.position, fields.at);
        }
        return;
      }
      const region = SafeRegion.fromJSON(text);
      if (this.answers(region.position, region.at) && region.version >= this.withdrawnVersion) {
        this.region = region.safe ? region : null;
        this.awaitsAnswer = false;
      }
    }

    answers(position, at) {
      const point = pointOf(ownValue(this.lastSent, position));
      return at !== null && point !== null && at[0] === point[0] && at[1] === point[1];
    }

    withdraw(version) {
      this.withdrawnVersion = Math.max(this.withdrawnVersion, version);
      if (this.region !== null && this.region.version < version) this.region = null;
    }
  }

  function ownValue(mapping, name) {
    return Object.hasOwn(mapping, name) ? mapping[name] : undefined;
  }

  function attributesOf(event) {
    if (event.type !== "Feature") return event;
    const attributes = Object.create(null);
    const properties = event.properties || {};
    for (const [name, value] of Object.entries(properties)) attributes[name] = value;
    for (const [name, value] of Object.entries(properties)) attributes[`properties.${name}`] = value;
    attributes.id = event.id;
    attributes.geometry = event.geometry;
    return attributes;
  }

  const NUMBER = "([-+]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][-+]?[0-9]+)?)";
  const WKT_POINT = new RegExp(`^\\s*POINT\\s*\\(\\s*${NUMBER}\\s+${NUMBER}\\s*\\)\\s*$`, "i");

  function pointOf(value) {
    if (typeof value === "string") {
      const match = WKT_POINT.exec(value);
      return match === null ? null : finitePoint(Number(match[1]), Number(match[2]));
    }
    if (value === null || typeof value !== "object" || value.type !== "Point") return null;
    const coordinates = value.coordinates;
    if (!Array.isArray(coordinates) || coordinates.length < 2) return null;
    return finitePoint(coordinates[0], coordinates[1]);
  }

  // `Number.isFinite` is false for strings.
  function finitePoint(x, y) {
    return Number.isFinite(x) && Number.isFinite(y) ? [x, y] : null;
  }

  // Absent values, null and NaN are missing. Two missing values are equal.
  function valuesEqual(left, right) {
    const a = left === undefined || Number.isNaN(left) ? null : left;
    const b = right === undefined || Number.isNaN(right) ? null : right;
    if (a === null || b === null || typeof a !== "object" || typeof b !== "object") {
      // Integers beyond 2**53, which doubles cannot tell apart, and infinities equal nothing.
      return a === b && (typeof a !== "number" || Math.abs(a) < 2 ** 53 || !Number.isInteger(a))
        && Math.abs(a) !== Infinity;
    }
    if (Array.isArray(a) !== Array.isArray(b)) return false;
    const names = Object.keys(a);
    return (
      names.length === Object.keys(b).length &&
      names.every((name) => Object.hasOwn(b, name) && valuesEqual(a[name], b[name]))
    );
  }

  const exported = { SafeClient, SafeRegion };
  if (typeof module === "object" && module.exports) module.exports = exported;
  else Object.assign(root, exported);
})(globalThis);
