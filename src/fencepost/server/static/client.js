// A client of a Fencepost server for browsers and Node 20 and later, without dependencies.
//
//   import { Client } from "http://127.0.0.1:8080/client.js";   // or from a copy of this file
//   const client = new Client("http://127.0.0.1:8080", { key: "fp_..." });
//   await client.subscribe("taxis", "kind = 'taxi'", { subscriber: "me" });
//   await client.publish({ kind: "taxi" });
//   for await (const message of client.messages("me")) console.log(message.data.event);
//
// Messages come as server-sent events through `fetch`: unlike WebSockets and EventSource, it lets
// a browser send a key in a header, and Node has it.

const MOST_EVENTS = 5_000;
const MOST_CHARS = 2 << 20;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
const CALM_MS = 60_000;
const DONE_AT_MOST = 100;
const LATER = new Set([429, 502, 503, 504]);

/** What a server did not do: `status` of HTTP, and all that it said as `problem` (RFC 9457). */
export class RequestRefused extends Error {
  constructor(detail, status, problem = {}) {
    super(detail);
    this.name = "RequestRefused";
    this.status = status;
    this.problem = problem;
  }
}

/** A server that cannot be reached. */
export class Unreachable extends Error {
  constructor(message) {
    super(message);
    this.name = "Unreachable";
  }
}

/** A server. */
export class Client {
  /**
   * @param {string} url of the server; in a browser, that of the page if left out
   * @param {object} options
   * @param {string} [options.key] as `fencepost keys add` printed it
   * @param {number} [options.patienceMs] for how long a request that fails for now is tried again
   * @param {number} [options.silenceMs] after how long without a sign a stream is taken for dead
   * @param {(text: string) => void} [options.log] is told when something is tried again
   */
  constructor(url = globalThis.location?.origin ?? "", options = {}) {
    const { key, patienceMs = 60_000, silenceMs = 45_000, log = () => {} } = options;
    this.url = url.replace(/\/+$/, "");
    this._headers = key ? { authorization: `Bearer ${key}` } : {};
    this._patienceMs = patienceMs;
    this._silenceMs = silenceMs;
    this._log = log;
  }

  /** Ask a standing question, in the place of one of the same id; the subscription as kept. */
  async subscribe(id, expression, options = {}) {
    const { subscriber, expires, track, composite, payload } = options;
    const given = { expression, subscriber, expires, track, composite, payload };
    const body = JSON.stringify(given, (_, value) => value ?? undefined);
    const answer = await this._asked("PUT", `/v1/subscriptions/${segment(id)}`, body);
    return answer.json();
  }

  /** Remove a subscription; whether there was one. */
  async unsubscribe(id) {
    try {
      await this._asked("DELETE", `/v1/subscriptions/${segment(id)}`);
      return true;
    } catch (error) {
      if (error.status === 404) return error.tries > 1; // an earlier answer may have been lost
      throw error;
    }
  }

  /**
   * Publish an event or an iterable of them; done when they and all that they answer are on the disk.
   * Many are sent in parts. A part whose answer is lost is sent again and taken once.
   * Gives `{accepted, messages, rejected: [{row, reason}], first, last}`.
   */
  async publish(events) {
    const single = typeof events[Symbol.iterator] !== "function";
    const done = { accepted: 0, messages: 0, rejected: [], first: undefined, last: undefined };
    const todo = parts((single ? [events] : [...events]).map((event) => JSON.stringify(event)));
    while (todo.length) {
      const part = todo.shift();
      let answer;
      try {
        answer = await this._published(part.lines);
      } catch (error) {
        if (error.status === 413 && part.lines.length > 1) {
          todo.unshift(...halves(part));
          continue;
        }
        if (single || part.lines.length > 1 || ![413, 422].includes(error.status)) throw error;
        answer = { accepted: 0, messages: 0, rejected: [{ row: 0, reason: error.message }] };
      }
      done.accepted += answer.accepted;
      done.messages += answer.messages;
      done.first ??= answer.first;
      done.last = answer.last ?? done.last;
      for (const { row, reason } of answer.rejected) {
        done.rejected.push({ row: row + part.first, reason });
      }
    }
    return done;
  }

  /** Note that a subscriber has read all up to a position: `{acknowledged, depth}`. */
  async acknowledge(subscriber, position) {
    return (await this._asked(...acknowledging(subscriber, position))).json();
  }

  /**
   * The messages of a subscriber, as they come, without end: each at least once, in order. A
   * connection that breaks is opened again after the last message that was handed out.
   *
   * @param {string} subscriber
   * @param {object} options
   * @param {number} [options.since] begin after this position; after what was acknowledged if left out
   * @param {boolean} [options.acknowledge] whether a message is acknowledged once the next is asked for
   * @param {AbortSignal} [options.signal] ends it
   */
  async *messages(subscriber, options = {}) {
    const { since, acknowledge = true, signal } = options;
    const waits = new Waits(this._patienceMs);
    let last = since; // handed out
    let done; // of which the next was asked for
    let untold = 0;
    const tell = async () => {
      untold = 0;
      if (acknowledge && done !== undefined) {
        // Where this fails, the next one says more.
        await this._once(...acknowledging(subscriber, done)).catch(() => {});
      }
    };
    try {
      while (!signal?.aborted) {
        try {
          const stream = this._stream(subscriber, last, signal);
          for await (const batch of stream) {
            if (waits.forever === "lost") this._log(`${this.url} is reached again`);
            waits.forever = "reached"; // who was there once comes back
            if (batch.length) waits.begin();
            for (const message of batch) {
              if (last !== undefined && message.position <= last) continue;
              yield message;
              last = done = message.position;
              if (++untold === DONE_AT_MOST) await tell();
            }
            if (untold) await tell();
          }
          throw new Unreachable(`${this.url} cannot be reached: the stream ended`);
        } catch (error) {
          if (signal?.aborted) return;
          if (!mayBeTriedAgain(error)) throw error;
          const wait = waits.failed();
          if (wait === undefined) throw error;
          if (waits.forever) waits.forever = "lost";
          this._log(`${error.message}; trying again in ${(wait / 1000).toFixed(1)} s`);
          await pause(wait, signal);
        }
      }
    } finally {
      await tell();
    }
  }

  /** Batches of messages of one connection, the first as soon as it is open. */
  async *_stream(subscriber, since, signal) {
    const query = since === undefined ? "" : `?since=${since}`;
    const path = `/v1/subscribers/${segment(subscriber)}/stream${query}`;
    const stop = new AbortController();
    const end = () => stop.abort();
    signal?.addEventListener("abort", end);
    let timer = setTimeout(end, this._silenceMs);
    try {
      const answer = await this._once("GET", path, undefined, {}, stop.signal);
      yield [];
      const decoder = new TextDecoder();
      let text = "";
      for await (const bytes of chunks(answer.body)) {
        clearTimeout(timer);
        timer = setTimeout(end, this._silenceMs);
        text += decoder.decode(bytes, { stream: true });
        const whole = text.lastIndexOf("\n\n");
        if (whole < 0) continue;
        const found = text.slice(0, whole).split("\n\n").map(dataOf).filter(Boolean);
        text = text.slice(whole + 2);
        if (found.length) yield found.map((one) => JSON.parse(one));
      }
    } catch (error) {
      throw error instanceof RequestRefused ? error : this._unreachable(error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      stop.abort();
    }
  }

  async _published(lines) {
    const headers = {
      "content-type": "application/x-ndjson",
      "idempotency-key": crypto.randomUUID(),
    };
    return (await this._asked("POST", "/v1/events", lines.join("\n"), headers)).json();
  }

  /** A request, tried again while that may help. */
  async _asked(method, path, body, headers) {
    const waits = new Waits(this._patienceMs);
    for (let tries = 1; ; tries++) {
      try {
        return await this._once(method, path, body, headers);
      } catch (error) {
        const wait = mayBeTriedAgain(error) ? waits.failed(error.askedMs) : undefined;
        error.tries = tries;
        if (wait === undefined) throw error;
        this._log(`${error.message}; trying again in ${(wait / 1000).toFixed(1)} s`);
        await pause(wait);
      }
    }
  }

  async _once(method, path, body, headers = {}, signal = undefined) {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    let answer;
    try {
      answer = await fetch(this.url + path, {
        method,
        body,
        headers: { ...this._headers, ...type, ...headers },
        signal,
      });
    } catch (error) {
      throw this._unreachable(error);
    }
    if (answer.ok) return answer;
    const problem = await answer.json().catch(() => ({}));
    const detail = problem.detail ?? `${this.url} answered with status ${answer.status}`;
    const refused = new RequestRefused(detail, answer.status, problem);
    refused.askedMs = 1000 * Number(answer.headers.get("retry-after") ?? 0) || 0;
    throw refused;
  }

  _unreachable(error) {
    if (error instanceof Unreachable) return error;
    const why = error?.cause?.message || error?.message || String(error);
    return new Unreachable(`${this.url} cannot be reached: ${why}`);
  }
}

/** Waits of twice the length each time, up to a bound; a minute without failure begins anew. */
class Waits {
  constructor(patienceMs) {
    this._patienceMs = patienceMs;
    this.forever = "";
    this.begin();
  }

  begin() {
    this._last = -Infinity;
  }

  failed(askedMs = 0) {
    const now = performance.now();
    if (now - this._last > CALM_MS) {
      this._began = now;
      this._next = FIRST_WAIT_MS;
    }
    const left = this._began + this._patienceMs - now;
    if (!this.forever && left <= askedMs) return undefined;
    const wait = Math.max(askedMs, this._next * (0.5 + Math.random() / 2));
    this._next = Math.min(LONGEST_WAIT_MS, 2 * this._next);
    this._last = now + wait;
    return this.forever ? wait : Math.min(wait, left);
  }
}

function mayBeTriedAgain(error) {
  return error instanceof Unreachable || (error instanceof RequestRefused && LATER.has(error.status));
}

function segment(name) {
  if (typeof name !== "string" || /^\.{0,2}$/.test(name)) {
    throw new TypeError(`an id is a text, and neither empty nor dots only; saw ${String(name)}`);
  }
  return encodeURIComponent(name);
}

function acknowledging(subscriber, position) {
  const path = `/v1/subscribers/${segment(subscriber)}/acknowledgement`;
  return ["POST", path, JSON.stringify({ position })];
}

function parts(lines) {
  const found = [];
  let size = 0;
  lines.forEach((line, row) => {
    const part = found.at(-1);
    if (!part || part.lines.length === MOST_EVENTS || size + line.length > MOST_CHARS) {
      found.push({ first: row, lines: [line] });
      size = 0;
    } else {
      part.lines.push(line);
    }
    size += line.length;
  });
  return found;
}

function halves({ first, lines }) {
  const middle = lines.length >> 1;
  return [
    { first, lines: lines.slice(0, middle) },
    { first: first + middle, lines: lines.slice(middle) },
  ];
}

/** The data of a server-sent event; undefined for one without. */
function dataOf(event) {
  const lines = event.split("\n").filter((line) => line.startsWith("data:"));
  return lines.length ? lines.map((line) => line.slice(5).trimStart()).join("\n") : undefined;
}

/** The chunks of a body; not every browser can iterate over one. */
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
