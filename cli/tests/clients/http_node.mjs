// HTTP requests with Node's fetch, including those that users of Leaf send.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

const { OPEN_HTTP, CLOSED_HTTP, SECRET } = process.env;

for (const [name, address, token] of [
  ["open", OPEN_HTTP],
  ["closed", CLOSED_HTTP, SECRET],
]) {
  describe(name, () => {
    const get = (path, bearer = token) =>
      fetch(`http://${address}${path}`, { headers: bearer ? { authorization: `Bearer ${bearer}` } : {} });
    const number = async (path) => BigInt(await (await get(path)).text());
    const refused = async (status, error, path, bearer = token) => {
      const answer = await get(path, bearer);
      assert.equal(answer.status, status);
      assert.equal((await answer.json()).error, error);
    };

    test("IDs", async () => {
      const answer = await get("/v1/ids/large?n=3");
      assert.equal(answer.headers.get("content-type"), "application/json");
      const [first, second, third] = (await answer.json()).ids.map(BigInt);
      assert.ok(first > 2n ** 62n && second === first + 1n && third === second + 1n);
      const bytes = new DataView(await (await get("/v1/ids/large?format=bytes")).arrayBuffer());
      assert.equal(bytes.getBigUint64(0), third + 1n);
      const [id] = (await (await get("/v1/ids/snowflake")).json()).ids;
      assert.equal((await (await get(`/v1/decode/${id}`)).json()).id, id);
    });

    test("many at once", async () => {
      const answers = await Promise.all(
        Array.from({ length: 200 }, () => number("/v1/ids/snowflake?format=text")),
      );
      assert.equal(new Set(answers).size, 200);
    });

    test("Leaf", async () => {
      for (const path of ["/api/snowflake/get/order", "/api/segment/get/orders"]) {
        const first = await number(path);
        assert.ok(0n < first && first < (await number(path)), path);
      }
    });

    test("errors", async () => {
      for (const n of [0, -1, 2n ** 60n]) await refused(400, "invalid_option", `/v1/ids/orders?n=${n}`);
      await refused(404, "unknown_generator", "/v1/ids/other");
      await refused(404, "unknown_generator", "/api/segment/get/other");
    });

    test("tokens", { skip: token === undefined }, async () => {
      for (const wrong of ["", "wrong", `${token}x`]) {
        await refused(401, "unauthorized", "/v1/ids/orders", wrong);
        await refused(401, "unauthorized", "/api/segment/get/orders", wrong);
      }
    });
  });
}
