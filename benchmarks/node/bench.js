// The cost of an ID in Node and in a browser, with other generators on npm, in one run. Prints JSON Lines, described in
// ../README.md.
//
//     npm ci && node bench.js [--rounds N]       (9; at least 7)
//
// ../../bindings-node must be built. Peers that are not installed are reported as missing.

import { once } from "node:events";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { inBrowser } from "./browser.js";
import { clockFloors, wasmFloors } from "./floors.js";
import * as ours from "./generators.js";
import { check, checkLoad, fullLoad, interleave, load, loadSize, time, timed } from "./measure.js";
import { cause, peers } from "./peers.js";

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
function result(row) {
  const { language = "Node", table, subject, role = "ours", unit = "ns per ID", rounds } = row;
  const { checked, note = "", targets = [] } = row;
  const version = { ours: ours.version, peer: dependencies[subject], floor: "" }[role];
  print({
    kind: "result",
    language,
    table,
    subject,
    version,
    role,
    unit,
    rounds: rounds.map((figure) => Number(figure.toPrecision(5))),
    repeated: checked?.repeated ?? null,
    ids: checked?.ids ?? null,
    ahead_ms: checked?.ahead_ms ?? null,
    reads_clock: role !== "floor",
    note,
    ...(role === "ours" && { targets }),
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
const rows = [...oneId(), ...batches(), ...otherCalls()];
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
  const atMost = { native: 0.6, wasm: 0.75 };
  const rows = Object.entries(snowflakes).map(([build, snowflake]) => {
    const it = snowflake("twitter");
    return {
      table,
      subject: timed(`polyflake ${build}, nextId()`, it, "it.nextId()"),
      checkedCalls: { it, bigint: "it.nextId()", chunk: 64, timeMs: ours.twitterTimeMs },
      targets: [{ what: "ratio", at_most: atMost[build] }],
    };
  });
  for (const peer of installed) rows.push(peerRow(table, peer));
  const floors = [
    timed("performance.now()", performance, "it.now()"),
    timed("a bigint out of a BigUint64Array", new BigUint64Array(BATCH), "it[i]"),
    ...clockFloors(),
    ...wasmFloors(),
  ];
  return [...rows, ...floors.map((subject) => ({ table, subject, role: "floor" }))];
}

function peerRow(table, peer, note = peer.note) {
  return {
    table,
    subject: timed(peer.name, peer.it, peer.call),
    role: "peer",
    checkedCalls: peer,
    note,
  };
}

function batches() {
  const table = "batch of 1,000";
  const rows = [];
  for (const [build, snowflake] of Object.entries(snowflakes)) {
    const name = (call) => `polyflake ${build}, ${call}`;
    const batch = (what, it, call, fill, { calls = 50, note = "20 sequence bits", ...others } = {}) =>
      rows.push({
        table,
        subject: timed(name(what), it, call, { ids: BATCH, calls, async: others.async }),
        checkedCalls: fill && { it, fill, chunk: BATCH, timeMs: others.timeMs ?? ours.wideTimeMs },
        note,
        targets: others.targets,
      });
    const nextIds = `it.nextIds(${BATCH})`;
    const fillPart = "part.set(it.nextIds(part.length))";
    const targets = build === "native" ? [{ what: "value", at_most: 1.5 }] : [];
    batch("nextIds(1000)", snowflake(ours.WIDE), nextIds, fillPart, { targets });
    // A millisecond of Twitter's layout always has room for three.
    const twitter = { calls: 3, note: "12 sequence bits", timeMs: ours.twitterTimeMs };
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
    rows.push(peerRow(table, peer, "no batch call: 1,000 single calls"));
  }
  const none = new BigUint64Array(0);
  const nothing = (snowflake) => ({ ids: snowflake(ours.WIDE), none });
  const size = { ids: BATCH, calls: 50 };
  const floors = [
    timed("native, a call: fill of nothing", nothing(ours.native), "it.ids.fill(it.none)", size),
    timed("wasm, a call: fill of nothing", nothing(ours.wasm), "it.ids.fill(it.none)", size),
    timed("new BigUint64Array(1000)", BigUint64Array, `new it(${BATCH})`, size),
  ];
  return [...rows, ...floors.map((subject) => ({ table, subject, role: "floor" }))];
}

function otherCalls() {
  const rows = [];
  const call = (name, it, text, others) =>
    rows.push({ table: "other calls", subject: timed(name, it, text, others), unit: "ns per call" });
  const pairs = { native: ours.nativePair, wasm: ours.wasmPair };
  for (const [build, snowflake] of Object.entries(snowflakes)) {
    const it = snowflake(ours.WIDE);
    const ids = { it, id: it.nextId() };
    call(`polyflake ${build}, nextId() of two Snowflakes in turn`, pairs[build](), "it[i & 1].nextId()");
    call(`polyflake ${build}, tryNextId()`, it, "it.tryNextId()");
    call(`polyflake ${build}, next() of the iterator`, it, "it.next()");
    call(`polyflake ${build}, nextIdString()`, it, "it.nextIdString()");
    call(`polyflake ${build}, nextIdString("base62")`, it, 'it.nextIdString("base62")');
    call(`polyflake ${build}, decode(id)`, ids, "it.it.decode(it.id)", { calls: 200 });
    call(`polyflake ${build}, await nextIdAsync()`, it, "await it.nextIdAsync()", {
      async: true,
      calls: 200,
    });
  }
  return rows;
}

/** The tables of full load: one thread is this one, two are worker threads. */
async function fullLoads(threads) {
  const calls = { chunk: 64, perMs: 4096, timeMs: ours.twitterTimeMs, note: "", role: "ours" };
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
  for (const peer of installed) {
    const note = threads > 1 ? "each thread has its own generator, with the same worker number" : peer.note;
    subjects.push({ ...peer, note, role: "peer" });
  }
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
  for (const { name, role, note, chunk, timeMs, taken, percents, cpus } of subjects) {
    const row = { subject: name, role, note, checked: check(taken, chunk, timeMs) };
    const loaded = { unit: "% of capacity", rounds: percents, targets: [{ what: "value", at_least: 99.5 }] };
    const cpu = { unit: "CPU seconds per second", rounds: cpus };
    const less = threads === 1 ? [{ what: "ratio", at_most: 0.9 }] : [];
    result({ ...row, ...loaded, table: `full load, ${words}` });
    result({ ...row, ...cpu, table: `processor time under full load, ${words}`, targets: less });
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
