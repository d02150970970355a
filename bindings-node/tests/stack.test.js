// JavaScript's stack may overflow anywhere, even inside one of our calls. That call throws a RangeError, and later ones
// work.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, test } from "node:test";
import { formatId, Layout, PolyflakeError, Snowflake } from "polyflake";
import { assertRising, each, ROOMY, T } from "./support.js";

const TEXT = "timestamp:41|worker:10|sequence:12@1288834974657/1ms";

/** Returns what `call` throws with almost no stack left, and then with a few more bytes each time. */
function thrownAtTheEnd(call) {
  const thrown = [];
  let left;
  // The catch blocks call nothing, because there may be no stack left for a call.
  const dive = (...padding) => {
    try {
      dive(...padding);
    } catch {
      // The stack is used up.
    }
    if (left === 0) return;
    left -= 1;
    try {
      call();
    } catch (error) {
      thrown[thrown.length] = error;
    }
  };
  // Call it once in advance, because compiling it takes more stack.
  call();
  for (let pad = 0; pad < 100; pad += 1) {
    left = 100;
    dive(...Array(pad % 8));
  }
  return thrown;
}

describe("a call that JavaScript's stack has no room for", () => {
  const ids = new Snowflake({ layout: ROOMY, node: 1, clock: () => T, maxWaitMs: 0 });
  const issued = [];
  const clock = () => T + issued.length;
  const followed = new Snowflake({ layout: ROOMY, node: 2, clock });
  const array = new BigUint64Array(513);
  const misspelt = () => {
    try {
      new Layout("twiter");
    } catch (error) {
      if (!(error instanceof PolyflakeError) || error.code !== "UNKNOWN_LAYOUT") throw error;
    }
  };
  each(
    test,
    "throws a RangeError, and does not affect later calls",
    [
      ["nextId", () => issued.push(ids.nextId())],
      ["tryNextId", () => issued.push(ids.tryNextId())],
      ["fill", () => ids.fill(array)],
      ["nextIds", () => issued.push(...ids.nextIds(3))],
      ["stats", () => ids.stats],
      ["a clock function", () => followed.nextId()],
      ["new Snowflake", () => new Snowflake({ node: { datacenter: 1, worker: 2 }, clock: () => T }).nextId()],
      ["new Layout", () => new Layout(TEXT)],
      ["decode", () => new Layout("twitter").decode(1541815603606036480n)],
      ["compose", () => new Layout("discord").compose(T, { worker: 1, process: 2 }, 3)],
      ["formatId", () => formatId(1541815603606036480n, "base58")],
      ["an error", misspelt],
    ],
    (call) => {
      const thrown = thrownAtTheEnd(call);
      assert.ok(thrown.length > 0);
      for (const error of thrown) if (!(error instanceof RangeError)) throw error;
      for (let n = 0; n < 3; n += 1) {
        call();
        issued.push(ids.nextId(), ...ids.nextIds(1000));
        assert.equal(formatId(255n, "hex"), "ff");
        assert.equal(new Layout(TEXT).toString(), TEXT);
        assert.equal(new Snowflake({ node: 5, clock: () => T }).node, 5);
      }
      assertRising(issued);
    },
  );

  test("nextIdAsync rejects, or throws, and later calls get their IDs", () => {
    const code = `
      import { Snowflake } from "polyflake";
      const ids = new Snowflake({ layout: "${ROOMY}", node: 1, clock: () => ${T} });
      ${thrownAtTheEnd}
      const calls = [];
      const thrown = thrownAtTheEnd(() => {
        calls[calls.length] = ids.nextIdAsync();
      });
      process.on("unhandledRejection", () => {});
      const rejected = (await Promise.allSettled(calls)).map(({ reason }) => reason).filter(Boolean);
      const later = (await Promise.all([ids.nextIdAsync(), ids.nextIdsAsync(2), ids.nextIdAsync()])).flatMap((got) => got);
      console.log([...thrown, ...rejected].every((error) => error instanceof RangeError), thrown.length + rejected.length > 0);
      console.log(later.length);
    `;
    // Node itself writes to stderr when it has no stack left for a promise that rejects.
    const { status, stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
      cwd: import.meta.dirname,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      timeout: 300_000,
    });
    assert.deepEqual({ status, stdout }, { status: 0, stdout: "true true\n3\n" });
  });
});
