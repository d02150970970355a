// The recipe for Express.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import express, { type ErrorRequestHandler } from "express";
import type { IdGenerator } from "polyflake";
import { idsAsText, readId } from "./express.js";
import { EXACT, generators, WRONG } from "./support.js";

/** An application's address, and the IDs that its handlers have read. */
async function application(ids: IdGenerator) {
  const seen: unknown[] = [];
  const app = express().use(express.json()).set("json replacer", idsAsText);
  app.post("/orders", async (_request, response) => {
    response.json({ id: await ids.nextIdAsync() });
  });
  app.put("/orders/:id", (request, response) => {
    const id = readId(request.params.id);
    const parents = request.body.parents.map(readId);
    seen.push(id, ...parents);
    response.json({ id, parents });
  });
  const failed: ErrorRequestHandler = (error, _request, response, _next) => {
    response.status(error.status).send(error.message);
  };
  app.use(failed);
  const server = app.listen(0, "127.0.0.1");
  after(() => server.close());
  await once(server, "listening");
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`, seen };
}

for (const [kind, ids] of Object.entries(await generators())) {
  test(`IDs are strings in a reply: ${kind}`, async () => {
    const { address } = await application(ids);
    const before = await ids.nextIdAsync();
    const { id } = (await (await fetch(address, { method: "POST" })).json()) as { id: unknown };
    assert.ok(typeof id === "string" && BigInt(id) > before);
    assert.ok(BigInt(id) < (await ids.nextIdAsync()));
  });
}

const { address, seen } = await application({ nextId: () => 5n, nextIdAsync: async () => 5n });
const put = (id: string, parents: string) =>
  fetch(`${address}/${id}`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: `{"parents": ${parents}}`,
  });

test("text is read exactly", async () => {
  for (const id of EXACT) {
    const response = await put(String(id), `["${id}"]`);
    assert.deepEqual(await response.json(), { id: String(id), parents: [String(id)] });
    assert.deepEqual(seen.splice(0), [id, id]);
  }
});

test("all else is refused", async () => {
  for (const id of WRONG) {
    const response = await put("1", `[${JSON.stringify(id)}]`);
    assert.deepEqual(
      [response.status, await response.text()],
      [400, "an ID must be decimal text"],
      String(id),
    );
    if (typeof id !== "string" || id === "") continue;
    assert.equal((await put(encodeURIComponent(id), "[]")).status, 400, id);
  }
  assert.deepEqual(seen, []);
});
