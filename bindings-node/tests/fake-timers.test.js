// `clock: () => Date.now()` follows fake timers, as the README shows. A built-in clock ignores them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Layout, Snowflake } from "polyflake";
import sinon from "sinon";
import { assertRising, fails, failsLater, freshNode, T } from "./support.js";

describe("sinon", () => {
  // Leave out nextTick and the like, which Node's test runner needs.
  const toFake = ["Date", "performance", "setTimeout", "clearTimeout", "setInterval", "clearInterval"];
  let timers;
  beforeEach(() => {
    timers = sinon.useFakeTimers({ now: T, toFake });
  });
  afterEach(() => timers.restore());

  const build = (options) =>
    new Snowflake({ node: 7, clock: () => Date.now(), sequenceStart: "zero", ...options });

  test("IDs follow the fake time", () => {
    const ids = build();
    const first = ids.nextId();
    assert.equal(ids.decode(first).time.getTime(), T);
    timers.tick(60_000);
    const second = ids.nextId();
    assert.equal(ids.decode(second).time.toISOString(), new Date(T + 60_000).toISOString());
    assert.equal(first, build().layout.compose(T, 7, 0));
    assert.ok(second > first);
  });

  test("fake time that steps back", () => {
    const ids = build();
    ids.nextId();
    timers.setSystemTime(T - 5000);
    assert.equal(fails(() => ids.nextId(), "CLOCK_MOVED_BACKWARDS").behindMs, 5000);
    timers.setSystemTime(T + 1);
    assert.equal(ids.decode(ids.nextId()).timestampMs, BigInt(T + 1));
  });

  test("a wait ends even if the fake time does not advance", async () => {
    const ids = build({ maxWaitMs: 20 });
    ids.nextIds(4096);
    fails(() => ids.nextId(), "SEQUENCE_EXHAUSTED");
    fails(() => ids.nextIds(5), "SEQUENCE_EXHAUSTED");
    await failsLater(ids.nextIdAsync(), "SEQUENCE_EXHAUSTED");
    await failsLater(ids.nextIdsAsync(5), "SEQUENCE_EXHAUSTED");
  });

  test("a wait gets its ID when the fake time advances", async () => {
    const ids = build({ maxWaitMs: 60_000 });
    ids.nextIds(4096);
    const waiting = ids.nextIdAsync();
    timers.tick(3);
    assert.equal(ids.decode(await waiting).timestampMs, BigInt(T + 3));
  });

  test("a built-in clock is real, and waits in real time", async () => {
    for (const clock of ["system", "steady"]) {
      const ids = new Snowflake({ node: freshNode(), clock });
      const issued = [
        await ids.nextIdAsync(),
        ids.nextId(),
        ...ids.nextIds(10_000),
        ...(await ids.nextIdsAsync(10_000)),
      ];
      assertRising(issued);
      assert.notEqual(ids.decode(issued[0]).timestampMs, BigInt(T));
    }
  });

  test("fake and real Dates are instants", () => {
    const layout = new Layout("twitter");
    const fake = new Date();
    assert.equal(layout.minId(fake), layout.minId(T));
    timers.restore();
    assert.equal(layout.minId(fake), layout.minId(T));
    assert.equal(layout.decode(layout.minId(new Date(T))).time.getTime(), T);
  });
});

test("vitest", () => {
  const vitest = createRequire(import.meta.url).resolve("vitest/package.json");
  const main = join(dirname(vitest), JSON.parse(readFileSync(vitest, "utf8")).bin.vitest);
  const root = fileURLToPath(new URL("vitest", import.meta.url));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const options = ["--root", root, "--reporter", "json", "--testTimeout", "120000"];
  const output = execFileSync(process.execPath, [main, "run", ...options], {
    encoding: "utf8",
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { numTotalTests, numPassedTests } = JSON.parse(output);
  assert.deepEqual([numTotalTests, numPassedTests], [3, 3]);
});
