// The JavaScript client against a real server, whose address is in the environment: run by pytest.

import assert from "node:assert/strict";
import { test } from "node:test";

const { Client, RequestRefused, Unreachable } = await import(process.env.CLIENT);
const url = process.env.SERVER;
const client = new Client(`${url}/`, { retryTimeoutMs: 5_000 });
const taxis = (from, to) =>
  Array.from({ length: to - from }, (_, n) => ({ kind: "taxi", number: from + n }));

async function take(messages, count) {
  const found = [];
  for await (const message of messages) {
    found.push(message);
    if (found.length === count) break;
  }
  return found;
}

test("subscribe, publish, read, unsubscribe", async () => {
  const made = await client.subscribe("a/1 é", "kind = 'taxi'", {
    subscriber: "me",
    payload: { colour: "red" },
    expires: "2100-01-01T00:00:00Z",
  });
  assert.equal(made.subscriber, "me");
  const event = {
    type: "Feature",
    geometry: { type: "Point", coordinates: [1, 2] },
    properties: { kind: "taxi" },
  };
  const done = await client.publish(event);
  assert.deepEqual([done.accepted, done.messages, done.rejected], [1, 1, []]);
  const [message] = await take(client.messages("me"), 1);
  assert.deepEqual(message.data.event, event);
  assert.deepEqual(message.data.payloads, { "a/1 é": { colour: "red" } });
  assert.equal(message.type, "fencepost.match");
  assert.equal(await client.unsubscribe("a/1 é"), true);
  assert.equal(await client.unsubscribe("a/1 é"), false);
});

test("many events go in parts, bad ones are told, all messages come in order", async () => {
  await client.subscribe("many", "kind = 'taxi'");
  const events = taxis(0, 11_001);
  events[7] = { geometry: { type: "Point" } };
  events[11_000] = { geometry: { type: "Point" } };
  const done = await client.publish(events);
  assert.deepEqual(
    done.rejected.map((one) => one.row),
    [7, 11_000],
  );
  assert.equal(done.accepted, 10_999);
  const found = await take(client.messages("many"), 10_999);
  assert.deepEqual(
    found.map((one) => one.data.event.number),
    taxis(0, 11_000).map((one) => one.number).filter((n) => n !== 7),
  );
  const { depth } = await client.acknowledge("many", 0);
  assert.equal(depth, 1); // the last one was handed out, and no next one asked for
  await client.unsubscribe("many");
});

test("reading again, and not acknowledging", async () => {
  await client.subscribe("again", "kind = 'bus'");
  await client.publish([{ kind: "bus", n: 1 }, { kind: "bus", n: 2 }]);
  for (let round = 0; round < 2; round++) {
    const found = await take(client.messages("again", { since: 0, acknowledge: false }), 2);
    assert.deepEqual(found.map((one) => one.data.event.n), [1, 2]);
  }
  assert.equal((await client.acknowledge("again", 0)).depth, 2);
  assert.equal((await client.acknowledge("again", 2 ** 40)).depth, 0);
});

test("a signal ends it", async () => {
  await client.subscribe("quiet", "kind = 'nothing'");
  const stop = new AbortController();
  const reading = take(client.messages("quiet", { signal: stop.signal }), 1);
  stop.abort();
  assert.deepEqual(await reading, []);
});

test("what is refused", async () => {
  await assert.rejects(client.subscribe("bad", "n ="), (error) => {
    assert.ok(error instanceof RequestRefused);
    assert.deepEqual([error.status, error.problem.position], [422, 3]);
    return true;
  });
  await assert.rejects(take(client.messages("nobody"), 1), { name: "RequestRefused", status: 404 });
  await assert.rejects(client.publish({ geometry: { type: "Point" } }), { status: 422 });
  await assert.rejects(client.unsubscribe(".."), TypeError);
});

test("keys", async () => {
  const locked = process.env.LOCKED;
  await assert.rejects(new Client(locked).subscribe("a", "n = 1"), { status: 401 });
  const allowed = new Client(locked, { key: process.env.KEY });
  await allowed.subscribe("a", "n = 1");
  await assert.rejects(allowed.publish({ n: 1 }), { status: 403 });
});

test("a server that is not there", async () => {
  const told = [];
  const nowhere = new Client("http://127.0.0.1:9", { retryTimeoutMs: 100, log: (one) => told.push(one) });
  await assert.rejects(nowhere.publish({}), Unreachable);
  await assert.rejects(take(nowhere.messages("me"), 1), Unreachable);
  assert.match(told[0], /trying again/);
});

test("answers that are lost are asked for again, and events are taken once", async () => {
  const cut = new Client(process.env.CUTTING);
  await cut.subscribe("once", "kind = 'once'");
  const done = await cut.publish([{ kind: "once" }, { kind: "once" }]);
  assert.equal(done.accepted, 2);
  const found = await take(cut.messages("once"), 2);
  await cut.publish({ kind: "once", last: true });
  const rest = await take(cut.messages("once", { since: found[1].position }), 1);
  assert.equal(rest[0].data.event.last, true);
});
