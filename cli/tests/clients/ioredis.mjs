// ioredis, with both versions of the protocol, with and without a token. IDs are exact with `stringNumbers`.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import Redis from "ioredis";

const { OPEN, CLOSED, SECRET } = process.env;
const DECODED = "1541815603606036480";

const place = (address) => {
  const [host, port] = address.split(":");
  return { host, port: Number(port), stringNumbers: true, connectionName: "test", db: 0 };
};
const areRising = (texts) => texts.every((text, n) => n === 0 || BigInt(texts[n - 1]) < BigInt(text));

for (const protocol of [2, 3]) {
  for (const [name, address, password] of [
    ["open", OPEN],
    ["closed", CLOSED, SECRET],
  ]) {
    describe(`RESP${protocol}, ${name}`, () => {
      const options = { ...place(address), password, protocol };
      const client = new Redis(options);
      const warnings = [];
      client.on("error", (error) => warnings.push(error));
      after(async () => {
        assert.equal(await client.quit(), "OK");
        assert.deepEqual(warnings, []);
      });

      test("numbers", async () => {
        const ids = [await client.incr("snowflake"), await client.incr("snowflake")];
        assert.ok(areRising([String(2 ** 53), ...ids, String(2n ** 63n)]), ids);
        // If numbers were rounded to doubles, consecutive ones would not differ by 1.
        const large = await client.incr("large");
        assert.equal(await client.incr("large"), String(BigInt(large) + 1n));
        assert.ok(BigInt(large) > 2n ** 62n);
        const last = await client.incrby("orders", 10);
        assert.ok(areRising(["9", last, await client.incr("orders")]));
      });

      test("without stringNumbers they are rounded", async () => {
        const rounds = new Redis({ ...options, stringNumbers: false });
        const [large, next] = [await rounds.incr("large"), await rounds.incr("large")];
        assert.equal(typeof large, "number");
        assert.equal(large, next);
        await rounds.quit();
      });

      test("commands of its own", async () => {
        const several = await client.call("PF.NEXT", "snowflake", 5);
        assert.equal(several.length, 5);
        assert.ok(areRising(several), several);
        assert.match(await client.call("PF.NEXT", "uuid"), /^[0-9a-f-]{36}$/);
        const wide = await client.call("PF.NEXT", "wide");
        assert.equal(typeof wide, "string");
        assert.ok(areRising([String(2n ** 63n), wide, await client.incr("wide")]));
        const alice = await client.call("PF.SEQ", "inbox", "alice");
        assert.equal(await client.call("PF.SEQ", "inbox", "alice"), String(BigInt(alice) + 1n));
        for (const id of [DECODED, several[0]]) {
          const flat = await client.call("PF.DECODE", id);
          const parts = new Map(flat.flatMap((key, n) => (n % 2 === 0 ? [[key, flat[n + 1]]] : [])));
          assert.equal(parts.get("id"), id);
          if (id !== DECODED) continue;
          assert.equal(parts.get("node"), "378");
          assert.equal(parts.get("time"), "2022-06-28T16:07:40.105Z");
        }
      });

      test("pipelines", async () => {
        const pipeline = client.pipeline();
        for (let n = 0; n < 500; n++) pipeline.incr("snowflake").incr("orders").call("PF.NEXT", "large", "2");
        const replies = await pipeline.exec();
        assert.ok(replies.every(([error]) => error === null));
        for (const of of [0, 1]) {
          const numbers = replies.filter((_, n) => n % 3 === of).map(([, number]) => number);
          assert.equal(numbers.length, 500);
          assert.ok(areRising(numbers));
        }
        assert.ok(areRising(replies.filter((_, n) => n % 3 === 2).flatMap(([, pair]) => pair)));
        const [before, error, then] = await client
          .pipeline()
          .incr("orders")
          .incr("other")
          .incr("orders")
          .exec();
        assert.match(error[0].message, /unknown_generator/);
        assert.ok(areRising([before[1], then[1]]));
      });

      test("one connection pipelines by itself", async () => {
        const automatic = new Redis({ ...options, enableAutoPipelining: true });
        const ids = await Promise.all(Array.from({ length: 200 }, () => automatic.incr("orders")));
        assert.equal(new Set(ids).size, 200);
        await automatic.quit();
      });

      test("errors", async () => {
        const refused = (call, message) => assert.rejects(call, { name: "ReplyError", message });
        await refused(client.incr("other"), /^ERR unknown_generator: /);
        await refused(client.incrby("snowflake", 2), /are not consecutive/);
        await refused(client.get("orders"), /^ERR unknown command 'get'/);
        for (const n of ["0", "-1", String(2n ** 60n)]) {
          await refused(client.incrby("orders", n), new RegExp(`n is ${n}; it takes`));
          await refused(client.call("PF.NEXT", "orders", n), new RegExp(`n is ${n}; it takes`));
        }
        assert.ok((await client.incr("orders")) > 0);
      });

      test("what clients ask", async () => {
        assert.equal(await client.ping(), "PONG");
        assert.equal(await client.client("GETNAME"), "test");
        assert.match(await client.info(), /^loading:0\r$/m);
        assert.ok((await client.command()).some(([command, arity]) => command === "incr" && arity === "2"));
        assert.equal(await client.select(0), "OK");
      });

      test("connections side by side", async () => {
        const clients = Array.from({ length: 8 }, () => new Redis(options));
        const calls = Array.from({ length: 400 }, (_, n) => clients[n % 8].incr("snowflake"));
        assert.equal(new Set(await Promise.all(calls)).size, 400);
        await Promise.all(clients.map((each) => each.quit()));
      });

      test("tokens", { skip: password === undefined }, async () => {
        for (const [wrong, message] of [
          ["wrong", /WRONGPASS/],
          [`${SECRET}x`, /WRONGPASS/],
          [undefined, /NOAUTH/],
        ]) {
          const nobody = new Redis({ ...options, password: wrong, retryStrategy: null });
          const errors = [];
          nobody.on("error", (error) => errors.push(error.message));
          await assert.rejects(nobody.incr("orders"));
          assert.ok(
            errors.some((error) => message.test(error)),
            errors,
          );
          nobody.disconnect();
        }
        const somebody = new Redis({ ...options, username: "anybody" });
        assert.ok((await somebody.incr("orders")) > 0);
        await somebody.quit();
      });
    });
  }
}
