// The recipe for public IDs in Zod.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PublicIds } from "polyflake";
import { z } from "zod";
import { publicId } from "./public.js";

const ID = 1541815603606036480n;
const TEXT = "order_15ShV20Bxc6UJvKSQbDvo0J";
const KEY = "pfk_10kvEGTqNtUTXFUlMnM4wIa";
const orderId = publicId(new PublicIds(KEY, "order"));
const Order = z.object({ id: orderId, parents: z.array(orderId).optional() });

test("a bigint inside, and a text in JSON", () => {
  const order = Order.parse(JSON.parse(`{"id": "${TEXT}", "parents": ["${TEXT}"]}`));
  assert.deepEqual(order, { id: ID, parents: [ID] });
  assert.equal(JSON.stringify(Order.encode(order)), `{"id":"${TEXT}","parents":["${TEXT}"]}`);
});

test("all else is refused", () => {
  const user = new PublicIds(KEY, "user").encode(ID);
  for (const id of [null, 7, ID, "", String(ID), TEXT.slice(0, -1), `${TEXT.slice(0, -1)}K`, user]) {
    const { error } = Order.safeParse({ id });
    assert.deepEqual(
      error?.issues.map(({ path }) => path),
      [["id"]],
      String(id),
    );
  }
  for (const id of [-1n, 2n ** 64n]) assert.equal(Order.safeEncode({ id }).success, false);
});

test("its JSON Schema is a string's", () => {
  const pattern = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "input" });
  assert.deepEqual(pattern(orderId), {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "string",
    pattern: "^order_[0-9A-Za-z]{23}$",
  });
  assert.equal(pattern(publicId(new PublicIds(KEY, ""))).pattern, "^[0-9A-Za-z]{23}$");
});
