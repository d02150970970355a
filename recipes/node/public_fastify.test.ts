// The recipe for public IDs in Fastify.
import assert from "node:assert/strict";
import { test } from "node:test";
import fastify from "fastify";
import { PublicIds } from "polyflake";
import { publicIdKeyword } from "./public_fastify.js";

const KEY = "pfk_10kvEGTqNtUTXFUlMnM4wIa";
const ID = 1541815603606036480n;
const TEXT = "order_15ShV20Bxc6UJvKSQbDvo0J";
const orders = new PublicIds(KEY, "order");
const users = new PublicIds(KEY, "user");

function application() {
  const app = fastify({ ajv: { plugins: [publicIdKeyword(orders, users)] } });
  const params = { type: "object", properties: { order: { publicId: "order" } } };
  app.get<{ Params: { order: bigint } }>("/orders/:order", { schema: { params } }, async (request) => {
    const id = request.params.order;
    return { id: orders.encode(id), next: orders.encode(id + 1n) };
  });
  const body = {
    type: "object",
    required: ["user"],
    properties: { user: { publicId: "user" }, parents: { type: "array", items: { publicId: "order" } } },
  };
  app.post<{ Body: { user: bigint; parents: bigint[] } }>(
    "/orders",
    { schema: { body } },
    async (request) => {
      assert.equal(typeof request.body.user, "bigint");
      return {
        user: users.encode(request.body.user),
        parents: request.body.parents.map((id) => orders.encode(id)),
      };
    },
  );
  return app;
}

test("a handler has the bigint", async () => {
  const app = application();
  const { id, next } = (await app.inject(`/orders/${TEXT}`)).json();
  assert.equal(id, TEXT);
  assert.equal(orders.decode(next), ID + 1n);
  const payload = { user: users.encode(ID), parents: [TEXT, next] };
  assert.deepEqual((await app.inject({ method: "POST", url: "/orders", payload })).json(), payload);
});

test("all else is refused", async () => {
  const app = application();
  const user = users.encode(ID);
  for (const text of [String(ID), TEXT.slice(0, -1), `${TEXT.slice(0, -1)}K`, user, "%00"]) {
    assert.equal((await app.inject(`/orders/${text}`)).statusCode, 400, text);
  }
  const wrong = [TEXT, String(ID), 7, null, true, [user], { user }];
  for (const given of wrong) {
    const reply = await app.inject({ method: "POST", url: "/orders", payload: { user: given, parents: [] } });
    assert.equal(reply.statusCode, 400, JSON.stringify(given));
  }
});

test("branches of a schema read the same value", async () => {
  const app = fastify({ ajv: { plugins: [publicIdKeyword(orders, users)] } });
  const either = (kind: string, publicId: string) => ({
    type: "object",
    required: ["id", "kind"],
    properties: { id: { publicId }, kind: { const: kind } },
  });
  const body = { anyOf: [either("a", "order"), either("b", "order"), either("c", "user")] };
  app.post<{ Body: { id: bigint } }>("/", { schema: { body } }, async ({ body }) => String(body.id));
  const status = async (id: string, kind: string) =>
    (await app.inject({ method: "POST", url: "/", payload: { id, kind } })).statusCode;
  assert.equal(await status(TEXT, "a"), 200);
  assert.equal(await status(TEXT, "b"), 200);
  assert.equal(await status(users.encode(ID), "c"), 200);
  // An order's public ID is not accepted as a user's.
  assert.equal(await status(TEXT, "c"), 400);
});

test("a schema with a prefix that has no keys does not compile", async () => {
  const app = fastify({ ajv: { plugins: [publicIdKeyword(orders)] } });
  const params = { type: "object", properties: { user: { publicId: "user" } } };
  app.get("/users/:user", { schema: { params } }, async () => ({}));
  await assert.rejects(async () => await app.ready(), /publicId/);
});
