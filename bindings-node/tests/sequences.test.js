// Sequences. The protocol and the stores are tested in the crate `coordination`.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { inspect, promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { Sequences } from "polyflake";
import { redis } from "./redis.js";
import { assertRising, doesNotBlock, fails, failsLater, isWasm } from "./support.js";

const dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");
const asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

const folder = mkdtempSync(join(tmpdir(), "polyflake-sequences-"));
after(() => rmSync(folder, { recursive: true }));

let stores = 0;
/** The address of a new SQLite file. */
function freshStore() {
  stores += 1;
  return `sqlite://${join(folder, `${stores}.db`)}`;
}

const NOT_KEYS = [
  undefined,
  null,
  true,
  1.5,
  2 ** 53,
  Number.NaN,
  {},
  [],
  Symbol("key"),
  new Date(),
  () => 1,
];

test("other types are a TypeError", async () => {
  const store = freshStore();
  for (const [name, options] of [
    [undefined, { store }],
    [7, { store }],
    ["inbox", undefined],
    ["inbox", null],
    ["inbox", store],
    ["inbox", { store: 7 }],
    ["inbox", { store: [store] }],
    ["inbox", { store, sections: 1.5 }],
    ["inbox", { store, step: true }],
    ["inbox", { store, maxKeys: {} }],
    ["inbox", { store, maxWaitMs: null }],
  ]) {
    await assert.rejects(Sequences.open(name, options), TypeError, inspect([name, options]));
  }
  assert.throws(() => new Sequences("inbox", { store }), {
    name: "TypeError",
    message: /await Sequences.open/,
  });
});

test("the WebAssembly build refuses", { skip: !isWasm }, async () => {
  const opening = Sequences.open("inbox", { store: freshStore() });
  const error = await failsLater(opening, "INVALID_OPTION", "WebAssembly does not have");
  assert.equal(error.number, 4);
});

const texts = (numbers) => Array.from(numbers, String);
const range = (first, last) => Array.from({ length: last - first + 1 }, (_, at) => String(first + at));

/** The arguments that make Node run an ES module. */
const otherProcess = (program) => ["--input-type=module", "--eval", program];

/** Runs an ES module, and returns what it logs as JSON. It is killed if it hangs. */
async function run(program) {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, otherProcess(program), {
    cwd: import.meta.dirname,
    timeout: 120_000,
  });
  assert.equal(stderr, "");
  return stdout === "" ? undefined : JSON.parse(stdout);
}

/**
 * Starts an ES module, and waits for its first line. It exits when its standard input, which this process holds, is
 * closed.
 */
async function starts(program) {
  const child = spawn(process.execPath, otherProcess(program), {
    cwd: import.meta.dirname,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [line] = await once(child.stdout, "data");
  return {
    line: String(line).trim(),
    async kill() {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}

describe("sequences in SQLite", { skip: isWasm && "wasm has no sequences" }, () => {
  test("each key counts for itself, in every way there is", async () => {
    const inbox = await Sequences.open("ways", { store: freshStore() });
    assert.equal(inbox.name, "ways");
    assert.equal(inspect(inbox), 'Sequences { name: "ways" }');
    const alice = [
      inbox.nextId("alice"),
      inbox.tryNextId("alice"),
      await inbox.nextIdAsync("alice"),
      ...inbox.nextIds(["alice", "alice"]),
      ...(await inbox.nextIdsAsync(["alice"])),
    ];
    assert.equal(typeof alice[0], "bigint");
    assert.deepEqual(texts(alice), range(1, 6));
    assert.deepEqual([inbox.nextId("bob"), inbox.nextId("bob"), inbox.nextId("bob")], [1n, 2n, 3n]);
    assert.deepEqual(
      [inbox.nextId(""), inbox.nextId("ключ 🔑"), inbox.nextId("x".repeat(10_000))],
      [1n, 1n, 1n],
    );
    assert.equal(inbox.nextId("x".repeat(10_000)), 2n);
    await inbox.close();
  });

  test("5, 5n and '5'; the integers of 64 bits", async () => {
    const inbox = await Sequences.open("keys", { store: freshStore() });
    assert.deepEqual([inbox.nextId(5), inbox.nextId(5n), inbox.nextId("5")], [1n, 2n, 1n]);
    assert.deepEqual([inbox.nextId(0), inbox.nextId(-0), inbox.nextId(0n)], [1n, 2n, 3n]);
    const { MAX_SAFE_INTEGER: safe } = Number;
    const keys = [-1, -1n, safe, BigInt(safe), -safe, 2n ** 53n, -(2n ** 63n), 2n ** 63n, 2n ** 64n - 1n];
    assert.deepEqual(texts(inbox.nextIds(keys)), ["1", "2", "1", "2", "1", "1", "1", "1", "1"]);
    assert.deepEqual(texts(await inbox.nextIdsAsync(keys)), ["3", "4", "3", "4", "2", "2", "2", "2", "2"]);
    assert.deepEqual([inbox.nextId(2n ** 64n - 1n), await inbox.nextIdAsync(-(2n ** 63n))], [3n, 3n]);
    await inbox.close();
  });

  test("keys that cannot be", async () => {
    const inbox = await Sequences.open("no keys", { store: freshStore() });
    for (const key of [...NOT_KEYS, "lone \ud800"]) {
      const what = typeof key;
      assert.throws(() => inbox.nextId(key), TypeError, what);
      assert.throws(() => inbox.tryNextId(key), TypeError, what);
      assert.throws(() => inbox.nextIds(["alice", key]), TypeError, what);
      await assert.rejects(inbox.nextIdAsync(key), TypeError, what);
      await assert.rejects(inbox.nextIdsAsync(["alice", key]), TypeError, what);
    }
    for (const keys of [undefined, null, 7, "alice", { length: 1, 0: "alice" }]) {
      assert.throws(() => inbox.nextIds(keys), TypeError);
      await assert.rejects(inbox.nextIdsAsync(keys), TypeError);
    }
    for (const key of [2n ** 64n, -(2n ** 63n) - 1n, 2n ** 80n, -(2n ** 130n)]) {
      const says = [
        `key is ${String(key).slice(0, 20)}`,
        "from -9223372036854775808 to 18446744073709551615",
      ];
      const error = fails(() => inbox.nextId(key), "INVALID_OPTION", ...says);
      assert.equal(error.number, 4);
      fails(() => inbox.nextIds(["alice", key]), "INVALID_OPTION", ...says);
      await failsLater(inbox.nextIdAsync(key), "INVALID_OPTION", ...says);
      const together = [
        inbox.nextIdsAsync(["bob"]),
        inbox.nextIdsAsync(["alice", key]),
        inbox.nextIdsAsync(["bob"]),
      ];
      await failsLater(together[1], "INVALID_OPTION", ...says);
      assert.equal((await together[2])[0], (await together[0])[0] + 1n);
    }
    // None of these took a number.
    assert.equal(inbox.nextId("alice"), 1n);
    await inbox.close();
  });

  test("a batch has a number for each key, in their order", async () => {
    const inbox = await Sequences.open("batches", { store: freshStore() });
    assert.deepEqual(texts(inbox.nextIds(["a", "b", "a", 7, "a", 7])), ["1", "1", "2", "1", "3", "2"]);
    assert.ok(inbox.nextIds(new Set(["a"])) instanceof BigUint64Array);
    assert.deepEqual(texts(inbox.nextIds([])), []);
    assert.deepEqual(texts(await inbox.nextIdsAsync([])), []);
    assert.deepEqual(texts(inbox.nextIds(BigUint64Array.of(7n, 2n ** 63n))), ["3", "1"]);
    const keys = Array.from({ length: 20_000 }, (_, at) => (at % 2 ? `key ${at % 5000}` : at % 5000));
    const [first, second] = [inbox.nextIds(keys), await inbox.nextIdsAsync(keys.values())];
    assert.deepEqual(texts(first.slice(10_000, 10_004)), ["3", "3", "3", "3"]);
    assert.deepEqual(texts(second.slice(15_000, 15_003)), ["8", "8", "8"]);
    await inbox.close();
  });

  test("those that were closed go on where they were when they are opened again", async () => {
    const store = freshStore();
    const first = await Sequences.open("again", { store });
    assert.deepEqual(texts(first.nextIds(["a", "a", "a"])), range(1, 3));
    const closing = first.close();
    fails(() => first.nextId("a"), "CLOSED");
    await Promise.all([closing, first.close(), first[asyncDispose]()]);
    for (const call of [() => first.tryNextId("a"), () => first.nextIds(["a"]), () => first.stats])
      fails(call, "CLOSED");
    for (const call of [() => first.nextIdAsync("a"), () => first.nextIdsAsync(["a"])])
      await failsLater(call(), "CLOSED");
    assert.equal(first.name, "again");
    const second = await Sequences.open("again", { store });
    assert.equal(second.nextId("a"), 4n);
    assert.equal(second[dispose](), undefined);
    fails(() => second.nextId("a"), "CLOSED");
    await second.close();
  });

  test("two of a name share their keys, and close separately", async () => {
    const store = freshStore();
    const [one, two] = await Promise.all([1, 2].map(() => Sequences.open("two", { store })));
    assert.deepEqual([one.nextId("a"), two.nextId("a"), one.nextId("a"), two.nextId("b")], [1n, 2n, 3n, 1n]);
    await one.close();
    assert.equal(two.nextId("a"), 4n);
    const other = await Sequences.open("another", { store });
    assert.equal(other.nextId("a"), 1n);
    await Promise.all([two.close(), other.close()]);
  });

  test("calls that come to a bound wait together, and nothing blocks", async () => {
    const inbox = await Sequences.open("bounds", { store: freshStore(), sections: 1, step: 1 });
    let last = 0;
    await doesNotBlock(async () => {
      const numbers = await Promise.all(
        Array.from({ length: 200 }, (_, n) => inbox.nextIdsAsync(n % 2 ? ["a"] : ["a", "a"])),
      );
      const all = numbers.flatMap((given) => [...given]);
      assert.deepEqual(texts(all.sort((a, b) => Number(a - b))), range(last + 1, last + 300));
      last += 300;
    });
    const few = await Promise.all(Array.from({ length: 50 }, () => inbox.nextIdAsync("a")));
    assert.deepEqual(texts(few.sort((a, b) => Number(a - b))), range(last + 1, last + 50));
    let error;
    for (let round = 0; round < 10_000 && error === undefined; round += 1) {
      try {
        inbox.nextId("a");
        inbox.nextIds(["a", "b", "a"]);
      } catch (thrown) {
        error = thrown;
      }
    }
    await failsLater(Promise.reject(error), "COUNTER_UNAVAILABLE", "bounds", "bound");
    assert.equal(error.number, 15);
    assert.ok((await inbox.nextIdAsync("a")) > last + 50);
    assert.ok(inbox.stats.waits > 0 && inbox.stats.moves > 100, inspect(inbox.stats));
    await inbox.close();
  });

  test("keys that leave memory go on above their numbers; stats", async () => {
    const inbox = await Sequences.open("stats", { store: freshStore(), sections: 2, maxKeys: "8" });
    assert.equal(inbox.nextId("first"), 1n);
    assert.equal(inbox.nextId("first"), 2n);
    for (let key = 0; key < 100; key += 1) inbox.nextId(key);
    assert.ok(inbox.nextId("first") > 2n);
    const { stats } = inbox;
    assert.ok(Object.isFrozen(stats));
    assert.deepEqual(Object.keys(stats).sort(), ["evicted", "keys", "moves", "timeLeftMs", "waits"]);
    assert.deepEqual(
      Object.values(stats).map((value) => typeof value),
      Array(5).fill("number"),
    );
    assert.ok(stats.keys <= 8 && stats.evicted >= 92 && stats.moves >= 1, inspect(stats));
    assert.ok(stats.timeLeftMs > 0 && stats.timeLeftMs <= 30_000, inspect(stats));
    await inbox.close();
  });

  test("options that cannot be", async () => {
    const store = freshStore();
    for (const [options, ...says] of [
      [{}, "store is missing"],
      [{ store: undefined }, "store is missing"],
      [{ store: "memcached://:hush@host" }, "store"],
      [{ store, sections: 0 }, "sections is 0"],
      [{ store, sections: 16_385n }, "sections is 16385"],
      [{ store, step: 0 }, "step is 0"],
      [{ store, step: 2n ** 40n }, "step is 1099511627776"],
      [{ store, maxKeys: 0 }, "maxKeys is 0"],
      [{ store, maxWaitMs: -1 }, "maxWaitMs is -1"],
      [{ store, max_wait_ms: 1 }, "max_wait_ms", "sections, step, maxKeys and maxWaitMs"],
      [{ store, start: 5 }, "start"],
    ]) {
      const error = await failsLater(Sequences.open("cannot be", options), "INVALID_OPTION", ...says);
      assert.ok(!error.message.includes("hush"), error.message);
    }
    for (const name of ["", "x".repeat(1000), "a\nb"]) {
      await failsLater(Sequences.open(name, { store }), "INVALID_OPTION", "name");
    }
    const inbox = await Sequences.open("used", { store, step: undefined, sections: 16 });
    await failsLater(
      Sequences.open("used", { store, sections: 17 }),
      "INVALID_OPTION",
      "sections=16",
      "sections=17",
    );
    await inbox.close();
    await failsLater(Sequences.open("used", { store, sections: 17 }), "INVALID_OPTION", "16");
  });

  test("a store that does not answer: no secret is told, and nothing blocks", async () => {
    await doesNotBlock(async () => {
      const opening = Sequences.open("nobody", { store: "redis://:hush@127.0.0.1:1/0?wait=300ms" });
      const error = await failsLater(opening, "LEASE_UNAVAILABLE", "redis://");
      assert.ok(!inspect(error).includes("hush"), error.message);
    });
  });

  test("one process at a time: another is told the first one's label", async () => {
    const store = freshStore();
    const program = `
      import { Sequences } from "polyflake";
      const store = ${JSON.stringify(`${store}?ttl=9s&wait=1s&label=first`)};
      const inbox = await Sequences.open("inbox", { store });
      console.log(String(await inbox.nextIdAsync("alice")));
      process.stdin.resume();
    `;
    const first = await starts(program);
    const messages = [];
    const listen = (message) => messages.push(message);
    subscribe("polyflake:lease", listen);
    try {
      assert.equal(first.line, "1");
      await doesNotBlock(async () => {
        const opening = Sequences.open("inbox", { store: `${store}?ttl=9s&wait=1s&label=second` });
        const refused = await failsLater(opening, "LEASE_UNAVAILABLE", "`first`");
        assert.equal(refused.number, 12);
      });
    } finally {
      await first.kill();
    }
    // The first process's lease expires.
    const second = await Sequences.open("inbox", { store: `${store}?ttl=9s&wait=1m&label=second` });
    assert.ok((await second.nextIdAsync("alice")) > 1n);
    while (!messages.some(({ kind }) => kind === "acquired")) await pause(5);
    unsubscribe("polyflake:lease", listen);
    const { node, isWarning, message } = messages.find(({ kind }) => kind === "acquired");
    assert.deepEqual([node, isWarning], [null, false]);
    assert.ok(message.includes("inbox"), message);
    await second.close();
  });

  test("worker threads share the keys, and nothing is given twice", async () => {
    const store = freshStore();
    const inbox = await Sequences.open("workers", { store });
    const inside = `
      const { parentPort } = require("node:worker_threads");
      const { Sequences } = require("polyflake");
      (async () => {
        const inbox = await Sequences.open("workers", { store: ${JSON.stringify(store)} });
        const numbers = { a: [], b: [] };
        for (let round = 0; round < 100; round += 1) {
          for (const key of ["a", "b"]) numbers[key].push(await inbox.nextIdAsync(key));
          const [a, b] = await inbox.nextIdsAsync(["a", "b"]);
          numbers.a.push(a);
          numbers.b.push(b);
        }
        parentPort.postMessage(numbers);
      })();
    `;
    const workers = [1, 2, 3].map(() => new Worker(inside, { eval: true }));
    const said = await Promise.all(workers.map(async (worker) => (await once(worker, "message"))[0]));
    for (const key of ["a", "b"]) {
      for (const numbers of said) assertRising(numbers[key]);
      const all = said.flatMap((numbers) => numbers[key]).sort((a, b) => Number(a - b));
      assert.deepEqual(texts(all), range(1, 600));
      assert.equal(inbox.nextId(key), 601n);
    }
    await Promise.all(workers.map((worker) => worker.terminate()));
    await inbox.close();
  });

  test("a worker thread may end while it waits", async () => {
    const inside = `
      require("polyflake").Sequences.open("never", { store: "redis://127.0.0.1:1/0?wait=10m" });
      require("node:worker_threads").parentPort.postMessage("opening");
    `;
    const worker = new Worker(inside, { eval: true });
    await once(worker, "message");
    await worker.terminate();
  });

  for (const [what, code] of [
    ["at its end", ""],
    ["at process.exit", "process.exit();"],
    ["after using", "inbox[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();"],
    ["while it waits", "inbox.nextIdsAsync(Array(100_000).fill('a')); process.exit();"],
  ]) {
    test(`a process ends at once: ${what}`, async () => {
      const program = `
        import { Sequences } from "polyflake";
        const inbox = await Sequences.open("ends", { store: "${freshStore()}", sections: 1, step: 1 });
        console.log(JSON.stringify("open"));
        ${code}
      `;
      assert.equal(await run(program), "open");
    });
  }
});

describe("a store that goes and comes back", { skip: isWasm && "wasm has no sequences" }, () => {
  test("numbers are given while the lease holds, then calls reject, and then it goes on by itself", async () => {
    const { address, stop, start } = await redis();
    const store = `${address}?ttl=3s&wait=2m&init=always`;
    const inbox = await Sequences.open("gone", { store, maxWaitMs: 300 });
    const patient = await Sequences.open("gone", { store, maxWaitMs: 600_000 });
    const long = await Sequences.open("gone", { store: `${address}?ttl=10m&namespace=long&init=always` });
    const given = [await patient.nextIdAsync("a")];
    await stop();
    assert.deepEqual(texts(long.nextIds(["a", "a", "b"])), ["1", "2", "1"]);
    let error;
    while (error === undefined) {
      await inbox.nextIdAsync("a").then(
        (number) => given.push(number),
        (reason) => {
          error = reason;
        },
      );
      // This pause keeps the numbers few enough that the store is not asked to move the bound.
      await pause(10);
    }
    await failsLater(Promise.reject(error), "LEASE_LOST", "gone");
    assertRising(given);
    fails(() => inbox.nextId("a"), "LEASE_LOST");
    fails(() => inbox.nextIds(["a", "b"]), "LEASE_LOST");
    assert.equal(inbox.stats.timeLeftMs, 0);
    await doesNotBlock(async () => {
      const late = await failsLater(inbox.nextIdsAsync(["a", "b"]), "LEASE_LOST");
      assert.ok(!inspect(late).includes("hush"), late.message);
    });
    const waiting = patient.nextIdsAsync(["a"]);
    await start();
    assert.ok((await waiting)[0] > given.at(-1));
    await Promise.all([inbox.close(), patient.close(), long.close()]);
  });

  test("close while calls wait: they reject with CLOSED", async () => {
    const { address, stop } = await redis();
    const store = `${address}?ttl=3s&wait=2m&init=always`;
    const inbox = await Sequences.open("waiting", { store, sections: 1, step: 1, maxWaitMs: 600_000 });
    await stop();
    const waiting = [inbox.nextIdsAsync(["a", "a", "a", "a"]), inbox.nextIdsAsync(["a"])].map((call) =>
      failsLater(call, "CLOSED"),
    );
    await inbox.close();
    await Promise.all(waiting);
  });
});
