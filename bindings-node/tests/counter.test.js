// Counters. The protocol and the stores are tested in the crate `coordination`.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { inspect, promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { Counter, Snowflake } from "polyflake";
import { redis } from "./redis.js";
import { assertRising, doesNotBlock, fails, failsLater, isWasm } from "./support.js";

const dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");
const asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

test("other types are a TypeError", async () => {
  const store = "redis://127.0.0.1:1/0";
  for (const [name, options] of [
    [undefined, { store }],
    [7, { store }],
    ["orders", undefined],
    ["orders", null],
    ["orders", store],
    ["orders", { store: 7 }],
    ["orders", { store: [7] }],
    ["orders", { store, start: 1.5 }],
    ["orders", { store, step: true }],
    ["orders", { store, maxWaitMs: null }],
  ]) {
    await assert.rejects(Counter.open(name, options), TypeError, inspect([name, options]));
  }
  assert.throws(() => new Counter("orders", { store }), { name: "TypeError", message: /await Counter.open/ });
});

test("the WebAssembly build refuses", { skip: !isWasm }, async () => {
  const opening = Counter.open("orders", { store: "redis://127.0.0.1:1/0" });
  const error = await failsLater(opening, "INVALID_OPTION", "WebAssembly does not have");
  assert.equal(error.number, 4);
});

/** Runs an ES module, and returns what it logs as JSON. It is killed if it hangs. */
async function run(program) {
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "--eval", program],
    { cwd: import.meta.dirname, timeout: 120_000 },
  );
  assert.equal(stderr, "");
  return stdout === "" ? undefined : JSON.parse(stdout);
}

const texts = (numbers) => Array.from(numbers, String);
const range = (first, last) => Array.from({ length: last - first + 1 }, (_, at) => String(first + at));

describe("counters in Redis", { skip: isWasm && "wasm has no counters" }, () => {
  let store;
  before(async () => {
    store = (await redis()).address;
  });

  test("1, 2, 3, in every way there is", async () => {
    const counter = await Counter.open("ways", { store });
    assert.equal(counter.name, "ways");
    assert.equal(inspect(counter), 'Counter { name: "ways" }');
    const filled = new BigUint64Array(3);
    const numbers = [
      counter.nextId(),
      counter.tryNextId(),
      await counter.nextIdAsync(),
      counter.next().value,
    ];
    counter.fill(filled);
    numbers.push(...filled, ...counter.nextIds(3), ...(await counter.nextIdsAsync(3n)));
    for (const number of counter) {
      numbers.push(number);
      break;
    }
    for await (const number of counter) {
      numbers.push(number);
      break;
    }
    assert.ok(counter.nextIds(1) instanceof BigUint64Array);
    assert.deepEqual(texts(numbers), range(1, 15));
    assert.equal(typeof numbers[0], "bigint");
    await counter.close();
  });

  test("shared memory is filled, and what is no array is refused", async () => {
    const counter = await Counter.open("shared memory", { store });
    const shared = new BigUint64Array(new SharedArrayBuffer(80));
    counter.fill(shared.subarray(1));
    assert.deepEqual(texts(shared), range(0, 9));
    assert.throws(() => counter.fill([1n]), TypeError);
    counter.fill(new BigUint64Array());
    assert.equal(counter.nextId(), 10n);
    await counter.close();
  });

  test("a counter that was closed goes on where it was when it is opened again", async () => {
    const first = await Counter.open("again", { store });
    assert.deepEqual(texts(first.nextIds(5)), range(1, 5));
    const closing = first.close();
    fails(() => first.nextId(), "CLOSED");
    await Promise.all([closing, first.close(), first[asyncDispose]()]);
    await first.close();
    for (const call of [
      () => first.tryNextId(),
      () => first.nextIds(2),
      () => first.fill(new BigUint64Array(1)),
      () => first.fill(new BigUint64Array()),
      () => first.stats,
      () => first.next(),
    ])
      fails(call, "CLOSED");
    for (const call of [
      () => first.nextIdAsync(),
      () => first.nextIdsAsync(2),
      () => first.nextBlock(2),
      () => first.peek(),
      () => first.raise(5),
      () => first.remove(),
    ])
      await failsLater(call(), "CLOSED");
    assert.equal(first.name, "again");
    const second = await Counter.open("again", { store });
    assert.equal(second.nextId(), 6n);
    assert.equal(second[dispose](), undefined);
    fails(() => second.nextId(), "CLOSED");
    await second.close();
  });

  test("two Counters of a name share what is in hand, and close separately", async () => {
    const [one, two] = await Promise.all([1, 2].map(() => Counter.open("two", { store })));
    assert.deepEqual([one.nextId(), two.nextId(), one.nextId()], [1n, 2n, 3n]);
    await one.close();
    assert.equal(two.nextId(), 4n);
    await two.close();
  });

  test("batches larger than what is in hand wait, and calls at the same time share a wait", async () => {
    const counter = await Counter.open("batches", { store, step: 10 });
    const taken = fails(() => counter.nextIds(1000), "COUNTER_UNAVAILABLE", "fewer numbers left");
    assert.equal(taken.number, 15);
    fails(() => counter.fill(new BigUint64Array(1000)), "COUNTER_UNAVAILABLE");
    assert.equal(counter.nextId(), 1n);
    let first = 2n;
    await doesNotBlock(async () => {
      const batch = await counter.nextIdsAsync(20_000);
      assert.equal(batch.length, 20_000);
      assert.deepEqual([batch[0], batch.at(-1)], [first, first + 19_999n]);
      first += 20_000n;
    });
    const many = await Promise.all(
      Array.from({ length: 300 }, (_, n) => (n % 3 ? counter.nextIdAsync() : counter.nextIdsAsync(7))),
    );
    const numbers = many.flatMap((given) => (typeof given === "bigint" ? [given] : [...given]));
    assert.equal(numbers.length, 900);
    numbers.sort((a, b) => Number(a - b));
    assert.deepEqual(texts(numbers), range(20_002, 20_901));
    for (const n of [0, -1, 16_777_217, "x"]) {
      fails(() => counter.nextIds(n), "INVALID_OPTION", "n is");
      await failsLater(counter.nextIdsAsync(n), "INVALID_OPTION", "n is");
      await failsLater(counter.nextBlock(n), "INVALID_OPTION", "n is");
    }
    await counter.close();
  });

  test("a step of 1 asks the store for each number", async () => {
    const counter = await Counter.open("one", { store, step: 1, start: "7" });
    fails(() => counter.nextId(), "COUNTER_UNAVAILABLE", "no numbers left");
    fails(() => counter.nextIds(2), "COUNTER_UNAVAILABLE", "no numbers left");
    assert.equal(await counter.nextIdAsync(), 7n);
    const numbers = await Promise.all(Array.from({ length: 50 }, () => counter.nextIdAsync()));
    assert.deepEqual(texts(numbers), range(8, 57));
    assert.deepEqual(texts(await counter.nextIdsAsync(3)), range(58, 60));
    assert.equal(counter.stats.inHand, 0);
    assert.equal(await counter.peek(), 60n);
    await counter.close();
  });

  test("a block is one run", async () => {
    const counter = await Counter.open("blocks", { store, step: 10 });
    assert.equal(await counter.nextBlock(4), 1n);
    assert.equal(await counter.nextIdAsync(), 5n);
    const first = await counter.nextBlock(1000n);
    assert.ok(first > 5n, `${first}`);
    assert.ok((await counter.nextIdAsync()) >= first + 1000n);
    await counter.close();
  });

  test("peek, raise, remove, stats", async () => {
    const counter = await Counter.open("asked", { store, step: 100, start: 1000 });
    assert.equal(counter.nextId(), 1000n);
    assert.equal(await counter.peek(), 1099n);
    assert.equal(await counter.raise(5000n), undefined);
    assert.equal(await counter.nextIdAsync(), 5001n);
    await counter.raise(10);
    assert.ok((await counter.nextIdAsync()) > 5001n);
    for (const number of [0, -1, 2n ** 63n]) {
      await failsLater(counter.raise(number), "INVALID_OPTION", "number is");
    }
    await assert.rejects(counter.raise(1.5), TypeError);
    const { stats } = counter;
    assert.ok(Object.isFrozen(stats));
    assert.deepEqual(Object.keys(stats).sort(), ["inHand", "segments", "skipped", "step", "waits"]);
    assert.deepEqual(
      Object.values(stats).map((value) => typeof value),
      Array(5).fill("number"),
    );
    assert.equal(stats.step, 100);
    assert.ok(stats.segments >= 2 && stats.skipped >= 99, inspect(stats));
    assert.equal(await counter.remove(), true);
    assert.equal(await counter.remove(), false);
    await failsLater(counter.peek(), "COUNTER_UNAVAILABLE");
    await failsLater(counter.nextIdAsync(), "COUNTER_UNAVAILABLE");
    await counter.close();
  });

  test("options that cannot be", async () => {
    for (const [options, ...says] of [
      [{}, "store is missing"],
      [{ store: undefined }, "store is missing"],
      [{ store: [] }, "store is missing"],
      [{ store: "memcached://:hush@host" }, "store"],
      [{ store, step: 0 }, "step is 0"],
      [{ store, step: 2n ** 40n }, "step is 1099511627776"],
      [{ store, step: "many" }, "step is"],
      [{ store, start: 0 }, "start is 0"],
      [{ store, start: 2n ** 63n }, "start is"],
      [{ store, maxWaitMs: -1 }, "maxWaitMs is -1"],
      [{ store, max_wait_ms: 1 }, "max_wait_ms", "start, step and maxWaitMs"],
      [{ store, name: "x" }, "name"],
    ]) {
      const error = await failsLater(Counter.open("cannot be", options), "INVALID_OPTION", ...says);
      assert.ok(!error.message.includes("hush"), error.message);
    }
    for (const name of ["", "x".repeat(1000), "a\nb"]) {
      await failsLater(Counter.open(name, { store }), "INVALID_OPTION", "name");
    }
    const counter = await Counter.open("used", { store, step: undefined, maxWaitMs: undefined });
    await failsLater(Counter.open("used", { store, step: 5 }), "INVALID_OPTION", "step=auto", "step=5");
    await counter.close();
  });

  test("a store that does not answer: no secret is told, and nothing blocks", async () => {
    await doesNotBlock(async () => {
      const opening = Counter.open("nobody", { store: "redis://:hush@127.0.0.1:1/0", maxWaitMs: 300 });
      const error = await failsLater(opening, "COUNTER_UNAVAILABLE", "redis://");
      assert.ok(!inspect(error).includes("hush"), error.message);
    });
  });

  test("calls that wait cost no threads", { skip: process.platform !== "linux" }, async () => {
    const down = await redis();
    const counter = await Counter.open("waits", { store: down.address, step: 10, maxWaitMs: 60_000 });
    const threads = () => readdirSync("/proc/self/task").length;
    process.kill(down.pid(), "SIGSTOP");
    const before = threads();
    const waiting = Array.from({ length: 300 }, () => [
      counter.nextIdsAsync(20),
      counter.nextBlock(20),
      counter.peek(),
      counter.raise(5),
    ]).flat();
    await pause(100);
    assert.ok(threads() <= before + 2, `${before} threads, and then ${threads()}`);
    process.kill(down.pid(), "SIGCONT");
    await Promise.all(waiting);
    await counter.close();
  });

  test("batches that wait together are not too many for an array", async () => {
    const counter = await Counter.open("many", { store, step: 1_000_000 });
    const batches = Array.from({ length: 257 }, () => counter.nextIdsAsync(2 ** 24));
    const settled = Promise.allSettled(batches);
    // All the other batches were queued behind the second.
    for (const batch of batches.slice(0, 2)) assert.equal((await batch).length, 2 ** 24);
    await counter.close();
    for (const { value, reason } of await settled) {
      if (value === undefined) assert.equal(reason.code, "CLOSED");
      else assert.equal(value.length, 2 ** 24);
    }
  });

  test("worker threads share a counter, and nothing is given twice", async () => {
    const counter = await Counter.open("workers", { store });
    const inside = `
      const { parentPort } = require("node:worker_threads");
      const { Counter } = require("polyflake");
      (async () => {
        const counter = await Counter.open("workers", { store: ${JSON.stringify(store)} });
        const numbers = [];
        for (let round = 0; round < 100; round += 1) {
          numbers.push(await counter.nextIdAsync(), ...(await counter.nextIdsAsync(50)));
        }
        parentPort.postMessage({ numbers, segments: counter.stats.segments });
      })();
    `;
    const workers = [1, 2, 3].map(() => new Worker(inside, { eval: true }));
    const said = await Promise.all(workers.map(async (worker) => (await once(worker, "message"))[0]));
    for (const { numbers } of said) assertRising(numbers);
    const all = said.flatMap(({ numbers }) => numbers);
    assert.equal(new Set(all).size, 3 * 5100);
    // This thread's Counter shares the segments that they all come from, so it continues above them.
    const last = all.sort((a, b) => Number(a - b)).at(-1);
    assert.equal(await counter.nextIdAsync(), last + 1n);
    assert.ok(said.every(({ segments }) => segments > 1 && segments <= counter.stats.segments));
    await Promise.all(workers.map((worker) => worker.terminate()));
    await counter.close();
  });

  test("a worker thread may end while it waits", async () => {
    const inside = `
      require("polyflake").Counter.open("never", { store: "redis://127.0.0.1:1/0", maxWaitMs: 600_000 });
      require("node:worker_threads").parentPort.postMessage("opening");
    `;
    const worker = new Worker(inside, { eval: true });
    await once(worker, "message");
    await worker.terminate();
  });

  test("processes have numbers of their own, and close leaves no gap", async () => {
    const program = (name, end) => `
      import { Counter } from "polyflake";
      const counter = await Counter.open("${name}", { store: ${JSON.stringify(store)} });
      const numbers = counter.nextIds(20);
      ${end}
      console.log(JSON.stringify(Array.from(numbers, String)));
    `;
    const four = await Promise.all([1, 2, 3, 4].map(() => run(program("processes", ""))));
    assert.equal(new Set(four.flat()).size, 80);
    const all = [];
    for (let turn = 0; turn < 3; turn += 1)
      all.push(...(await run(program("closing", "await counter.close();"))));
    assert.deepEqual(all, range(1, 60));
  });

  for (const [what, code] of [
    ["at its end", ""],
    ["at process.exit", "process.exit();"],
    ["after using", "counter[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();"],
    ["while it waits", "counter.nextIdAsync(); process.exit();"],
  ]) {
    test(`a process ends at once: ${what}`, async () => {
      const server = await redis();
      const program = `
        import { Counter } from "polyflake";
        const counter = await Counter.open("ends", { store: "${server.address}", step: 1, maxWaitMs: 600_000 });
        process.kill(${server.pid()}, "SIGKILL");
        console.log(JSON.stringify("open"));
        ${code}
      `;
      assert.equal(await run(program), "open");
    });
  }
});

describe("a store that goes and comes back", { skip: isWasm && "wasm has no counters" }, () => {
  test("what is in hand is given, then calls reject in time, and then it goes on by itself", async () => {
    const { address, stop, start } = await redis();
    const messages = [];
    const listen = (message) => messages.push(message);
    subscribe("polyflake:lease", listen);
    const patient = await Counter.open("gone", { store: address, step: 100, maxWaitMs: 600_000 });
    assert.equal(await patient.nextIdAsync(), 1n);
    // Opens at once, because the other one is open.
    const counter = await Counter.open("gone", { store: address, step: 100, maxWaitMs: 300 });
    await stop();
    const given = [];
    let error;
    while (error === undefined) {
      try {
        given.push(counter.nextId());
      } catch (thrown) {
        error = thrown;
      }
    }
    assert.equal(error.code, "COUNTER_UNAVAILABLE");
    assert.deepEqual(texts(given), range(2, given.length + 1));
    assert.ok(given.length >= 99, `${given.length}`);
    await doesNotBlock(async () => {
      const later = await Promise.allSettled([
        counter.nextIdAsync(),
        counter.nextIdsAsync(5),
        counter.peek(),
        counter.nextBlock(3),
      ]);
      for (const { reason } of later) {
        await failsLater(Promise.reject(reason), "COUNTER_UNAVAILABLE", "redis://");
        assert.ok(!inspect(reason).includes("hush"), reason.message);
      }
    });
    await start();
    let next;
    while (next === undefined) next = await counter.nextIdAsync().catch(() => undefined);
    assert.ok(next > given.at(-1), `${next}`);
    while (!messages.some(({ kind }) => kind === "store_reachable")) await pause(5);
    unsubscribe("polyflake:lease", listen);
    const about = messages.filter(({ message }) => message.includes("gone"));
    assert.ok(about.length >= 2, inspect(messages));
    for (const { kind, node, store: told, isWarning } of about) {
      assert.deepEqual([node, isWarning], [null, kind !== "store_reachable"]);
      assert.ok(told.startsWith("redis://") && !told.includes("hush"), told);
    }
    await Promise.all([counter.close(), patient.close()]);
  });

  test("close while calls wait: they reject with CLOSED", async () => {
    const { address, stop } = await redis();
    const counter = await Counter.open("waiting", { store: address, step: 1, maxWaitMs: 600_000 });
    await stop();
    const waiting = [counter.nextIdAsync(), counter.nextIdsAsync(3), counter.peek()].map((call) =>
      failsLater(call, "CLOSED"),
    );
    await counter.close();
    await Promise.all(waiting);
  });

  test("a store that has lost the counter is a writes_lost, and no number is given twice", async () => {
    const { address, cli } = await redis();
    const messages = [];
    const listen = (message) => messages.push(message);
    subscribe("polyflake:lease", listen);
    const counter = await Counter.open("lost", { store: address, step: 10, maxWaitMs: 60_000 });
    assert.equal(counter.nextId(), 1n);
    cli("FLUSHALL");
    while (!messages.some(({ kind }) => kind === "writes_lost")) await pause(5);
    unsubscribe("polyflake:lease", listen);
    const lost = messages.find(({ kind }) => kind === "writes_lost");
    assert.deepEqual([lost.node, lost.isWarning], [null, true]);
    // The counter continues above every number that it has issued.
    const numbers = [1n];
    while (numbers.length < 100) numbers.push(await counter.nextIdAsync());
    assertRising(numbers);
    await counter.close();
  });

  test("two stores give numbers in turn, and no blocks", async () => {
    const [one, two] = await Promise.all([redis(), redis()]);
    const stores = [one.address, two.address];
    const counter = await Counter.open("several", { store: stores, step: 10, maxWaitMs: 60_000 });
    const numbers = await counter.nextIdsAsync(40);
    assert.equal(new Set(numbers).size, 40);
    await failsLater(counter.nextBlock(2), "INVALID_OPTION", "several stores");
    await one.stop();
    const after = await counter.nextIdsAsync(100);
    assert.equal(new Set([...numbers, ...after]).size, 140);
    await failsLater(Counter.open("several", { store: two.address }), "INVALID_OPTION");
    await counter.close();
  });
});

test("a Snowflake and a generator of one's own are used as a Counter is", async () => {
  const fixed = { nextId: () => 42n, nextIdAsync: async () => 42n };
  const insert = async (ids) => [ids.nextId(), await ids.nextIdAsync()];
  assert.deepEqual(await insert(fixed), [42n, 42n]);
  const [first, second] = await insert(new Snowflake({ node: 912 }));
  assert.ok(second > first);
});
