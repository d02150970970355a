// Waits are bounded, and the asynchronous ones do not block the event loop. No test asserts a time.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { describe, test } from "node:test";
import { Snowflake } from "polyflake";
import { assertRising, each, fails, failsLater, freshNode, isWasm, ROOMY, T } from "./support.js";

const LONGEST = 2 ** 32 - 1;

const CALLS = {
  nextId: (ids) => ids.nextId(),
  next: (ids) => ids.next(),
  nextIdString: (ids) => ids.nextIdString(),
  nextIds: (ids) => ids.nextIds(5_000),
  "nextIds, many": (ids) => ids.nextIds(100_000),
  fill: (ids) => ids.fill(new BigUint64Array(5_000)),
  nextIdAsync: (ids) => ids.nextIdAsync(),
  nextIdsAsync: (ids) => ids.nextIdsAsync(5_000),
};

/** Checks that a call fails, whether it throws or returns a promise that rejects. */
const failsInTime = (call, ...expected) => failsLater(new Promise((resolve) => resolve(call())), ...expected);

/** A Snowflake whose clock is in a tick with no IDs left. */
function usedUp(clock, options) {
  const ids = new Snowflake({ node: 1, clock, sequenceStart: "zero", ...options });
  ids.nextIds(4096);
  return ids;
}

for (const [name, call] of Object.entries(CALLS)) {
  describe(name, () => {
    for (const maxWaitMs of [0, 11, 60]) {
      test(`a clock that does not advance ends in exhaustion: maxWaitMs ${maxWaitMs}`, async () => {
        const ids = usedUp(() => T, { maxWaitMs });
        const error = await failsInTime(() => call(ids), "SEQUENCE_EXHAUSTED");
        assert.equal(error.retryAfterMs, 1);
        assert.deepEqual([ids.stats.waits, ids.stats.lastIssuedMs], [1, BigInt(T)]);
      });
    }

    for (const stepMs of [1, 50, 1e9]) {
      test(`a clock that steps back by ${stepMs} ms at each reading does not hang`, async () => {
        let now = T + stepMs;
        const clock = () => {
          now -= stepMs;
          return now;
        };
        const ids = new Snowflake({ node: 1, clock, maxBackwardMs: LONGEST, maxWaitMs: 60 });
        const issued = [ids.nextId()];
        const useUp = async () => {
          for (;;) {
            await call(ids);
            issued.push(ids.nextId());
          }
        };
        const error = await failsInTime(useUp, "CLOCK_MOVED_BACKWARDS");
        assert.ok(error.behindMs > 0);
        assertRising(issued);
        for (const id of issued) assert.equal(ids.decode(id).timestampMs, BigInt(T));
      });
    }

    test("a step back past maxBackwardMs does not wait", async () => {
      let now = T;
      const ids = new Snowflake({ node: 1, clock: () => now, maxWaitMs: LONGEST });
      ids.nextId();
      now -= 1001;
      const error = await failsInTime(() => call(ids), "CLOCK_MOVED_BACKWARDS", "1000");
      assert.deepEqual([error.behindMs, error.retryAfterMs], [1001, 1]);
    });

    test("a clock that fails during a wait", async () => {
      let readings = 0;
      const cause = new Error("no sync");
      const clock = () => {
        readings += 1;
        if (readings > 20) throw cause;
        return T;
      };
      const ids = usedUp(clock, { maxWaitMs: LONGEST });
      assert.equal((await failsInTime(() => call(ids), "CLOCK_FAILED")).cause, cause);
    });
  });
}

describe("tryNextId", () => {
  test("does not wait", () => {
    const ids = usedUp(() => T, { maxWaitMs: LONGEST });
    assert.equal(fails(() => ids.tryNextId(), "SEQUENCE_EXHAUSTED", "1 ms").retryAfterMs, 1);
    assert.equal(ids.stats.waits, 1);
  });

  test("says how long the tick still lasts", () => {
    const ids = new Snowflake({ layout: "sonyflake", node: 1, clock: () => T + 3, sequenceStart: "zero" });
    ids.nextIds(256);
    assert.equal(fails(() => ids.tryNextId(), "SEQUENCE_EXHAUSTED").retryAfterMs, 7);
  });

  test("returns the next tick's ID once the clock is there", () => {
    let now = T;
    const ids = usedUp(() => now);
    fails(() => ids.tryNextId(), "SEQUENCE_EXHAUSTED");
    now += 1;
    const { timestampMs, sequence } = ids.decode(ids.tryNextId());
    assert.deepEqual([timestampMs, sequence], [BigInt(T + 1), 0]);
  });
});

describe("a step back of the clock", () => {
  test("if tolerated, IDs continue in the last tick", () => {
    let now = T;
    const ids = new Snowflake({ node: 1, clock: () => now });
    const issued = [ids.nextId()];
    for (const back of [1, 500, 1000]) {
      now = T - back;
      issued.push(ids.nextId());
      assert.equal(ids.stats.leadMs, back);
    }
    assert.deepEqual(
      issued.map((id) => id - issued[0]),
      [0n, 1n, 2n, 3n],
    );
    assert.ok(ids.stats.rollbacks >= 1);
  });

  test("if not tolerated, fails until the clock has caught up", () => {
    let now = T;
    const ids = new Snowflake({ node: 1, clock: () => now, maxBackwardMs: 100 });
    const first = ids.nextId();
    now = T - 101;
    for (const call of [() => ids.nextId(), () => ids.tryNextId(), () => ids.nextIds(3)]) {
      const error = fails(call, "CLOCK_MOVED_BACKWARDS", "101 ms", "maxBackwardMs");
      assert.deepEqual([error.behindMs, error.retryAfterMs], [101, 1]);
    }
    now += 1;
    assert.equal(ids.nextId(), first + 1n);
    now = T + 5;
    assert.equal(ids.decode(ids.nextId()).timestampMs, BigInt(T + 5));
  });

  test("maxBackwardMs 0 tolerates none", () => {
    let now = T;
    const ids = new Snowflake({ node: 1, clock: () => now, maxBackwardMs: 0 });
    ids.nextId();
    now -= 1;
    assert.equal(fails(() => ids.nextId(), "CLOCK_MOVED_BACKWARDS").behindMs, 1);
  });
});

describe("a long wait", () => {
  // Issuing a tick's IDs takes up to 16 clock readings, and a tick lasts for 32. A call spends the rest pausing, for at
  // least 0.2 ms each time, or 1 ms with a timer. On a machine that stood still, a tick ends after 100 ms.
  const slow = (most = 32) => {
    let [tick, readings, began] = [T, 0, performance.now()];
    return () => {
      readings += 1;
      if (readings === most || performance.now() - began > 100) {
        [tick, readings, began] = [tick + 1, 0, performance.now()];
      }
      return tick;
    };
  };

  test("a batch continues while it makes progress, for longer than maxWaitMs in total", () => {
    const ids = usedUp(slow(), { maxWaitMs: 1000 });
    assertRising(ids.nextIds(1100 * 4096));
    assert.ok(ids.stats.waits * 5 * 0.2 > 1000, `${ids.stats.waits} waits`);
  });

  test("and so does nextIdsAsync", async () => {
    const ids = usedUp(slow(), { maxWaitMs: 1000 });
    assertRising(await ids.nextIdsAsync(220 * 4096));
    assert.ok(ids.stats.waits * 5 > 1000, `${ids.stats.waits} waits`);
  });

  for (const name of ["nextIdAsync", "nextIdsAsync"]) {
    test(`${name} does not block the event loop, where a timer advances the clock`, async () => {
      let now = T;
      const ids = usedUp(() => now, { maxWaitMs: 60_000 });
      let ticks = 0;
      const timer = setInterval(() => {
        ticks += 1;
        if (ticks === 5) now += 10;
      });
      const id = name === "nextIdAsync" ? await ids.nextIdAsync() : (await ids.nextIdsAsync(3))[0];
      clearInterval(timer);
      assert.ok(ticks >= 5);
      assert.equal(ids.decode(id).timestampMs, BigInt(T + 10));
    });
  }

  test("calls get IDs in the order in which they were made, also one made when there are IDs again", async () => {
    let now = T;
    const ids = usedUp(() => now, { maxWaitMs: 60_000 });
    const calls = [ids.nextIdAsync(), ids.nextIdsAsync(3), ids.nextIdAsync()];
    now += 1;
    calls.push(ids.nextIdAsync(), ids.nextIdsAsync(2));
    assertRising((await Promise.all(calls)).flatMap((got) => (typeof got === "bigint" ? got : [...got])));
  });

  test("20,000 calls at once get theirs, in order", async () => {
    // Four IDs per tick, so that the calls take longer than maxWaitMs in total.
    const layout = "timestamp:41|worker:10|sequence:2@1288834974657/1ms";
    const ids = new Snowflake({ layout, node: 1, clock: slow(4), maxWaitMs: 1000 });
    const issued = [];
    const calls = Array.from({ length: 20_000 }, () => ids.nextIdAsync().then((id) => issued.push(id)));
    await Promise.all(calls);
    assert.equal(issued.length, 20_000);
    assertRising(issued);
  });

  test("a call does not wait for the end of a long batch that came before it", async () => {
    let now = T;
    const ids = usedUp(() => now, { maxWaitMs: 60_000 });
    const ended = [];
    const batch = ids.nextIdsAsync(50 * 4096).then((got) => {
      ended.push("batch");
      assertRising(got);
    });
    const others = [ids.nextIdAsync(), ids.nextIdsAsync(5)].map((call) =>
      call.then(() => ended.push("other")),
    );
    const timer = setInterval(() => {
      now += 1;
    });
    await Promise.all([batch, ...others]);
    clearInterval(timer);
    assert.deepEqual(ended, ["other", "other", "batch"]);
  });

  test("a batch without a wait does not keep the event loop to itself", async () => {
    const ids = new Snowflake({ layout: ROOMY, node: 1, clock: () => T });
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    });
    const batch = ids.nextIdsAsync(2 ** 24);
    await new Promise((resolve) => setTimeout(resolve));
    const turnsBefore = turns;
    assertRising(await batch);
    clearInterval(timer);
    assert.ok(turns > turnsBefore, `${turns} turns, of which ${turnsBefore} came at once`);
  });

  test("close ends all calls that wait", async () => {
    const ids = usedUp(() => T, { maxWaitMs: LONGEST });
    const calls = Array.from({ length: 1000 }, (_, n) =>
      n % 2 ? ids.nextIdAsync() : ids.nextIdsAsync(n + 1),
    );
    ids.close();
    for (const outcome of await Promise.allSettled(calls)) assert.equal(outcome.reason?.code, "CLOSED");
    await failsLater(ids.nextIdAsync(), "CLOSED");
  });

  test("a clock that fails once fails one call, and the others get their IDs", async () => {
    let now = () => T;
    const ids = usedUp(() => now(), { maxWaitMs: 60_000 });
    const calls = Array.from({ length: 3 }, () => ids.nextIdAsync());
    const cause = new Error("no sync");
    now = () => {
      now = () => T + 1;
      throw cause;
    };
    assert.equal((await failsLater(calls[0], "CLOCK_FAILED")).cause, cause);
    assertRising([await calls[1], await calls[2], await ids.nextIdAsync()]);
  });

  test("a clock may make calls, and close its Snowflake", async () => {
    const made = [];
    let readings = 0;
    const ids = new Snowflake({
      node: 1,
      maxWaitMs: LONGEST,
      clock() {
        readings += 1;
        if (made.length < 100) made.push(ids.nextIdAsync());
        if (readings === 5000) ids.close();
        return T;
      },
    });
    const first = await ids.nextIdAsync();
    while (made.length < 100) await ids.nextIdAsync();
    assertRising([first, ...(await Promise.all(made))]);
    assert.equal(made.length, 100);
    await failsLater(ids.nextIdsAsync(5000), "CLOSED");
  });

  // Bun and Deno have no flag that gives a program access to the garbage collector.
  const noCollector = (process.versions.bun ?? globalThis.Deno) !== undefined && "only in Node";
  test("a Snowflake may be garbage while its calls wait", { skip: noCollector }, () => {
    const issued = run(
      "let now = 1_700_000_000_000;",
      `
      const { setFlagsFromString } = await import("node:v8");
      setFlagsFromString("--expose-gc");
      const collect = (await import("node:vm")).runInNewContext("gc");
      const made = () => {
        const ids = new Snowflake({ node: 1, clock: () => now, sequenceStart: "zero", maxWaitMs: 60_000 });
        ids.nextIds(4096);
        return [new WeakRef(ids), [ids.nextIdAsync(), ids.nextIdsAsync(2)]];
      };
      const [reference, calls] = made();
      for (let n = 0; n < 5; n += 1) {
        await new Promise((resume) => setTimeout(resume, 5));
        collect();
      }
      const isGarbage = reference.deref() === undefined;
      now += 1;
      const [id, batch] = await Promise.all(calls);
      return [isGarbage, id < batch[0], batch.length];
      `,
    );
    assert.deepEqual(issued, [true, true, 2]);
  });

  test("calls that wait at the same time share the next tick", async () => {
    let now = T;
    const ids = usedUp(() => now, { maxWaitMs: 60_000 });
    const waiting = Array.from({ length: 50 }, () => ids.nextIdAsync());
    now += 1;
    const issued = await Promise.all(waiting);
    assert.equal(new Set(issued).size, 50);
    for (const id of issued) assert.equal(ids.decode(id).timestampMs, BigInt(T + 1));
  });
});

describe("on the wall clock", () => {
  test("a small layout waits for tick after tick", async () => {
    const layout = "timestamp:41|worker:10|sequence:1@1288834974657/1ms";
    const ids = new Snowflake({ layout, node: 1, maxWaitMs: 60_000 });
    const array = new BigUint64Array(20);
    const issued = [...ids.nextIds(30), ids.nextId()];
    ids.fill(array);
    issued.push(...array, await ids.nextIdAsync(), ...(await ids.nextIdsAsync(20)));
    assertRising(issued);
    assert.ok(ids.stats.waits > 20);
  });

  // A ten-hour tick that has just begun, and that a new cursor treats as used up.
  const tenHours = `timestamp:30|worker:10|sequence:1@${Math.floor(Date.now() / 1000) * 1000}/36000s`;
  let worker = 0;
  for (const [name, call] of [...Object.entries(CALLS), ["tryNextId", (ids) => ids.tryNextId()]]) {
    for (const clock of ["system", "steady"]) {
      test(`${name} gives up if the wait is too long, on the ${clock} clock`, async () => {
        worker += 1;
        const ids = new Snowflake({ layout: tenHours, node: worker, clock, maxWaitMs: 5 });
        const { retryAfterMs } = await failsInTime(() => call(ids), "SEQUENCE_EXHAUSTED");
        assert.ok(retryAfterMs > 0 && retryAfterMs <= 36_000_000, `${retryAfterMs}`);
        assert.equal(ids.stats.waits, 1);
      });
    }
  }

  test("the first ID of a new node is later than the tick in which it was created", () => {
    const before = Date.now();
    const ids = new Snowflake({ node: freshNode() });
    assert.ok(ids.decode(ids.nextId()).timestampMs > BigInt(before));
  });
});

/**
 * Returns the result of `code` in a separate process, where `stubs` run before the package is loaded. Fails if a wait
 * never ends.
 */
function run(stubs, code) {
  const script = `
    ${stubs}
    import("polyflake").then(async ({ Snowflake }) => {
      const outcome = async (call) => {
        try { return String(await call()); } catch (error) { return error.code ?? String(error); }
      };
      const frozen = () => ${T};
      console.log(JSON.stringify(await (async () => { ${code} })()));
    });
  `;
  return JSON.parse(
    execFileSync(process.execPath, ["-e", script], {
      cwd: import.meta.dirname,
      encoding: "utf8",
      timeout: 300_000,
    }),
  );
}

describe("a thread that may sleep", { skip: !isWasm && "the native addon waits in another way" }, () => {
  const COUNTED = `
    let sleeps = 0;
    const { wait } = Atomics;
    Atomics.wait = (...given) => {
      sleeps += 1;
      return wait.apply(Atomics, given);
    };
  `;
  // Simulates a machine on which only clock readings and sleeps take time, and whose wall clock and monotonic clock
  // start their ms at different moments.
  const simulated = (wallMs) => `
    let ms = 0;
    let asleepMs = 0;
    const read = () => ms += 0.00005;
    performance.now = read;
    Date.now = () => {
      const ms = read();
      return Math.floor(${T} + 0.4 + ${wallMs});
    };
    Atomics.wait = (array, index, value, timeout) => {
      asleepMs += timeout;
      ms += timeout + 0.06;
      return "timed-out";
    };
  `;

  for (const clock of ["system", "steady"]) {
    test(`a wait for the ${clock} clock sleeps`, () => {
      const layout = "timestamp:41|worker:10|sequence:1@1288834974657/1ms";
      const options = JSON.stringify({ layout, node: 1, clock, maxWaitMs: 60_000 });
      const sleeps = run(COUNTED, `new Snowflake(${options}).nextIds(400); return sleeps;`);
      assert.ok(sleeps > 20, `${sleeps} sleeps in 200 ticks`);
    });

    each(
      test,
      `under full load, most waits for the ${clock} clock are slept, and no tick is lost`,
      [
        ["it keeps pace", "ms"],
        ["it gains", "ms * 1.001"],
        ["it loses", "ms * 0.999"],
        ["it steps forward by part of a ms", "ms + (ms > 500 && 0.7)"],
        ["it steps back by part of a ms", "ms - (ms > 500 && 0.7)"],
      ],
      (wallMs) => {
        const [ticks, asleepMs] = run(
          simulated(wallMs),
          `
        const ids = new Snowflake({ node: 1, clock: "${clock}" });
        const first = ids.decode(ids.nextId()).timestampMs;
        const batch = ids.nextIds(1000 * ids.layout.idsPerTick);
        return [Number(ids.decode(batch.at(-1)).timestampMs - first), asleepMs];
        `,
        );
        assert.ok(ticks <= 1002, `${ticks} ticks for the IDs of 1000`);
        assert.ok(asleepMs > 600, `asleep for ${asleepMs} of 1000 ms`);
      },
    );
  }
});

// Runtimes whose clocks do not advance, such as workerd between events, and test suites that replace the clocks.
describe("a runtime whose clocks do not advance", {
  skip: !isWasm && "the native addon has its own clocks",
}, () => {
  const FROZEN = `Date.now = () => ${T}; performance.now = () => 5;`;
  const NO_SLEEP = `Atomics.wait = () => { throw new TypeError("not on this thread"); };`;
  const NO_SHARED_MEMORY = "delete globalThis.SharedArrayBuffer;";
  // As in workerd, the clocks advance only while the event loop turns.
  const MOVED_BY_EVENTS = `
    let now = ${T};
    Date.now = () => now;
    performance.now = () => now - ${T};
    const { setTimeout: later } = globalThis;
    globalThis.setTimeout = (call, ms) => later(() => { now += 1; call(); }, ms);
  `;

  each(
    test,
    "a wait ends, because readings are counted",
    [
      ["if the thread may sleep", FROZEN],
      ["if it may not, as on a page", FROZEN + NO_SLEEP],
      ["without shared memory", FROZEN + NO_SHARED_MEMORY],
    ],
    (stubs) => {
      const said = run(
        stubs,
        `
      const maxWaitMs = 11;
      const builtin = new Snowflake({ node: 1, maxWaitMs });
      const long = new Snowflake({ layout: "sonyflake", node: 1, maxWaitMs });
      const callers = new Snowflake({ node: 1, clock: frozen, sequenceStart: "zero", maxWaitMs });
      callers.nextIds(4096);
      return [
        await outcome(() => builtin.nextId()),
        await outcome(() => builtin.nextIds(10)),
        await outcome(() => long.nextId()),
        await outcome(() => callers.nextId()),
        await outcome(() => callers.nextIds(10)),
      ];
      `,
      );
      assert.deepEqual(
        said,
        Array.from({ length: 5 }, () => "SEQUENCE_EXHAUSTED"),
      );
    },
  );

  test("if clocks advance only between events, the asynchronous calls get their IDs", () => {
    const said = run(
      MOVED_BY_EVENTS,
      `
      const ids = new Snowflake({ node: 1, maxWaitMs: 11 });
      const blocked = await outcome(() => ids.nextId());
      const first = await ids.nextIdAsync();
      const batch = await ids.nextIdsAsync(10_000);
      return [blocked, batch.length, batch[0] > first];
      `,
    );
    assert.deepEqual(said, ["SEQUENCE_EXHAUSTED", 10_000, true]);
  });

  test("a page with a normal clock waits without sleeping", () => {
    const said = run(
      NO_SLEEP,
      `
      const layout = "timestamp:41|worker:10|sequence:4@1288834974657/1ms";
      const issued = new Snowflake({ layout, node: 1, maxWaitMs: 60_000 }).nextIds(500);
      return [issued.length, new Set(issued).size];
      `,
    );
    assert.deepEqual(said, [500, 500]);
  });
});
