// The recipe for public IDs in Express.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import express from "express";
import { PublicIds } from "polyflake";
import { publicId } from "./public_express.js";

const KEY = "pfk_10kvEGTqNtUTXFUlMnM4wIa";
const TEXT = "order_15ShV20Bxc6UJvKSQbDvo0J";
const orders = new PublicIds(KEY, "order");

const app = express().set("env", "test");
app.param("order", publicId(orders));
app.get("/orders/:order", (_request, response) => {
  const id: bigint = response.locals.order;
  response.json({ id: orders.encode(id), next: orders.encode(id + 1n) });
});
const server = app.listen(0, "127.0.0.1");
after(() => server.close());
await once(server, "listening");
const get = (id: string) => fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/orders/${id}`);

test("a handler has the bigint", async () => {
  const reply = await get(TEXT);
  assert.equal(reply.status, 200);
  assert.deepEqual(await reply.json(), { id: TEXT, next: orders.encode(1541815603606036481n) });
});

test("all else is not found", async () => {
  const user = new PublicIds(KEY, "user").encode(1541815603606036480n);
  for (const id of ["1541815603606036480", TEXT.slice(0, -1), `${TEXT.slice(0, -1)}K`, user, "%00"]) {
    assert.equal((await get(id)).status, 404, id);
  }
});
