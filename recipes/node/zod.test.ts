// The recipe for Zod.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { EXACT, WRONG } from "./support.js";
import { snowflakeId } from "./zod.js";

const Order = z.object({ id: snowflakeId, parents: z.array(snowflakeId).optional() });

test("text is read exactly, and written as it was", () => {
  for (const id of EXACT) {
    const order = Order.parse(JSON.parse(`{"id": "${id}", "parents": ["${id}"]}`));
    assert.deepEqual(order, { id, parents: [id] });
    assert.equal(JSON.stringify(Order.encode(order)), `{"id":"${id}","parents":["${id}"]}`);
  }
});

test("all else is refused", () => {
  for (const id of [...WRONG, "0", String(2n ** 63n)]) {
    const { error } = Order.safeParse({ id });
    assert.deepEqual(
      error?.issues.map(({ path }) => path),
      [["id"]],
      String(id),
    );
  }
  for (const id of [0n, -1n, 2n ** 63n]) assert.equal(Order.safeEncode({ id }).success, false);
});

test("its JSON Schema is a string's", () => {
  const { properties } = z.toJSONSchema(Order, { io: "input" });
  assert.deepEqual(properties?.id, { type: "string", format: "int64", pattern: "^[0-9]{1,19}$" });
});
