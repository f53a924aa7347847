// Requests to the server that the page came from, with the key of this tab.

const STORED = "fencepost.key";

export class Problem extends Error {
  constructor(status, told) {
    super(told?.detail ?? `the server answered ${status}`);
    this.status = status;
    this.position = told?.position ?? null;
  }
}

export const key = {
  get: () => sessionStorage.getItem(STORED) ?? "",
  set: (value) => (value ? sessionStorage.setItem(STORED, value) : sessionStorage.removeItem(STORED)),
};

/** A path with names in it, whatever characters they have. */
export const path = (parts, ...names) =>
  parts.reduce((whole, part, n) => whole + encodeURIComponent(names[n - 1]) + part);

export async function ask(method, where, body, headers = {}) {
  const sent = { ...headers };
  if (key.get()) sent.authorization = `Bearer ${key.get()}`;
  if (body !== undefined) sent["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(where, {
      method, headers: sent, cache: "no-cache", credentials: "omit",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Problem(0, { detail: "the server cannot be reached" });
  }
  if (answer.ok) return answer;
  let told = null;
  try { told = await answer.json(); } catch { /* not a problem of ours */ }
  throw new Problem(answer.status, told);
}

export async function json(method, where, body, headers) {
  const answer = await ask(method, where, body, headers);
  return answer.status === 204 ? null : answer.json();
}

/** Blocks of bytes as they come, each begun by its length: see server/watch/places.py. */
export async function* blocks(where) {
  const reader = (await ask("GET", where)).body.getReader();
  let have = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const joined = new Uint8Array(have.length + value.length);
    joined.set(have);
    joined.set(value, have.length);
    have = joined;
    while (have.length >= 8) {
      const size = 8 + new DataView(have.buffer, have.byteOffset).getUint32(0, true);
      if (have.length < size) break;
      yield have.slice(0, size).buffer;
      have = have.subarray(size);
    }
  }
}

export function socket(where) {
  const address = new URL(where, location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  const offered = key.get() ? ["fencepost", `bearer.${key.get()}`] : ["fencepost"];
  return new WebSocket(address, offered);
}
