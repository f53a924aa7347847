// Requests to the server of this page, with the key of this tab.

const KEY_ITEM = "fencepost.key";

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? `the server answered ${status}`);
    this.status = status;
    this.position = body?.position ?? null;
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEY_ITEM) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY_ITEM, value) : sessionStorage.removeItem(KEY_ITEM)),
};

/** Template tag: a path whose values are percent-encoded. */
export const path = (parts, ...names) =>
  parts.reduce((whole, part, n) => whole + encodeURIComponent(names[n - 1]) + part);

/** Send a request. Resolves to the response; throws a `Problem` for an error. */
export async function send(method, url, body, headers = {}) {
  const allHeaders = { ...headers };
  if (key.get()) allHeaders.authorization = `Bearer ${key.get()}`;
  if (body !== undefined) allHeaders["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(url, {
      method, headers: allHeaders, cache: "no-cache", credentials: "omit",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Problem(0, { detail: "the server cannot be reached" });
  }
  if (response.ok) return response;
  let problem = null;
  try { problem = await response.json(); } catch { /* a proxy's error page is no JSON */ }
  throw new Problem(response.status, problem);
}

export async function json(method, url, body, headers) {
  const response = await send(method, url, body, headers);
  return response.status === 204 ? null : response.json();
}

/** Yield the blocks of a map as they arrive; server/console/subscription_map.py has their layout. */
export async function* blocks(url) {
  const reader = (await send("GET", url)).body.getReader();
  let buffered = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const joined = new Uint8Array(buffered.length + value.length);
    joined.set(buffered);
    joined.set(value, buffered.length);
    buffered = joined;
    while (buffered.length >= 8) {
      const size = 8 + new DataView(buffered.buffer, buffered.byteOffset).getUint32(0, true);
      if (buffered.length < size) break;
      yield buffered.slice(0, size).buffer;
      buffered = buffered.subarray(size);
    }
  }
}

export function socket(url) {
  const address = new URL(url, location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  const protocols = key.get() ? ["fencepost", `bearer.${key.get()}`] : ["fencepost"];
  return new WebSocket(address, protocols);
}
