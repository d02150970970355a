// Leased nodes. The protocol and the stores are tested in the crate `coordination`.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { Snowflake } from "polyflake";
import { redis } from "./redis.js";
import { assertRising, doesNotBlock, fails, failsLater, isWasm } from "./support.js";

const asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
const folder = mkdtempSync(join(tmpdir(), "polyflake-lease-"));
after(() => rmSync(folder, { recursive: true }));

/** The address of a separate file for each test, because a new namespace in an existing file would wait for a TTL. */
const sqlite = (name, parameters = "") => `sqlite://${join(folder, name)}.db?${parameters}`;

test("a type other than a string is a TypeError", async () => {
  assert.throws(() => new Snowflake({ lease: 7 }), TypeError);
  await assert.rejects(Snowflake.open({ lease: 7 }), TypeError);
  await assert.rejects(Snowflake.open(), TypeError);
});

test("without a lease, open is as new", async () => {
  const ids = await Snowflake.open({ node: 911 });
  assert.ok(ids instanceof Snowflake && ids.nextId() > 0n);
  assert.deepEqual([ids.node, ids.lease, ids.stats.leaseLosses], [911, undefined, 0]);
  await ids[asyncDispose]();
  await ids[asyncDispose]();
  fails(() => ids.nextId(), "CLOSED");
  await failsLater(Snowflake.open({ node: 1024 }), "INVALID_NODE");
});

test("a lease that is undefined, such as a variable that is not set, is named", async () => {
  const lease = process.env.POLYFLAKE_NO_SUCH_VARIABLE;
  await assert.rejects(Snowflake.open({ lease }), {
    name: "TypeError",
    message: "lease is undefined; it takes the address of a store, such as redis://host/0",
  });
  // As for any option, undefined means unset: other errors are unaffected, and a node is enough.
  await failsLater(Snowflake.open({}), "INVALID_NODE", "node is missing");
  await failsLater(Snowflake.open({ lease, node: 1024 }), "INVALID_NODE", "1024");
  await failsLater(Snowflake.open({ lease, layout: "twiter" }), "UNKNOWN_LAYOUT");
  assert.equal((await Snowflake.open({ lease, node: 912 })).node, 912);
  const layout = "timestamp:41|sequence:12@0/1ms";
  assert.ok((await Snowflake.open({ lease, layout })).nextId() > 0n);
});

test("the WebAssembly build refuses", { skip: !isWasm }, async () => {
  fails(() => new Snowflake({ lease: sqlite("any") }), "INVALID_OPTION", "WebAssembly does not have");
  await failsLater(Snowflake.open({ lease: sqlite("any") }), "INVALID_OPTION", "WebAssembly does not have");
});

/** Runs an ES module, and returns what it logs as JSON. It is killed if it hangs. */
async function run(program, options = {}) {
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: import.meta.dirname,
    timeout: 120_000,
    ...options,
  });
  return stdout === "" ? undefined : JSON.parse(stdout);
}

/** Runs an ES module, and returns what it writes to standard error. */
async function warned(program) {
  const { stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: import.meta.dirname,
    timeout: 120_000,
  });
  return stderr;
}

/** A program that leases a node, logs it, and exits without closing. */
const leasing = (address) => `
  import { Snowflake } from "polyflake";
  const ids = await Snowflake.open({ lease: ${JSON.stringify(address)} });
  console.log(JSON.stringify({ node: ids.node, id: String(ids.nextId()) }));
`;

const children = [];
after(() => {
  for (const child of children) child.kill("SIGKILL");
});

/** Starts another process, which holds a lease from this address until it is killed. */
async function holder(address) {
  const program = `${leasing(address)} setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: import.meta.dirname,
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [line] = await once(child.stdout, "data");
  return { child, ...JSON.parse(line) };
}

/**
 * Returns the messages published on the channel while `call` runs, and after it until one of the given `kind` arrives.
 */
async function told(kind, call) {
  const messages = [];
  const listen = (message) => messages.push(message);
  subscribe("polyflake:lease", listen);
  try {
    await call();
    while (!messages.some((message) => message.kind === kind)) await pause(5);
  } finally {
    unsubscribe("polyflake:lease", listen);
  }
  return messages;
}

describe("leases in SQLite", { skip: isWasm && "wasm has no leases" }, () => {
  test("new does not wait for a store, and says what does", () => {
    const lease = sqlite("new");
    fails(
      () => new Snowflake({ lease }),
      "INVALID_OPTION",
      "a constructor cannot wait for a lease: use await Snowflake.open(options)",
    );
    fails(() => new Snowflake({ lease: "" }), "INVALID_OPTION", "lease is ``");
  });

  test("what does not fit a lease is refused", async () => {
    const lease = sqlite("refused");
    await failsLater(Snowflake.open({ lease: "memcached://x" }), "INVALID_OPTION", "no such kind of store");
    await failsLater(
      Snowflake.open({ lease, state: join(folder, "x") }),
      "INVALID_OPTION",
      "state and lease",
    );
    await failsLater(Snowflake.open({ lease, clock: () => Date.now() }), "INVALID_OPTION", "system's clock");
    await failsLater(Snowflake.open({ lease, maxWait: 1 }), "INVALID_OPTION", "no option `maxWait`");
    await failsLater(Snowflake.open({ lease, node: { worker: 32 } }), "INVALID_NODE");
  });

  test("a leased node, and what is known of it", async () => {
    const ids = await Snowflake.open({ lease: sqlite("known", "ttl=1h"), node: { datacenter: 3 } });
    assert.equal(ids.node >> 5, 3);
    const { lease } = ids;
    assert.ok(Object.isFrozen(lease));
    assert.deepEqual(Object.keys(lease).sort(), ["bound", "boundMs", "leftMs", "node", "state", "store"]);
    assert.deepEqual([lease.node, lease.state], [ids.node, "held"]);
    assert.ok(lease.store.startsWith("sqlite://"), lease.store);
    assert.equal(lease.bound.getTime(), Number(lease.boundMs));
    assert.ok(lease.leftMs > 0 && lease.leftMs <= 3_601_000, `${lease.leftMs}`);
    assert.equal(ids.stats.leaseLosses, 0);
    const issued = [
      ids.nextId(),
      ids.tryNextId(),
      await ids.nextIdAsync(),
      BigInt(ids.nextIdString()),
      ...ids.nextIds(5000),
      ...(await ids.nextIdsAsync(5000)),
    ];
    const filled = new BigUint64Array(5000);
    ids.fill(filled);
    issued.push(...filled);
    for (const id of ids) {
      issued.push(id);
      break;
    }
    assertRising(issued);
    assert.deepEqual([...new Set(ids.decodeAll(BigUint64Array.from(issued)).nodes)], [ids.node]);
    const { node } = ids;
    ids.close();
    ids.close();
    assert.equal(ids.lease.state, "closed");
    assert.equal(ids.node, node);
    fails(() => ids.nextId(), "CLOSED");
    await failsLater(ids.nextIdsAsync(3), "CLOSED");
    await ids[asyncDispose]();
  });

  test("the event loop runs on while a store is waited for", async () => {
    await holder(sqlite("busy", "nodes=0-0&label=the-other-one"));
    const lease = sqlite("busy", "nodes=0-0&wait=1s");
    await doesNotBlock(async () => {
      const opening = Snowflake.open({ lease });
      const error = await failsLater(opening, "LEASE_UNAVAILABLE", "`the-other-one`", "node 0");
      assert.equal(error.number, 12);
    });
  });

  test("opens that wait cost no threads", { skip: process.platform !== "linux" }, async () => {
    await holder(sqlite("crowded", "nodes=0-0"));
    const threads = () => readdirSync("/proc/self/task").length;
    const before = threads();
    const opens = Array.from({ length: 300 }, () =>
      failsLater(Snowflake.open({ lease: sqlite("crowded", "nodes=0-0&wait=1s") }), "LEASE_UNAVAILABLE"),
    );
    await pause(100);
    // The keeper's thread, the thread that awaits calls, and the one that accesses the file.
    assert.ok(threads() <= before + 3, `${before} threads, and then ${threads()}`);
    await Promise.all(opens);
  });

  test("the Snowflakes of a process share a lease, also in worker threads", async () => {
    const lease = sqlite("shared");
    const [one, two] = await Promise.all([Snowflake.open({ lease }), Snowflake.open({ lease })]);
    const inside = `
      const { parentPort } = require("node:worker_threads");
      const { subscribe } = require("node:diagnostics_channel");
      const { Snowflake } = require("polyflake");
      const kinds = [];
      subscribe("polyflake:lease", ({ kind }) => kinds.push(kind));
      const issue = async () => {
        const ids = await Snowflake.open({ lease: ${JSON.stringify(lease)} });
        parentPort.postMessage({ node: ids.node, issued: ids.nextIds(20_000), bound: ids.lease.boundMs });
      };
      issue();
    `;
    const workers = [1, 2].map(() => new Worker(inside, { eval: true }));
    const said = await Promise.all(workers.map(async (worker) => (await once(worker, "message"))[0]));
    const here = [one.nextIds(20_000), two.nextIds(20_000)];
    assert.deepEqual([two.node, ...said.map(({ node }) => node)], [one.node, one.node, one.node]);
    const all = [...here, ...said.map(({ issued }) => issued)].flatMap((ids) => [...ids]);
    assert.equal(new Set(all).size, 80_000);
    await Promise.all(workers.map((worker) => worker.terminate()));
    one.close();
    assert.ok(two.nextId() > 0n);
    await two[asyncDispose]();
  });

  test("a worker thread may end while it opens", async () => {
    await holder(sqlite("ended", "nodes=0-0"));
    const inside = `
      require("polyflake").Snowflake.open({ lease: ${JSON.stringify(sqlite("ended", "nodes=0-0&wait=60s"))} });
      require("node:worker_threads").parentPort.postMessage("opening");
    `;
    const worker = new Worker(inside, { eval: true });
    await once(worker, "message");
    await worker.terminate();
  });

  test("child processes lease nodes of their own", async () => {
    const held = await Promise.all([1, 2, 3, 4].map(() => run(leasing(sqlite("children", "nodes=0-3")))));
    assert.deepEqual(held.map(({ node }) => node).sort(), [0, 1, 2, 3]);
  });

  test("where nobody has subscribed, warnings are Node's own", async () => {
    const program = leasing(sqlite("warned", "init=always"));
    assert.match(await warned(program), /\[POLYFLAKE_INIT_ALWAYS\] Warning: init=always is set for sqlite:/);
    const subscribed = `
      import { subscribe } from "node:diagnostics_channel";
      subscribe("polyflake:lease", () => {});
    `;
    assert.equal(await warned(subscribed + program), "");
  });

  test("close gives the node back in the background", async () => {
    const address = sqlite("closed", "nodes=5-5&ttl=1h&wait=1s");
    const ids = await Snowflake.open({ lease: address });
    const last = ids.nextId();
    const messages = await told("released", () => assert.equal(ids.close(), undefined));
    const { node, store, isWarning } = messages.find(({ kind }) => kind === "released");
    assert.deepEqual([node, isWarning], [5, false]);
    assert.ok(store.startsWith("sqlite://"));
    const next = await run(leasing(address));
    assert.equal(next.node, 5);
    assert.ok(BigInt(next.id) > last);
  });

  test("await using waits until it is given back", async () => {
    const address = sqlite("disposed", "nodes=5-5&ttl=1h&wait=1s");
    const ids = await Snowflake.open({ lease: address });
    const [one, two] = [ids[asyncDispose](), ids[asyncDispose]()];
    fails(() => ids.nextId(), "CLOSED");
    await Promise.all([one, two]);
    assert.equal((await run(`${leasing(address)} await ids[Symbol.asyncDispose]();`)).node, 5);
    // That process also waited until its node was given back.
    assert.equal((await run(leasing(address))).node, 5);
  });

  const hold = sqlite("exit", "nodes=0-0&wait=1h");
  for (const [what, code] of [
    ["at its end", ""],
    ["at process.exit", "process.exit();"],
    ["after close", "ids.close();"],
    [
      "while another lease is opened",
      `Snowflake.open({ lease: ${JSON.stringify(hold)} }); await 0; process.exit();`,
    ],
  ]) {
    test(`a process ends at once: ${what}`, async () => {
      if (code.includes("open")) await holder(hold);
      const { node } = await run(`${leasing(sqlite("exits", "ttl=1h"))} ${code}`);
      assert.ok(node >= 0);
    });
  }

  test("a program may wait for a lease and for nothing else", async () => {
    const address = sqlite("alone", "nodes=0-0&wait=1s");
    await holder(address);
    const program = `
      import { Snowflake } from "polyflake";
      const { code } = await Snowflake.open({ lease: ${JSON.stringify(address)} }).catch((error) => error);
      console.log(JSON.stringify(code));
    `;
    assert.equal(await run(program), "LEASE_UNAVAILABLE");
  });
});

describe("leases in Redis", { skip: isWasm && "wasm has no leases" }, () => {
  test("a node that another process has taken is replaced, and all calls have the new one", async () => {
    const { address, cli, stop } = await redis();
    const lease = `${address}?init=always&nodes=0-1&ttl=6s&wait=2m`;
    let ids;
    const messages = await told("acquired", async () => {
      ids = await Snowflake.open({ lease, maxWaitMs: 60_000 });
    });
    assert.equal(messages.at(-1).node, ids.node);
    const [before, first] = [ids.node, ids.nextId()];
    // Make it look as if another process held the node.
    const key = cli("--scan", "--pattern", "*/space/*");
    const text = cli("HGET", key, `${before}/text`);
    const [token] = text.match(/[0-9a-f]{16}/) ?? [];
    assert.ok(token, text);
    const changes = await told("replaced", () =>
      cli("HSET", key, `${before}/version`, "1", `${before}/text`, text.replace(token, "f".repeat(16))),
    );
    // On a busy machine, Redis may not answer in time.
    const ofTheLease = changes.filter(({ kind }) => !kind.startsWith("store_"));
    assert.deepEqual(
      ofTheLease.map(({ kind, isWarning }) => [kind, isWarning]),
      [
        ["lost", true],
        ["replaced", false],
      ],
    );
    const after = 1 - before;
    assert.deepEqual([ids.node, ids.lease.node, ids.stats.leaseLosses], [after, after, 1]);
    const filled = new BigUint64Array(5000);
    ids.fill(filled);
    const issued = [first, ...filled, ids.nextId(), ids.next().value, ...(await ids.nextIdsAsync(5000))];
    assertRising(issued);
    const nodes = ids.decodeAll(BigUint64Array.from(issued)).nodes;
    assert.deepEqual([nodes[0], ...new Set(nodes.subarray(1))], [before, after]);
    const shown = JSON.stringify([messages, changes, ids.lease.store]);
    assert.ok(!shown.includes("hush"), shown);
    await ids[asyncDispose]();
    await stop();
  });

  test("a store that is gone: the lease is lost, and neither waiting nor closing blocks", async () => {
    const { address, stop } = await redis();
    const ids = await Snowflake.open({ lease: `${address}?init=always&ttl=3s&wait=2m`, maxWaitMs: 100 });
    await stop();
    let error;
    while (error === undefined) {
      try {
        ids.tryNextId();
        await pause(5);
      } catch (thrown) {
        if (thrown.code !== "SEQUENCE_EXHAUSTED") error = thrown;
      }
    }
    assert.deepEqual([error.code, error.number, typeof error.retryAfterMs], ["LEASE_LOST", 13, "number"]);
    assert.ok(!error.message.includes("hush"), error.message);
    await doesNotBlock(async () => {
      await failsLater(ids.nextIdAsync(), "LEASE_LOST");
      await failsLater(ids.nextIdsAsync(5), "LEASE_LOST");
    });
    fails(() => ids.nextId(), "LEASE_LOST");
    assert.equal(ids.lease.state, "lost");
    while (ids.stats.leaseLosses === 0) await turn();
    await failsLater(
      Snowflake.open({ lease: `${address}?wait=1s&namespace=b` }),
      "LEASE_UNAVAILABLE",
      "redis://",
    );
    ids.close();
    await ids[asyncDispose]();
  });

  test("a process ends at once though its store is gone", async () => {
    const { address, pid } = await redis();
    const lease = JSON.stringify(`${address}?init=always&ttl=1h`);
    const program = `
      import { Snowflake } from "polyflake";
      const ids = await Snowflake.open({ lease: ${lease} });
      process.kill(${pid()}, "SIGKILL");
      ids.close();
      console.log(JSON.stringify("closed"));
    `;
    assert.equal(await run(program), "closed");
  });
});
