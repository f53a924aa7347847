// A client of a Fencepost server for browsers and Node 20 and later, without dependencies.
//
//   import { Client } from "http://127.0.0.1:8080/client.js";   // or from a copy of this file
//   const client = new Client("http://127.0.0.1:8080", { key: "fp_..." });
//   await client.subscribe("taxis", "kind = 'taxi'", { subscriber: "me" });
//   await client.publish({ kind: "taxi" });
//   for await (const message of client.messages("me")) console.log(message.data.event);
//
// Messages arrive as server-sent events through `fetch`. Unlike WebSocket and EventSource, `fetch`
// lets a browser send a key in a header, and Node has it too.

const MAX_PART_EVENTS = 5_000;
const MAX_PART_CHARS = 2 << 20;
const MIN_DELAY_MS = 250;
const MAX_DELAY_MS = 10_000;
const RESET_AFTER_MS = 60_000; // without failures
const MAX_UNACKNOWLEDGED = 100;
const RETRYABLE_STATUSES = new Set([429, 502, 503, 504]);

/** A request that the server rejected: its HTTP `status`, and the `problem` (RFC 9457). */
export class RequestRefused extends Error {
  constructor(detail, status, problem = {}) {
    super(detail);
    this.name = "RequestRefused";
    this.status = status;
    this.problem = problem;
  }
}

/** The server cannot be reached. */
export class Unreachable extends Error {
  constructor(message) {
    super(message);
    this.name = "Unreachable";
  }
}

/** A client of one server. */
export class Client {
  /**
   * @param {string} url URL of the server; in a browser, by default the origin of the page
   * @param {object} options
   * @param {string} [options.key] key, as `fencepost keys add` printed it
   * @param {number} [options.retryTimeoutMs] how long a temporary failure is retried
   * @param {number} [options.idleTimeoutMs] how long a stream may be silent before it is reopened
   * @param {(text: string) => void} [options.log] called with a message at each retry
   */
  constructor(url = globalThis.location?.origin ?? "", options = {}) {
    const { key, retryTimeoutMs = 60_000, idleTimeoutMs = 45_000, log = () => {} } = options;
    this.url = url.replace(/\/+$/, "");
    this._headers = key ? { authorization: `Bearer ${key}` } : {};
    this._retryTimeoutMs = retryTimeoutMs;
    this._idleTimeoutMs = idleTimeoutMs;
    this._log = log;
  }

  /** Add or replace a subscription. Resolves to the stored subscription. */
  async subscribe(id, expression, options = {}) {
    const { subscriber, expires, track, composite, payload } = options;
    const definition = { expression, subscriber, expires, track, composite, payload };
    const body = JSON.stringify(definition, (_, value) => value ?? undefined);
    const response = await this._retried("PUT", `/v1/subscriptions/${segment(id)}`, body);
    return response.json();
  }

  /** Remove a subscription. Resolves to whether it existed. */
  async unsubscribe(id) {
    try {
      await this._retried("DELETE", `/v1/subscriptions/${segment(id)}`);
      return true;
    } catch (error) {
      if (error.status === 404) return error.attempts > 1; // the response to an earlier attempt may have been lost
      throw error;
    }
  }

  /**
   * Publish an event or an iterable of events. Resolves once they and their messages are on disk.
   * Many events are sent in parts. A part whose response is lost is sent again, and logged once.
   * Resolves to `{accepted, messages, rejected: [{row, reason}], first, last}`.
   */
  async publish(events) {
    const single = typeof events[Symbol.iterator] !== "function";
    const total = { accepted: 0, messages: 0, rejected: [], first: undefined, last: undefined };
    const queue = splitLines((single ? [events] : [...events]).map((event) => JSON.stringify(event)));
    while (queue.length) {
      const part = queue.shift();
      let result;
      try {
        result = await this._publishPart(part.lines);
      } catch (error) {
        if (error.status === 413 && part.lines.length > 1) {
          queue.unshift(...halves(part));
          continue;
        }
        if (single || part.lines.length > 1 || ![413, 422].includes(error.status)) throw error;
        result = { accepted: 0, messages: 0, rejected: [{ row: 0, reason: error.message }] };
      }
      total.accepted += result.accepted;
      total.messages += result.messages;
      total.first ??= result.first;
      total.last = result.last ?? total.last;
      for (const { row, reason } of result.rejected) {
        total.rejected.push({ row: row + part.first, reason });
      }
    }
    return total;
  }

  /** Acknowledge all messages up to a position. Resolves to `{acknowledged, depth}`. */
  async acknowledge(subscriber, position) {
    return (await this._retried(...acknowledgement(subscriber, position))).json();
  }

  /**
   * Yield the messages of a subscriber, without end: each at least once, in order. A broken
   * connection is reopened after the last message that was yielded.
   *
   * @param {string} subscriber
   * @param {object} options
   * @param {number} [options.since] position to begin after; by default, the last acknowledged one
   * @param {boolean} [options.acknowledge] acknowledge a message once the next is requested
   * @param {AbortSignal} [options.signal] ends the iteration
   */
  async *messages(subscriber, options = {}) {
    const { since, acknowledge = true, signal } = options;
    const backoff = new Backoff(this._retryTimeoutMs);
    let last = since; // position of the last message that was yielded
    let processed; // position of the last message after which the next was requested
    let unacknowledged = 0;
    const sendAcknowledgement = async () => {
      unacknowledged = 0;
      if (acknowledge && processed !== undefined) {
        // If this fails, the next acknowledgement covers the same messages.
        await this._send(...acknowledgement(subscriber, processed)).catch(() => {});
      }
    };
    try {
      while (!signal?.aborted) {
        try {
          const stream = this._stream(subscriber, last, signal);
          for await (const batch of stream) {
            if (backoff.endless === "lost") this._log(`${this.url} is reached again`);
            backoff.endless = "reached"; // a server that was reached once is retried without end
            if (batch.length) backoff.reset();
            for (const message of batch) {
              if (last !== undefined && message.position <= last) continue;
              yield message;
              last = processed = message.position;
              if (++unacknowledged === MAX_UNACKNOWLEDGED) await sendAcknowledgement();
            }
            if (unacknowledged) await sendAcknowledgement();
          }
          throw new Unreachable(`${this.url} cannot be reached: the stream ended`);
        } catch (error) {
          if (signal?.aborted) return;
          if (!isRetryable(error)) throw error;
          const delay = backoff.next();
          if (delay === undefined) throw error;
          if (backoff.endless) backoff.endless = "lost";
          this._log(`${error.message}; trying again in ${(delay / 1000).toFixed(1)} s`);
          await pause(delay, signal);
        }
      }
    } finally {
      await sendAcknowledgement();
    }
  }

  /** Yield batches of messages of one connection, and an empty batch once it is open. */
  async *_stream(subscriber, since, signal) {
    const query = since === undefined ? "" : `?since=${since}`;
    const path = `/v1/subscribers/${segment(subscriber)}/stream${query}`;
    const stop = new AbortController();
    const end = () => stop.abort();
    signal?.addEventListener("abort", end);
    let timer = setTimeout(end, this._idleTimeoutMs);
    try {
      const response = await this._send("GET", path, undefined, {}, stop.signal);
      yield [];
      const decoder = new TextDecoder();
      let text = "";
      for await (const bytes of chunks(response.body)) {
        clearTimeout(timer);
        timer = setTimeout(end, this._idleTimeoutMs);
        text += decoder.decode(bytes, { stream: true });
        const boundary = text.lastIndexOf("\n\n");
        if (boundary < 0) continue;
        const batch = text.slice(0, boundary).split("\n\n").map(dataOf).filter(Boolean);
        text = text.slice(boundary + 2);
        if (batch.length) yield batch.map((data) => JSON.parse(data));
      }
    } catch (error) {
      throw error instanceof RequestRefused ? error : this._unreachable(error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      stop.abort();
    }
  }

  async _publishPart(lines) {
    const headers = {
      "content-type": "application/x-ndjson",
      "idempotency-key": crypto.randomUUID(),
    };
    return (await this._retried("POST", "/v1/events", lines.join("\n"), headers)).json();
  }

  /** Send a request, and retry temporary failures. */
  async _retried(method, path, body, headers) {
    const backoff = new Backoff(this._retryTimeoutMs);
    for (let attempts = 1; ; attempts++) {
      try {
        return await this._send(method, path, body, headers);
      } catch (error) {
        const delay = isRetryable(error) ? backoff.next(error.retryAfterMs) : undefined;
        error.attempts = attempts;
        if (delay === undefined) throw error;
        this._log(`${error.message}; trying again in ${(delay / 1000).toFixed(1)} s`);
        await pause(delay);
      }
    }
  }

  async _send(method, path, body, headers = {}, signal = undefined) {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    let response;
    try {
      response = await fetch(this.url + path, {
        method,
        body,
        headers: { ...this._headers, ...type, ...headers },
        signal,
      });
    } catch (error) {
      throw this._unreachable(error);
    }
    if (response.ok) return response;
    const problem = await response.json().catch(() => ({}));
    const detail = problem.detail ?? `${this.url} answered with status ${response.status}`;
    const error = new RequestRefused(detail, response.status, problem);
    error.retryAfterMs = 1000 * Number(response.headers.get("retry-after") ?? 0) || 0;
    throw error;
  }

  _unreachable(error) {
    if (error instanceof Unreachable) return error;
    const reason = error?.cause?.message || error?.message || String(error);
    return new Unreachable(`${this.url} cannot be reached: ${reason}`);
  }
}

/** Delays that double at each failure, up to a maximum, and reset after a minute without failures. */
class Backoff {
  constructor(timeoutMs) {
    this._timeoutMs = timeoutMs;
    this.endless = ""; // "reached" or "lost" once the server was reached: there is no timeout
    this.reset();
  }

  reset() {
    this._last = -Infinity;
  }

  /** Return the delay before the next attempt; undefined after the timeout. */
  next(retryAfterMs = 0) {
    const now = performance.now();
    if (now - this._last > RESET_AFTER_MS) {
      this._firstFailure = now;
      this._nextDelay = MIN_DELAY_MS;
    }
    const remaining = this._firstFailure + this._timeoutMs - now;
    if (!this.endless && remaining <= retryAfterMs) return undefined;
    const delay = Math.max(retryAfterMs, this._nextDelay * (0.5 + Math.random() / 2));
    this._nextDelay = Math.min(MAX_DELAY_MS, 2 * this._nextDelay);
    this._last = now + delay;
    return this.endless ? delay : Math.min(delay, remaining);
  }
}

function isRetryable(error) {
  return error instanceof Unreachable || (error instanceof RequestRefused && RETRYABLE_STATUSES.has(error.status));
}

function segment(name) {
  if (typeof name !== "string" || /^\.{0,2}$/.test(name)) {
    throw new TypeError(`an id is a text, and neither empty nor dots only; saw ${String(name)}`);
  }
  return encodeURIComponent(name);
}

function acknowledgement(subscriber, position) {
  const path = `/v1/subscribers/${segment(subscriber)}/acknowledgement`;
  return ["POST", path, JSON.stringify({ position })];
}

function splitLines(lines) {
  const parts = [];
  let size = 0;
  lines.forEach((line, row) => {
    const part = parts.at(-1);
    if (!part || part.lines.length === MAX_PART_EVENTS || size + line.length > MAX_PART_CHARS) {
      parts.push({ first: row, lines: [line] });
      size = 0;
    } else {
      part.lines.push(line);
    }
    size += line.length;
  });
  return parts;
}

function halves({ first, lines }) {
  const middle = lines.length >> 1;
  return [
    { first, lines: lines.slice(0, middle) },
    { first: first + middle, lines: lines.slice(middle) },
  ];
}

/** Return the data of a server-sent event; undefined if it has none. */
function dataOf(event) {
  const lines = event.split("\n").filter((line) => line.startsWith("data:"));
  return lines.length ? lines.map((line) => line.slice(5).trimStart()).join("\n") : undefined;
}

/** Yield the chunks of a body. Not every browser can iterate over a body itself. */
async function* chunks(body) {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}
