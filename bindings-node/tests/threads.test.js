// The worker threads of a process share one native cursor. (backend.test.js covers wasm.)
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { Layout, Snowflake } from "polyflake";
import { assertRising, fails, freshNode, isWasm } from "./support.js";

const FILE = new URL("threads.worker.js", import.meta.url);

/** A worker thread that runs a task, with room for `room` IDs. */
function thread(task, options, room) {
  const ids = new BigUint64Array(new SharedArrayBuffer(8 * room));
  const count = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(FILE, { workerData: { options, ids, count, task } });
  const done = new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
  return { worker, done, issued: () => ids.subarray(0, Atomics.load(count, 0)) };
}

async function until(condition) {
  while (!condition()) await turn();
}

/** Checks that no ID repeats, each thread's IDs increase, and no tick exceeds its capacity. */
function assertUnique(issued, layout = new Layout("twitter")) {
  for (const ids of issued) assertRising(ids);
  const all = new BigUint64Array(issued.reduce((sum, ids) => sum + ids.length, 0));
  let at = 0;
  for (const ids of issued) {
    all.set(ids, at);
    at += ids.length;
  }
  all.sort();
  assertRising(all);
  const shift = BigInt(layout.timestampShift);
  for (let n = layout.idsPerTick; n < all.length; n += 1) {
    if (all[n] >> shift === all[n - layout.idsPerTick] >> shift)
      assert.fail(`a tick with too many IDs: ${all[n]}`);
  }
}

// A ten-hour tick that has just begun, and that a new cursor treats as used up.
const TEN_HOURS = `timestamp:30|worker:10|sequence:1@${Math.floor(Date.now() / 1000) * 1000}/36000s`;

describe("worker threads", { skip: isWasm && "wasm does not share cursors between threads" }, () => {
  test("two threads and 400,000 IDs on one node", async () => {
    const node = freshNode();
    const threads = [1, 2].map(() => thread("mixed", { node }, 200_000));
    await Promise.all(threads.map(({ done }) => done));
    const issued = threads.map((each) => each.issued());
    assert.deepEqual(
      issued.map((ids) => ids.length),
      [200_000, 200_000],
    );
    assertUnique(issued);
  });

  test("layouts with the same bits, on threads and on the main thread", async () => {
    const node = freshNode();
    const threads = ["twitter", "leaf"].map((layout) => thread("mixed", { layout, node }, 50_000));
    const ids = new Snowflake({ node, maxWaitMs: 60_000 });
    const here = [];
    let running = true;
    const end = () => {
      running = false;
    };
    const all = Promise.all(threads.map(({ done }) => done)).then(end, end);
    while (running) {
      here.push(ids.nextId(), ...ids.nextIds(10), ...(await ids.nextIdsAsync(5)));
      await turn();
    }
    await all;
    assert.ok(here.length > 0);
    assertUnique([here, ...threads.map((each) => each.issued())]);
  });

  test("a thread terminated midway leaves the cursor intact", async () => {
    const node = freshNode();
    const first = thread("endless", { node }, 400_000);
    await until(() => first.issued().length > 10_000);
    await first.worker.terminate();
    const ids = new Snowflake({ node, maxWaitMs: 60_000 });
    const second = thread("mixed", { node }, 50_000);
    const here = ids.nextIds(50_000);
    await second.done;
    const before = first.issued().slice();
    assert.ok(here[0] > before.at(-1));
    assertUnique([before, here, second.issued()]);
  });

  test("threads that come and go", async () => {
    const node = freshNode();
    const issued = [];
    for (let n = 0; n < 5; n += 1) {
      const each = thread("mixed", { node }, 500);
      await each.done;
      await each.worker.terminate();
      issued.push(...each.issued());
    }
    assertRising(issued);
    assert.ok(new Snowflake({ node }).nextId() > issued.at(-1));
  });

  test("different bounds fail across threads", async () => {
    const node = freshNode();
    new Snowflake({ node });
    const { done } = thread("mixed", { node, maxAheadMs: 5 }, 10);
    await assert.rejects(done, {
      message: /maxAheadMs is 5.* maxAheadMs 0/,
    });
    fails(() => new Snowflake({ node, maxAheadMs: 5 }), "INVALID_OPTION");
  });

  test("beside a thread that asks for more than there is, 20,000 asynchronous calls get IDs in their order", async () => {
    const options = { layout: "sonyflake", node: freshNode() };
    const greedy = thread("greedy", options, 1);
    await until(() => greedy.issued().length > 0);
    const ids = new Snowflake(options);
    const issued = [];
    const calls = Array.from({ length: 20_000 }, () => ids.nextIdAsync().then((id) => issued.push(id)));
    calls.push(ids.nextIdsAsync(5_000));
    const failed = (await Promise.allSettled(calls)).filter(({ status }) => status === "rejected");
    await greedy.worker.terminate();
    assert.deepEqual(failed, []);
    assertRising(issued);
  });

  test("batches that wait leave the pool's threads to others", async () => {
    const batches = Array.from({ length: 10 }, () =>
      new Snowflake({ layout: TEN_HOURS, node: 9, maxWaitMs: 20_000 }).nextIdsAsync(10),
    );
    const ids = new Snowflake({ layout: TEN_HOURS, node: 9, maxWaitMs: 20_000 });
    for (let n = 0; n < 10; n += 1) batches.push(ids.nextIdsAsync(10_000));
    let ended = 0;
    for (const batch of batches) batch.catch(() => {}).finally(() => (ended += 1));
    await readFile(FILE);
    assert.equal(ended, 0);
    ids.close();
    const outcomes = await Promise.allSettled(batches.slice(10));
    for (const { reason } of outcomes) assert.equal(reason?.code, "CLOSED");
  });

  test("a short batch does not wait for the end of a long one", async () => {
    const ids = new Snowflake({ node: freshNode(), maxWaitMs: 60_000 });
    const ended = [];
    const batches = [4_000_000, 10_000, 8].map((n) =>
      ids.nextIdsAsync(n).then((got) => {
        ended.push(n);
        return got;
      }),
    );
    const issued = await Promise.all(batches);
    assert.deepEqual(
      issued.map((got) => got.length),
      [4_000_000, 10_000, 8],
    );
    assertUnique(issued);
    assert.equal(ended.at(-1), 4_000_000);
  });

  for (const task of ["waiting", "waitingAsync", "waitingAsyncOnPool"]) {
    test(`a thread may be terminated while it waits (${task})`, async () => {
      const waiting = thread(task, { layout: TEN_HOURS, node: freshNode(), maxWaitMs: 300 }, 1);
      // On a busy machine the wait may time out first.
      waiting.done.catch(() => {});
      await until(() => waiting.issued().length > 0);
      for (let n = 0; n < 1000; n += 1) await turn();
      await waiting.worker.terminate();
      assert.ok(new Snowflake({ node: freshNode() }).nextId() > 0n);
    });
  }

  for (const n of [5, 5000])
    test(`a process may end while a batch of ${n} waits`, () => {
      const code = `
      import { Snowflake } from "polyflake";
      const ids = new Snowflake({ layout: "${TEN_HOURS}", node: 1, maxWaitMs: 300 });
      ids.nextIdsAsync(${n}).catch(() => {}); // on a busy machine the wait may end first
      setImmediate(() => process.exit(7));
    `;
      const { status, signal, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
        cwd: import.meta.dirname,
        encoding: "utf8",
      });
      assert.deepEqual({ status, signal, stderr }, { status: 7, signal: null, stderr: "" });
    });
});
