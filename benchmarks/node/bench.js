// The cost of an ID in Node and in a browser, with other generators on npm, in one run. Prints JSON Lines, described in
// ../README.md.
//
//     npm ci && node bench.js [--rounds N]       (9; at least 7)
//
// ../../bindings-node must be built. Peers that are not installed are reported as missing.

import { once } from "node:events";
import { createRequire } from "node:module";
import { parseArgs, types } from "node:util";
import { Worker } from "node:worker_threads";
import { inBrowser } from "./browser.js";
import { clockFloors, wasmFloors } from "./floors.js";
import * as ours from "./generators.js";
import { check, checkLoad, fullLoad, interleave, load, loadSize, time, timed } from "./measure.js";
import { cause, EPOCH_MS, peers } from "./peers.js";
import { publicIds } from "./public-ids.js";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "9" } } });
const ROUNDS = Number(values.rounds);
if (!Number.isInteger(ROUNDS) || ROUNDS < 7)
  throw new RangeError("--rounds must be a whole number, at least 7");

const BATCH = 1000;
const LOAD_MS = 100;
const THREADS = 2;
const { dependencies } = createRequire(import.meta.url)("./package.json");

function print(record) {
  console.log(JSON.stringify(record));
}

/** Prints a row of a table. `checked` is the result of `check`. */
function result({ language = "Node", table, subject, rounds, checked }) {
  print({
    kind: "result",
    language,
    table,
    subject,
    rounds: rounds.map((figure) => Number(figure.toPrecision(5))),
    ...checked,
  });
}

function missing(language, { name, why }) {
  print({ kind: "missing", language, subject: name, version: dependencies[name] ?? ours.version, why });
}

const installed = [];
for (const peer of peers) {
  try {
    const it = peer.make(await import(peer.name));
    installed.push({ ...peer, it });
  } catch (error) {
    missing("Node", { name: peer.name, why: cause(error) });
  }
}

console.error("Node: one ID, batches");
const snowflakes = { native: ours.native, wasm: ours.wasm };
const rows = [...oneId(), ...batches(), ...decodes(), ...texts(), ...otherCalls()];
rows.push(...(await publicIds(ours.packages.native(), missing)));
await time(
  rows.map(({ subject }) => subject),
  ROUNDS,
);
for (const { subject, checkedCalls, ...row } of rows) {
  const checked = checkedCalls && checkLoad(load(subject.name, checkedCalls.it, checkedCalls), checkedCalls);
  result({ ...row, subject: subject.name, rounds: subject.rounds, checked });
}

console.error("Node: full load");
await fullLoads(1);
await fullLoads(THREADS);

console.error("browser");
for (const { kind, ...row } of await inBrowser(ROUNDS)) {
  if (kind === "missing") missing("browser", row);
  else result({ language: "browser", table: "browser, one ID", ...row });
}

function oneId() {
  const table = "one ID";
  const nativeId = "a native call, and a bigint out of a BigUint64Array";
  const rows = Object.entries(snowflakes).map(([build, snowflake]) => {
    const it = snowflake("twitter");
    return {
      table,
      subject: timed(`polyflake ${build}, nextId()`, it, "it.nextId()"),
      checkedCalls: { it, bigint: "it.nextId()", chunk: 64, timeMs: ours.twitterTimeMs },
    };
  });
  for (const peer of installed) rows.push(peerRow(table, peer));
  const floors = [
    timed("performance.now()", performance, "it.now()"),
    timed("a native call: util.types.isExternal(0)", types, "it.isExternal(0)"),
    timed("a bigint out of a BigUint64Array", new BigUint64Array(BATCH), "it[i]"),
    timed(nativeId, { types, ids: new BigUint64Array(BATCH) }, "(it.types.isExternal(0), it.ids[i])"),
    ...clockFloors(),
    ...wasmFloors(),
  ];
  return [...rows, ...floors.map((subject) => ({ table, subject }))];
}

function peerRow(table, peer) {
  return { table, subject: timed(peer.name, peer.it, peer.call), checkedCalls: peer };
}

function batches() {
  const table = "batch of 1,000";
  const newArray = `new BigUint64Array(${BATCH})`;
  const fillNothing = (build) => `${build}, a call: fill of nothing`;
  const rows = [];
  for (const [build, snowflake] of Object.entries(snowflakes)) {
    const name = (call) => `polyflake ${build}, ${call}`;
    const batch = (what, it, call, fill, { calls = 50, ...others } = {}) =>
      rows.push({
        table,
        subject: timed(name(what), it, call, { ids: BATCH, calls, async: others.async }),
        checkedCalls: fill && { it, fill, chunk: BATCH, timeMs: others.timeMs ?? ours.wideTimeMs },
      });
    const nextIds = `it.nextIds(${BATCH})`;
    const fillPart = "part.set(it.nextIds(part.length))";
    batch("nextIds(1000)", snowflake(ours.WIDE), nextIds, fillPart);
    // A millisecond of Twitter's layout always has room for three.
    const twitter = { calls: 3, timeMs: ours.twitterTimeMs };
    batch("nextIds(1000) of twitter", snowflake("twitter"), nextIds, fillPart, twitter);
    const filled = { ids: snowflake(ours.WIDE), array: new BigUint64Array(BATCH) };
    batch("fill of 1,000", filled, "it.ids.fill(it.array)", "it.ids.fill(part)");
    const later = { calls: 20, async: true };
    batch(
      "await nextIdsAsync(1000)",
      snowflake(ours.WIDE),
      `await it.nextIdsAsync(${BATCH})`,
      undefined,
      later,
    );
  }
  for (const peer of installed) {
    rows.push(peerRow(table, peer));
  }
  const none = new BigUint64Array(0);
  const nothing = (snowflake) => ({ ids: snowflake(ours.WIDE), none });
  const size = { ids: BATCH, calls: 50 };
  const floors = [
    ...Object.entries(snowflakes).map(([build, snowflake]) =>
      timed(fillNothing(build), nothing(snowflake), "it.ids.fill(it.none)", size),
    ),
    timed(newArray, BigUint64Array, `new it(${BATCH})`, size),
  ];
  return [...rows, ...floors.map((subject) => ({ table, subject }))];
}

function decodes() {
  const rows = [];
  const epoch = BigInt(EPOCH_MS);
  const ids = Array.from({ length: BATCH }, (_, n) => (BigInt(n) * 86_400_007n) << 22n);
  for (const build of Object.keys(snowflakes)) {
    const { Layout } = ours.packages[build]();
    const name = `polyflake ${build}, layout.decode(id)`;
    const it = { layout: new Layout("discord"), ids };
    const call = "((parts) => ((it.seen = parts.node), parts.timestampMs))(it.layout.decode(it.ids[i]))";
    rows.push({ table: "decode", subject: timed(name, it, call) });
  }
  for (const { name, it, decodes } of installed) {
    for (const [what, call] of Object.entries(decodes)) {
      rows.push({ table: "decode", subject: timed(`${name}, ${what}`, { it, ids }, call) });
    }
  }
  const floor = timed("(id >> 22n) + epoch", { ids, epoch }, "(it.ids[i] >> 22n) + it.epoch");
  rows.push({ table: "decode", subject: floor });

  for (const length of [1000, 100_000]) {
    const table = `decode of ${length.toLocaleString("en")}`;
    const many = BigUint64Array.from({ length }, (_, n) => ids[n % BATCH]);
    const size = { ids: length, calls: Math.ceil(20_000 / length) };
    for (const build of Object.keys(snowflakes)) {
      const { Layout } = ours.packages[build]();
      const layout = new Layout("discord");
      const name = `polyflake ${build}, layout.decodeAll(ids).timestampsMs`;
      const call = "it.layout.decodeAll(it.many).timestampsMs";
      rows.push({ table, subject: timed(name, { layout, many }, call, size) });
    }
    rows.push({ table, subject: timed("a copy of the array", many, "it.slice()", size) });
  }
  return rows;
}

function texts() {
  const rows = [];
  const table = "text";
  for (const [build, snowflake] of Object.entries(snowflakes)) {
    const call = (name, it, code) =>
      rows.push({ table, subject: timed(`polyflake ${build}, ${name}`, it, code) });
    const { formatId } = ours.packages[build]();
    const ids = snowflake(ours.WIDE).nextIds(BATCH);
    call('formatId(id, "base62")', { formatId, ids: [...ids] }, 'it.formatId(it.ids[i], "base62")');
    call("nextIdString()", snowflake(ours.WIDE), "it.nextIdString()");
    call('nextIdString("base62")', snowflake(ours.WIDE), 'it.nextIdString("base62")');
  }
  const ids = Array.from({ length: BATCH }, (_, n) => BigInt(n) * 86_400_007n * 2n ** 22n);
  rows.push({ table, subject: timed("String(id)", ids, "String(it[i])") });
  return rows;
}

function otherCalls() {
  const rows = [];
  const call = (name, it, text, options) =>
    rows.push({ table: "other calls", subject: timed(name, it, text, options) });
  for (const [build, snowflake] of Object.entries(snowflakes)) {
    const it = snowflake(ours.WIDE);
    const { one, two } = ours.pairs(build);
    call(`polyflake ${build}, nextId() of two Snowflakes in turn`, two, "it[i & 1].nextId()");
    call(`polyflake ${build}, nextId() of one Snowflake`, one, "it[i & 1].nextId()");
    call(`polyflake ${build}, tryNextId()`, it, "it.tryNextId()");
    call(`polyflake ${build}, next() of the iterator`, it, "it.next()");
    call(`polyflake ${build}, await nextIdAsync()`, it, "await it.nextIdAsync()", {
      async: true,
      calls: 200,
    });
  }
  return rows;
}

/** The tables of full load: one thread is this one, two are worker threads. */
async function fullLoads(threads) {
  const calls = { chunk: 64, perMs: 4096, timeMs: ours.twitterTimeMs };
  const single = { ...calls, bigint: "it.nextId()" };
  const batch = { ...calls, chunk: 1024, fill: "part.set(it.nextIds(part.length))" };
  const subjects = [
    { ...single, name: "polyflake native, nextId()", it: ours.native("twitter") },
    { ...batch, name: "polyflake native, nextIds(1024)", it: ours.native("twitter") },
  ];
  if (threads === 1) {
    // The WebAssembly build does not run in worker threads, since its threads cannot share a cursor.
    const wasm = { name: "polyflake wasm, nextId()", it: ours.wasm("twitter") };
    subjects.push({ ...single, ...wasm });
  }
  for (const peer of installed) subjects.push({ ...peer });
  const run = threads === 1 ? loadHere() : loadThreads(threads);
  for (const subject of subjects) Object.assign(subject, { percents: [], cpus: [] });
  await interleave(subjects, 1, run);
  await interleave(subjects, ROUNDS, async (subject) => {
    const { size, taken } = await run(subject);
    const begin = taken.find((one) => one.begin).begin;
    const end = taken.find((one) => one.end).end;
    const ms = end.ms - begin.ms;
    subject.percents.push(((size.last - size.first) / (subject.perMs * ms)) * 100);
    subject.cpus.push((end.cpuMs - begin.cpuMs) / ms);
    subject.taken = taken;
  });
  await run.end?.();
  const words = threads === 1 ? "one thread" : "two threads";
  for (const { name, chunk, timeMs, taken, percents, cpus } of subjects) {
    const row = { subject: name, checked: check(taken, chunk, timeMs) };
    result({ ...row, rounds: percents, table: `full load, ${words}` });
    result({ ...row, rounds: cpus, table: `processor time under full load, ${words}` });
  }
}

function loadHere() {
  const loops = new Map();
  return async ({ name, it, perMs, chunk, bigint, fill }) => {
    if (!loops.has(name)) loops.set(name, load(name, it, { bigint, fill }));
    const size = loadSize(perMs, LOAD_MS, chunk);
    const ids = new BigUint64Array(size.last);
    const taken = fullLoad(loops.get(name), { ...size, ids, total: new Int32Array(1) }, ours.meter);
    return { size, taken: [{ ...taken, ids }] };
  };
}

function loadThreads(threads) {
  const shared = (bytes) => new SharedArrayBuffer(bytes);
  const workers = Array.from(
    { length: threads },
    () => new Worker(new URL("thread.js", import.meta.url), { workerData: { threads } }),
  );
  const loadAll = async ({ name, perMs, chunk, bigint, fill }) => {
    const size = loadSize(perMs, LOAD_MS, chunk);
    const total = new Int32Array(shared(4));
    const ready = new Int32Array(shared(4));
    const taken = workers.map(async (worker) => {
      const ids = new BigUint64Array(shared(8 * size.last));
      worker.postMessage({ name, calls: { bigint, fill }, run: { ...size, ids, total }, ready });
      const [done] = await once(worker, "message");
      return { ...done, ids };
    });
    return { size, taken: await Promise.all(taken) };
  };
  loadAll.end = () => Promise.all(workers.map((worker) => worker.terminate()));
  return loadAll;
}
