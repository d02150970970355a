// What an ID costs in JavaScript, beside the other generators on npm, in one run. Prints medians of interleaved rounds.
//
//     npm ci && node bench.js [ROUNDS]       (51; at least 7)
//
// Unsaturated: bursts of at most 1,000 calls, each after the turn of a millisecond, so that nobody waits (the others
// have 10 or 12 bits of sequence). Saturated: as fast as the generator goes, with the IDs that it repeats counted.
// Every contender gets a loop that is compiled for it alone, and keeps what it is given.
// The medians stand a busy machine; the saturated figures do not, and nor do their repeats.

import { createRequire } from "node:module";
import { cpus } from "node:os";

const require = createRequire(import.meta.url);
const { Snowflake: Sapphire } = require("@sapphire/snowflake");
const FlakeIdgen = require("flake-idgen");
const { Snowflake: NodejsSnowflake } = require("nodejs-snowflake");
const { SnowflakeIdv1: SimpleFlakeid } = require("simple-flakeid");
const { Worker: SnowflakeUuid } = require("snowflake-uuid");

const ROUNDS = Math.max(7, Number(process.argv[2] ?? 51));
const BURSTS = 8;
const CALLS = 500;
const BATCH = 1000;
const SATURATED_ROUNDS = 7;
const SATURATED_IDS = 50_000;

const EPOCH_MS = 1735689600000;
const WIDE = `timestamp:41|worker:2|sequence:20@${EPOCH_MS}/1ms`;

// V8 makes calls of a class's only object cheaper. Most programs have one Snowflake, and each of the others here is
// alone of its kind: so every one of ours has a copy of the package to itself.
const { version } = require("../package.json");
function alone(entry) {
  for (const file of Object.keys(require.cache)) delete require.cache[file];
  delete globalThis[Symbol.for(`polyflake@${version}`)];
  return require(entry).Snowflake;
}

const NATIVE = "../dist/node.cjs";
const WASM = "../dist/browser.cjs";
function ours(entry, layout, node, Snowflake = alone(entry)) {
  return new Snowflake({ layout, node });
}
function pair(entry) {
  const Snowflake = alone(entry);
  return [ours(entry, "twitter", 2, Snowflake), ours(entry, WIDE, 2, Snowflake)];
}

const nativeTwitter = ours(NATIVE, "twitter", 1);
const nativeWide = ours(NATIVE, WIDE, 1);
const nativePair = pair(NATIVE);
const native = ours(NATIVE, WIDE, 3);
const wasmTwitter = ours(WASM, "twitter", 1);
const wasmWide = ours(WASM, WIDE, 1);
const wasmPair = pair(WASM);
const wasm = ours(WASM, WIDE, 3);
const sapphire = new Sapphire(EPOCH_MS);
const flakeIdgen = new FlakeIdgen({ epoch: EPOCH_MS, id: 1 });
const nodejsSnowflake = new NodejsSnowflake({ custom_epoch: EPOCH_MS, instance_id: 1 });
const snowflakeUuid = new SnowflakeUuid(1n, 1n, { epoch: EPOCH_MS });
const simpleFlakeid = new SimpleFlakeid({
  workerId: 1,
  baseTime: EPOCH_MS,
  workerIdBitLength: 10,
  seqBitLength: 12,
  maxSeqNumber: 4095,
});

const shifted = (bits) => (id) => Number(id >> bits) + EPOCH_MS;
const buffer = new BigUint64Array(BATCH);
const wasmFloor = floorWasm();

// `call` is the text of one call of `it`; `give` turns what it gave into a bigint.
const generators = [
  generator("polyflake native, twitter", nativeTwitter, "it.nextId()", {
    timeMs: (id) => Number(nativeTwitter.decode(id).timestampMs),
  }),
  generator("polyflake native, 20-bit sequence", nativeWide, "it.nextId()", { timeMs: shifted(22n) }),
  generator("polyflake wasm, twitter", wasmTwitter, "it.nextId()", {
    timeMs: (id) => Number(wasmTwitter.decode(id).timestampMs),
  }),
  generator("polyflake wasm, 20-bit sequence", wasmWide, "it.nextId()", { timeMs: shifted(22n) }),
  generator("nodejs-snowflake", nodejsSnowflake, "it.getUniqueID()", {
    peer: true,
    timeMs: (id) => NodejsSnowflake.timestampFromID(id, EPOCH_MS),
  }),
  generator("@sapphire/snowflake", sapphire, "it.generate()", { peer: true, timeMs: shifted(22n) }),
  generator("flake-idgen (a Buffer)", flakeIdgen, "it.next()", {
    peer: true,
    give: (bytes) => bytes.readBigUInt64BE(),
    timeMs: shifted(22n),
  }),
  generator("snowflake-uuid", snowflakeUuid, "it.nextId()", { peer: true, timeMs: shifted(22n) }),
  generator("simple-flakeid (12 bits)", simpleFlakeid, "it.NextBigId()", {
    peer: true,
    timeMs: shifted(22n),
  }),
];

const others = [
  contender("nextId() of two Snowflakes by turns, native", nativePair, "it[i & 1].nextId()"),
  contender("nextId() of two Snowflakes by turns, wasm", wasmPair, "it[i & 1].nextId()"),
  contender("nextIds(1000) native", native, `it.nextIds(${BATCH})`, { ids: BATCH, calls: 50 }),
  contender("nextIds(1000) wasm", wasm, `it.nextIds(${BATCH})`, { ids: BATCH, calls: 50 }),
  contender("fill of 1000 native", { ids: native, buffer }, "it.ids.fill(it.buffer)", {
    ids: BATCH,
    calls: 50,
  }),
  contender("fill of 1000 wasm", { ids: wasm, buffer }, "it.ids.fill(it.buffer)", { ids: BATCH, calls: 50 }),
  contender("tryNextId native", native, "it.tryNextId()"),
  contender("tryNextId wasm", wasm, "it.tryNextId()"),
  contender("next() of the iterator, native", native, "it.next()"),
  contender("next() of the iterator, wasm", wasm, "it.next()"),
  contender("nextIdString() native", native, "it.nextIdString()"),
  contender("nextIdString() wasm", wasm, "it.nextIdString()"),
  contender('nextIdString("base62") native', native, 'it.nextIdString("base62")'),
  contender("String(snowflake-uuid)", snowflakeUuid, "String(it.nextId())"),
  contender("decode native", { ids: native, id: native.nextId() }, "it.ids.decode(it.id)"),
  contender("decode wasm", { ids: wasm, id: wasm.nextId() }, "it.ids.decode(it.id)"),
  contender(
    "decode, @sapphire/snowflake",
    { ids: sapphire, id: sapphire.generate() },
    "it.ids.decode(it.id)",
  ),
  contender("await nextIdAsync() native", native, "await it.nextIdAsync()", { async: true }),
  contender("await nextIdAsync() wasm", wasm, "await it.nextIdAsync()", { async: true }),
  contender("await nextIdsAsync(1000) native", native, `await it.nextIdsAsync(${BATCH})`, {
    async: true,
    ids: BATCH,
    calls: 20,
  }),
  contender("await nextIdsAsync(1000) wasm", wasm, `await it.nextIdsAsync(${BATCH})`, {
    async: true,
    ids: BATCH,
    calls: 20,
  }),
];

const none = new BigUint64Array(0);
const floors = [
  contender("into native code and back: fill of nothing", { ids: native, none }, "it.ids.fill(it.none)"),
  contender("into wasm and back: fill of nothing", { ids: wasm, none }, "it.ids.fill(it.none)"),
  contender("Date.now()", Date, "it.now()"),
  contender("performance.now()", performance, "it.now()"),
  contender("a bigint, BigInt(number)", { number: Date.now() }, "BigInt(it.number + i)"),
  contender("a bigint out of a BigUint64Array", buffer, "it[i]"),
  contender("BigInt(Date.now())", Date, "BigInt(it.now())"),
  contender("an empty wasm function", wasmFloor, "it.a()"),
  contender("a wasm function that returns a bigint", wasmFloor, "it.b()"),
  contender("the same, after it calls Date.now()", wasmFloor, "it.c()"),
  contender("new BigUint64Array(1000), an element", BigUint64Array, `new it(${BATCH})`, {
    ids: BATCH,
    calls: 50,
  }),
];

await measure([...generators, ...others, ...floors]);
saturate(generators);
for (const one of generators) one.pacedRepeats = repeats(paced(one));
print();

function contender(name, it, call, { ids = 1, calls = CALLS, async: isAsync = false } = {}) {
  // The name makes every text its own: V8 keeps one compiled function, and what it learnt, for equal texts.
  const loop = new Function(
    "it",
    "kept",
    `return ${isAsync ? "async " : ""}function burst(calls) { // ${name}
      for (let i = 0; i < calls; i++) kept[i] = ${call};
    }`,
  )(it, new Array(calls).fill(0));
  return { name, it, call, ids, calls, loop, async: isAsync, samples: [] };
}

function generator(name, it, call, { peer = false, give = (id) => id, timeMs }) {
  // As fast as it goes: gives how many calls threw.
  const keep = new Function(
    "it",
    "give",
    `return function keep(ids, calls) { // ${name}
      let thrown = 0;
      for (let i = 0; i < calls; i++) {
        try {
          ids[i] = give(${call});
        } catch {
          thrown++;
          i--;
        }
      }
      return thrown;
    }`,
  )(it, give);
  return { ...contender(name, it, call), peer, keep, timeMs };
}

/** Waits for the turn of the millisecond. */
function turn() {
  const now = Date.now();
  while (Date.now() === now);
}

async function sample(one) {
  let ms = 0;
  for (let burst = 0; burst < BURSTS; burst++) {
    turn();
    const start = performance.now();
    if (one.async) await one.loop(one.calls);
    else one.loop(one.calls);
    ms += performance.now() - start;
  }
  return (ms * 1e6) / (BURSTS * one.calls * one.ids);
}

async function measure(contenders) {
  const warmup = 5;
  for (let round = -warmup; round < ROUNDS; round++) {
    const first = (round + warmup) % contenders.length;
    const order = [...contenders.slice(first), ...contenders.slice(0, first)];
    for (const one of round % 2 ? order.reverse() : order) {
      const ns = await sample(one);
      if (round >= 0) one.samples.push(ns);
    }
  }
  for (const one of contenders) one.ns = median(one.samples);
}

function saturate(contenders) {
  for (const one of contenders) Object.assign(one, { all: [], aheadMs: 0, thrown: 0, saturatedSamples: [] });
  for (let round = -1; round < SATURATED_ROUNDS; round++) {
    for (const one of round % 2 ? contenders : contenders.toReversed()) {
      const ids = new BigUint64Array(SATURATED_IDS);
      turn();
      const start = performance.now();
      const thrown = one.keep(ids, SATURATED_IDS);
      const ms = performance.now() - start;
      const aheadMs = one.timeMs(ids[SATURATED_IDS - 1]) - Date.now();
      if (round < 0) continue;
      one.saturatedSamples.push((ms * 1e6) / SATURATED_IDS);
      one.all.push(ids);
      one.thrown += thrown;
      one.aheadMs = Math.max(one.aheadMs, aheadMs);
    }
  }
  for (const one of contenders) {
    one.saturatedNs = median(one.saturatedSamples);
    one.saturatedRepeats = repeats(one.all);
  }
}

/** IDs in bursts of which none uses up a millisecond. */
function paced(one) {
  const all = [];
  for (let burst = 0; burst < (SATURATED_ROUNDS * SATURATED_IDS) / 1000; burst++) {
    const ids = new BigUint64Array(1000);
    turn();
    one.keep(ids, 1000);
    all.push(ids);
  }
  return all;
}

function repeats(all) {
  const sorted = new BigUint64Array(all.reduce((sum, ids) => sum + ids.length, 0));
  let at = 0;
  for (const ids of all) {
    sorted.set(ids, at);
    at += ids.length;
  }
  sorted.sort();
  let repeated = 0;
  for (let i = 1; i < sorted.length; i++) if (sorted[i] === sorted[i - 1]) repeated++;
  return repeated;
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1];
}

function print() {
  const honest = generators.filter((one) => one.peer && one.pacedRepeats + one.saturatedRepeats === 0);
  const best = honest.reduce((a, b) => (b.ns < a.ns ? b : a));
  console.log(`${cpus()[0].model}, Node ${process.version}, ${new Date().toISOString().slice(0, 10)}`);
  console.log(`ns an ID, medians of ${ROUNDS} interleaved rounds; ratios to ${best.name}, the fastest other`);
  console.log(`generator that repeats no ID. Saturated: ${SATURATED_ROUNDS} rounds of ${SATURATED_IDS} IDs.`);
  const number = (value, digits = 1) => value.toFixed(digits);
  table(
    "one ID a call",
    ["ns", "ratio", "saturated ns", "repeats", "saturated", "ahead ms", "threw"],
    generators,
    (one) => [
      number(one.ns),
      number(one.ns / best.ns, 2),
      number(one.saturatedNs),
      one.pacedRepeats,
      one.saturatedRepeats,
      one.aheadMs,
      one.thrown,
    ],
  );
  table("other calls", ["ns", "ratio"], others, (one) => [number(one.ns, 2), number(one.ns / best.ns, 3)]);
  table("floors", ["ns", "ratio"], floors, (one) => [number(one.ns, 2), number(one.ns / best.ns, 3)]);
}

function table(title, columns, contenders, cells) {
  const rows = [[title, ...columns], ...contenders.map((one) => [one.name, ...cells(one).map(String)])];
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  console.log();
  for (const [first, ...rest] of rows) {
    console.log([first.padEnd(widths[0]), ...rest.map((cell, i) => cell.padStart(widths[i + 1]))].join("  "));
  }
}

/** Calls into wasm that do next to nothing: an empty one, one that returns a bigint, and one that reads the clock. */
function floorWasm() {
  // prettier-ignore
  const bytes = [
    0,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0,
    1,
    12,
    3,
    0x60,
    0,
    0,
    0x60,
    0,
    1,
    0x7e,
    0x60,
    0,
    1,
    0x7c, // types: () -> (), () -> i64, () -> f64
    2,
    7,
    1,
    1,
    0x65,
    1,
    0x6e,
    0,
    2, // imports: e.n () -> f64
    3,
    4,
    3,
    0,
    1,
    1,
    7,
    13,
    3,
    1,
    0x61,
    0,
    1,
    1,
    0x62,
    0,
    2,
    1,
    0x63,
    0,
    3, // exports: a, b, c
    10,
    24,
    3,
    2,
    0,
    0x0b,
    12,
    0,
    0x42,
    0x80,
    0x80,
    0x80,
    0x80,
    0x80,
    0x80,
    0x80,
    0x80,
    0x20,
    0x0b, // i64.const 2^61
    6,
    0,
    0x10,
    0,
    0xfc,
    6,
    0x0b, // i64.trunc_sat_f64_s(call n)
  ];
  const module = new WebAssembly.Module(new Uint8Array(bytes));
  return new WebAssembly.Instance(module, { e: { n: Date.now } }).exports;
}
