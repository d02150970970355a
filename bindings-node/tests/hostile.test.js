// Hostile JavaScript: arrays that lie about their properties, calls that are cut short from outside, and a runtime
// whose clocks have been replaced.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import vm from "node:vm";
import { formatId, Layout, parseId, Snowflake } from "polyflake";
import { assertRising, each, isWasm, ROOMY, T, thrownBy } from "./support.js";

const build = (options) => new Snowflake({ layout: ROOMY, node: 1, clock: () => T, ...options });

/** An array whose own properties shadow the inherited ones. */
const posing = (array, properties) =>
  Object.defineProperties(array, Object.getOwnPropertyDescriptors(properties));

const LIES = [
  ["a length that is too large", { length: 5000 }],
  ["a length that is too small", { length: 1 }],
  ["a negative length", { length: -1 }],
  ["no length", { length: undefined }],
  ["a byteLength", { byteLength: 8 }],
  ["a byteOffset", { byteOffset: 8 }],
  ["another buffer", { buffer: new ArrayBuffer(8) }],
  ["a BYTES_PER_ELEMENT", { BYTES_PER_ELEMENT: 1 }],
  ["a set of its own", { set: () => assert.fail("it was called") }],
  ["a longer subarray", { subarray: () => new BigUint64Array(5000) }],
  ["a subarray that is none", { subarray: () => null }],
  ["a constructor that makes others", { constructor: { [Symbol.species]: () => new BigUint64Array(1) } }],
];

describe("an array with properties of its own is what the engine knows", () => {
  each(test, "fill", LIES, (properties) => {
    const ids = build();
    const honest = new BigUint64Array(3);
    const before = ids.nextId();
    ids.fill(posing(new BigUint64Array(honest.buffer), properties));
    assert.deepEqual([...honest], [before + 1n, before + 2n, before + 3n]);
    assert.equal(ids.nextId(), before + 4n);
  });

  each(test, "decodeAll", LIES, (properties) => {
    const ids = BigUint64Array.of(1541815603606036480n, 1541815603606036481n, 1541815603606036482n);
    const decoded = new Layout("twitter").decodeAll(posing(ids, properties));
    assert.deepEqual([...decoded.sequences], [0, 1, 2]);
    assert.equal(decoded.ticks.length, 3);
  });

  const tag = { [Symbol.toStringTag]: "BigUint64Array" };
  each(
    test,
    "another array that is called BigUint64Array",
    [
      ["bytes", posing(new Uint8Array(24), tag)],
      ["signed", posing(new BigInt64Array(3), tag)],
      ["a view", posing(new DataView(new ArrayBuffer(24)), tag)],
    ],
    (array) => {
      const ids = build();
      const before = ids.nextId();
      for (const call of [() => ids.fill(array), () => new Layout("twitter").decodeAll(array)]) {
        const error = thrownBy(call);
        assert.ok(error instanceof TypeError, `${error}`);
        assert.match(error.message, /must be a BigUint64Array/);
      }
      assert.equal(ids.nextId(), before + 1n);
    },
  );

  test("one that is called something else", () => {
    const array = posing(new BigUint64Array(3), { [Symbol.toStringTag]: "mine" });
    build().fill(array);
    assert.ok(array[2] > array[0]);
  });
});

describe("a call that is ended from outside", () => {
  // As with Ctrl+C in Node's REPL, no `catch` or `finally` runs.
  const CALLS = {
    nextId: (ids) => ids.nextId(),
    fill: (ids) => ids.fill(new BigUint64Array(600)),
    stats: (ids) => ids.stats,
    "a call in a clock": (_, outer) => outer.nextIds(600),
  };
  for (const [name, call] of Object.entries(CALLS)) {
    test(`${name}: later ones work, and repeat nothing`, async () => {
      let hangs = false;
      const clock = () => {
        while (hangs);
        return T;
      };
      const ids = build({ clock, maxWaitMs: 0 });
      const outer = build({ clock: () => Number(ids.nextId()) });
      const issued = [ids.nextId()];
      for (let round = 0; round < 60; round += 1) {
        for (let n = 0; n < 4; n += 1) {
          hangs = true;
          const run = () => vm.runInNewContext("run()", { run: () => call(ids, outer) }, { timeout: 5 });
          const ended = thrownBy(run);
          hangs = false;
          if (ended.code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") assert.equal(ended.code, "INTERNAL", `${ended}`);
        }
        try {
          issued.push(ids.nextId(), ...ids.nextIds(600));
        } catch (error) {
          assert.equal(error.code, "INTERNAL");
          // The module is repaired before the event loop continues.
          await null;
          issued.push(ids.nextId(), ...ids.nextIds(600));
        }
        assert.equal(formatId(255n, "hex"), "ff");
      }
      assertRising(issued);
    });
  }

  describe("hundreds of them", () => {
    let hangs = false;
    const clock = () => {
      while (hangs);
      return T;
    };
    const innermost = build({ clock, maxWaitMs: 0 });
    /** The last of 50 Snowflakes, each of which is the clock of the next. */
    const nested = Array.from({ length: 50 }).reduce(
      (inner) => build({ clock: () => T + 0 * Number(inner.nextId()), maxWaitMs: 0 }),
      innermost,
    );
    /** Ends a call. Returns false if it failed before. */
    const end = (call) => {
      hangs = true;
      const { code } = thrownBy(() => vm.runInNewContext("call()", { call }, { timeout: 5 }));
      hangs = false;
      return code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
    };
    const later = [
      () => parseId("ff", "hex"),
      () => formatId(255n, "hex"),
      () => new Layout("twitter"),
      () => build(),
      () => build().nextIds(600),
    ];

    test("calls on later turns of the event loop work", async () => {
      for (let turn = 0; turn < 8; turn += 1) {
        for (let n = 0; n < 15; n += 1) assert.ok(end(() => nested.nextId()));
        await null;
        for (const call of later) call();
      }
    });

    test("a later call on the same turn works, or fails with INTERNAL", { skip: !isWasm }, async () => {
      const calls = [
        () => innermost.nextId(),
        () => innermost.stats,
        () => innermost.fill(new BigUint64Array(600)),
        () => innermost.nextIdText("hex"),
      ];
      // How much of the stack is left differs each time.
      for (let round = 0; round < 4; round += 1) {
        for (let n = 0; n < 200 && end(() => nested.nextId()); n += 1);
        let failed;
        for (let n = 0; n < 300 && failed === undefined; n += 1) {
          end(calls[Math.floor(4 * Math.random())]);
          try {
            build({ layout: "twitter" });
          } catch (error) {
            failed = error;
          }
        }
        if (failed !== undefined) assert.equal(failed.code, "INTERNAL", `${failed}`);
        await null;
        for (const call of later) call();
      }
    });
  });

  test("nextIdAsync: it and later ones get their IDs", async () => {
    let hangs = true;
    const clock = () => {
      while (hangs);
      return T;
    };
    const ids = build({ clock });
    const calls = [];
    const call = () => calls.push(ids.nextIdAsync());
    assert.equal(
      thrownBy(() => vm.runInNewContext("call()", { call }, { timeout: 5 })).code,
      "ERR_SCRIPT_EXECUTION_TIMEOUT",
    );
    hangs = false;
    calls.push(ids.nextIdAsync(), ids.nextIdsAsync(3));
    assertRising((await Promise.all(calls)).flatMap((got) => (typeof got === "bigint" ? got : [...got])));
  });
});

describe("a runtime whose clocks were replaced before the package was loaded", { skip: !isWasm }, () => {
  const LOG = `
    const { Snowflake } = await import("polyflake");
    const outcome = (call) => {
      try { return String(call()); } catch (error) { return error.code ?? String(error); }
    };
    const options = { node: 1, maxWaitMs: 20, layout: "timestamp:41|worker:10|sequence:12@1288834974657/1ms" };
    const make = (clock) => outcome(() => new Snowflake({ ...options, clock }).nextIds(10000).length);
    const ended = new Snowflake({ ...options, clock: () => ${T}, sequenceStart: "zero" });
    ended.nextIds(4096);
    const later = await ended.nextIdAsync().catch((error) => error.code);
    console.log(JSON.stringify([make("system"), make("steady"), later]));
  `;
  /** Returns the outcomes of a batch with each built-in clock, and of a later call with a clock function. */
  const run = (code) =>
    JSON.parse(
      execFileSync(process.execPath, ["--input-type=module", "-e", code + LOG], {
        cwd: fileURLToPath(new URL("..", import.meta.url)),
        encoding: "utf8",
        timeout: 120_000,
      }),
    );
  const ENDED = "SEQUENCE_EXHAUSTED";
  const NEVER = ["TIME_OUT_OF_RANGE", "TIME_OUT_OF_RANGE", ENDED];
  const WAITS = [ENDED, ENDED, ENDED];
  each(
    test,
    "every call ends",
    [
      ["a wall clock that is no number", "Date.now = () => NaN;", NEVER],
      ["a negative one", "Date.now = () => -5;", NEVER],
      ["an infinite one", "Date.now = () => Infinity;", NEVER],
      [
        "one past the year 2262, whose ns do not fit 64 bits",
        `Date.now = () => ${T} + 2 ** 64 / 1e6;`,
        NEVER,
      ],
      ["real time that is no number", "Date.now = () => 17e11; performance.now = () => NaN;", WAITS],
      ["real time that stands still", "Date.now = () => 17e11; performance.now = () => 5;", WAITS],
      ["infinite real time", "Date.now = () => 17e11; performance.now = () => Infinity;", WAITS],
      [
        "real time that runs back",
        "let n = 1e9; Date.now = () => 17e11; performance.now = () => (n -= 1);",
        WAITS,
      ],
      [
        "real time that jumps to and fro",
        "let n = 0; Date.now = () => 17e11; performance.now = () => (n++ % 2 ? -1e6 : 1e6);",
        WAITS,
      ],
      [
        "only real time that runs back",
        "let n = 1e9; performance.now = () => (n -= 1);",
        ["10000", "10000", ENDED],
      ],
    ],
    (code, expected) => assert.deepEqual(run(code), expected),
  );
});
