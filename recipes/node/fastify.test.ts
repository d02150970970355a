// The recipe for Fastify.
import assert from "node:assert/strict";
import { test } from "node:test";
import fastify from "fastify";
import type { IdGenerator } from "polyflake";
import { snowflakeKeyword } from "./fastify.js";
import { EXACT, generators } from "./support.js";

const order = {
  type: "object",
  required: ["id"],
  properties: { id: { snowflake: true }, parents: { type: "array", items: { snowflake: true } } },
};
const reply = {
  type: "object",
  properties: { id: { type: "string" }, parents: { type: "array", items: { type: "string" } } },
};

function application(ids: IdGenerator) {
  const seen: unknown[] = [];
  const app = fastify({ ajv: { plugins: [snowflakeKeyword] } });
  app.decorate("ids", ids);
  app.post("/orders", { schema: { response: { 200: reply } } }, async () => ({
    id: await app.ids.nextIdAsync(),
  }));
  app.put("/orders", { schema: { body: order, response: { 200: reply } } }, async (request) => {
    seen.push((request.body as { id: unknown }).id);
    return request.body;
  });
  app.get("/orders/:id", { schema: { params: order, response: { 200: reply } } }, async (request) => {
    seen.push((request.params as { id: unknown }).id);
    return { ...(request.params as object), secret: 1 };
  });
  return { app, seen };
}

const headers = { "content-type": "application/json" };

for (const [kind, ids] of Object.entries(await generators())) {
  test(`IDs are strings in a reply: ${kind}`, async () => {
    const { app } = application(ids);
    const before = await ids.nextIdAsync();
    const { id } = (await app.inject({ method: "POST", url: "/orders" })).json();
    assert.equal(typeof id, "string");
    assert.ok(BigInt(id) > before);
    assert.ok(BigInt(id) < (await ids.nextIdAsync()));
  });
}

const { app, seen } = application({ nextId: () => 5n, nextIdAsync: async () => 5n });
const put = (id: string) =>
  app.inject({ method: "PUT", url: "/orders", headers, payload: `{"id": ${id}, "parents": [${id}]}` });

test("text is read exactly, and so are numbers that are exact", async () => {
  for (const id of EXACT) {
    assert.deepEqual((await put(`"${id}"`)).json(), { id: String(id), parents: [String(id)] });
    assert.equal(seen.at(-1), id);
    assert.deepEqual((await app.inject(`/orders/${id}`)).json(), { id: String(id) });
    assert.equal(seen.at(-1), id);
  }
  assert.equal((await put("9007199254740991")).json().id, "9007199254740991");
});

test("all else is refused", async () => {
  const rounded = ["9007199254740993", "1541815603606036481"];
  const wrong = [
    "true",
    "null",
    "1.5",
    "-1",
    "[]",
    "{}",
    '"-1"',
    '"1.0"',
    '"1e3"',
    '""',
    '" 1"',
    `"${2n ** 64n}"`,
  ];
  for (const id of [...rounded, ...wrong]) assert.equal((await put(id)).statusCode, 400, id);
  for (const id of ["-1", "12x", "1.0"])
    assert.equal((await app.inject(`/orders/${id}`)).statusCode, 400, id);
});
