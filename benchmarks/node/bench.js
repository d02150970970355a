// The cost of an ID in Node and in a browser, with other generators on npm. ../harness.py tells this program what to
// measure.
//
// ../../bindings-node must be built, and the packages in package.json installed.

import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { types } from "node:util";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { inBrowser } from "./browser.js";
import { blocks, load, rounds, smallWasm, WASM_FLOOR } from "./measure.js";
import { EPOCH_MS, peers } from "./peers.js";

const require = createRequire(import.meta.url);
const BUILDS = { native: "../../bindings-node/dist/node.cjs", wasm: "../../bindings-node/dist/browser.cjs" };
const BATCH = 1000;
const CHUNK = 64;
/** A layout that no benchmark exhausts. */
const WIDE = `timestamp:37|worker:6|sequence:20@${EPOCH_MS}/1ms`;
/** IDs to decode. */
const IDS = Array.from({ length: BATCH }, (_, n) => (BigInt(n) * 86_400_007n) << 22n);
const LOADED = "full load, one thread|processor time under full load, one thread";
const LOADED_TWO = "full load, two threads";

// If the native addon did not load, the WebAssembly module would be measured instead.
process.on("warning", ({ code, message }) => {
  if (code !== "POLYFLAKE_WASM") return;
  console.error(message);
  process.exit(1);
});

/** The rows, by table and subject. Each creates its subject when it is called. */
const rows = new Map();
const add = (table, subject, make) => rows.set(`${table}\t${subject}`, make);
/** Adds a row that makes no IDs. */
const call = (table, subject, make, code, size) =>
  add(table, subject, async () => ({ round: rounds(await make(), code, size), chunk: 0 }));

/** Adds a row that makes IDs; `code` is passed to `rounds`, and `calls` to `load`. */
function made(table, subject, make, code, calls, { chunk = CHUNK, ...size } = {}) {
  add(table, subject, async () => {
    const it = await make();
    const loop = load(it, calls);
    return { round: rounds(it, code, size), chunk, ids: (count) => blocks(loop, count, chunk) };
  });
}

function ours(build) {
  const named = (text) => `polyflake ${build}, ${text}`;
  const on = (layout) => () => new (require(BUILDS[build]).Snowflake)({ layout, node: 1 });
  const from = (make) => () => make(require(BUILDS[build]));
  made("one ID", named("nextId()"), on("twitter"), "it.nextId()", { bigint: "it.nextId()" });
  const size = { ids: BATCH, calls: 50, chunk: BATCH };
  const nextIds = `it.nextIds(${BATCH})`;
  const fillPart = { fill: "part.set(it.nextIds(part.length))" };
  made("batch of 1,000", named("nextIds(1000)"), on(WIDE), nextIds, fillPart, size);
  const filled = () => ({ ids: on(WIDE)(), array: new BigUint64Array(BATCH), none: new BigUint64Array() });
  const fill = "it.ids.fill(it.array)";
  made("batch of 1,000", named("fill of 1,000"), filled, fill, { fill: "it.ids.fill(part)" }, size);
  call("batch of 1,000", `${build}, a call: fill of nothing`, filled, "it.ids.fill(it.none)", size);

  const layout = (ids) => from(({ Layout }) => ({ layout: new Layout("discord"), ids }));
  const decode = "((parts) => ((it.seen = parts.node), parts.timestampMs))(it.layout.decode(it.ids[i]))";
  call("decode", named("layout.decode(id)"), layout(IDS), decode);
  const all = "it.layout.decodeAll(it.ids).timestampsMs";
  const many = { ids: BATCH, calls: 20 };
  call(
    "decode of 1,000",
    named("layout.decodeAll(ids).timestampsMs"),
    layout(BigUint64Array.from(IDS)),
    all,
    many,
  );
  const texts = from(({ formatId }) => ({ formatId, ids: [...on(WIDE)().nextIds(BATCH)] }));
  call("text", named('formatId(id, "base62")'), texts, 'it.formatId(it.ids[i], "base62")');
  call("text", named("nextIdString()"), on(WIDE), "it.nextIdString()");

  const single = { bigint: "it.nextId()" };
  loaded(LOADED, named("nextId()"), on("twitter"), single);
  // The WebAssembly build does not run in worker threads, since its threads cannot share a cursor.
  if (build === "native") loaded(LOADED_TWO, named("nextId()"), on("twitter"), single);
}

function theirs({ name, make, call: code, bigint, decodes }) {
  const it = async () => make(await import(name));
  made("one ID", name, it, code, { bigint });
  made("batch of 1,000", name, it, code, { bigint });
  for (const [what, code] of Object.entries(decodes)) {
    call("decode", `${name}, ${what}`, async () => ({ it: await it(), ids: IDS }), code);
  }
  for (const table of [LOADED, LOADED_TWO]) loaded(table, name, it, { bigint });
}

/** Adds a row under full load, which is measured by its IDs: in this thread, or in two worker threads. */
function loaded(table, subject, make, calls) {
  add(table, subject, async () => {
    if (table === LOADED || !isMainThread) {
      const loop = load(await make(), calls);
      return { chunk: CHUNK, ids: (count) => blocks(loop, count, CHUNK) };
    }
    const workerData = [table, subject];
    const workers = [0, 1].map(() => new Worker(new URL(import.meta.url), { workerData }));
    return {
      chunk: CHUNK,
      threads: 2,
      ids: async (count) => {
        const parts = workers.map((worker) => once(worker, "message"));
        const ready = new Int32Array(new SharedArrayBuffer(4));
        for (const worker of workers) worker.postMessage({ count: count / 2, ready });
        const bytes = (await Promise.all(parts)).map(([words]) => Buffer.from(words.buffer));
        return Buffer.concat(bytes);
      },
      end: () => Promise.all(workers.map((worker) => worker.terminate())),
    };
  });
}

/** Public IDs, beside Sqids, Hashids, and UUIDs. `id` converts an ID to the value that a package encodes. */
function publicIds() {
  const ids = Array.from({ length: BATCH }, (_, n) => 1541815603606036480n + BigInt(n) * 0x1234567891n);
  const orders = ({ PublicIds }) => new PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "order");
  const sqid = (id) => [Number(BigInt.asUintN(53, id))];
  for (const { name, from = name, make, id = (id) => id, calls = ["encode", "decode"] } of [
    { name: "polyflake native", from: BUILDS.native, make: orders, calls: ["encode(id)", "decode(text)"] },
    { name: "sqids", make: ({ default: Sqids }) => new Sqids(), id: sqid },
    { name: "hashids", make: ({ default: Hashids }) => new Hashids("salt") },
    { name: "uuid", make: (uuid) => ({ encode: uuid.stringify, decode: uuid.parse }), id: bytes },
  ]) {
    const given = async () => {
      const it = make(await import(from));
      const values = ids.map(id);
      return { it, ids: values, texts: values.map((value) => it.encode(value)) };
    };
    call("public ID, encode", `${name}, ${calls[0]}`, given, "it.it.encode(it.ids[i])");
    call("public ID, decode", `${name}, ${calls[1]}`, given, "it.it.decode(it.texts[i])");
  }
}

function bytes(id) {
  const block = new DataView(new ArrayBuffer(16));
  block.setBigUint64(0, id);
  block.setBigUint64(8, id | (1n << 63n));
  block.setUint8(6, 0x40);
  return new Uint8Array(block.buffer);
}

function others() {
  const pair = (isOne) => () => {
    const { Snowflake } = require(BUILDS.native);
    const one = new Snowflake({ layout: WIDE, node: 1 });
    return [one, isOne ? one : new Snowflake({ node: 2 })];
  };
  for (const [text, isOne] of [
    ["two Snowflakes in turn", false],
    ["one Snowflake", true],
  ]) {
    call("other calls", `polyflake native, nextId() of ${text}`, pair(isOne), "it[i & 1].nextId()");
  }
}

function floors() {
  const nativeId = "a native call, and a bigint out of a BigUint64Array";
  const array = () => ({ types, ids: new BigUint64Array(BATCH) });
  call("one ID", nativeId, array, "(it.types.isExternal(0), it.ids[i])");
  call("one ID", WASM_FLOOR, smallWasm, "it.c()");
  const size = { ids: BATCH, calls: 50 };
  call("batch of 1,000", `new BigUint64Array(${BATCH})`, () => BigUint64Array, `new it(${BATCH})`, size);
  const ids = () => ({ ids: IDS, epoch: BigInt(EPOCH_MS) });
  call("decode", "(id >> 22n) + epoch", ids, "(it.ids[i] >> 22n) + it.epoch");
  const many = { ids: BATCH, calls: 20 };
  call("decode of 1,000", "a copy of the array", () => BigUint64Array.from(IDS), "it.slice()", many);
  call("text", "String(id)", () => IDS, "String(it[i])");
}

/** The browser's rows, selected by the beginning of a table's name. */
function browser() {
  const table = "browser, one ID";
  for (const name of ["polyflake", ...peers.map(({ name }) => name)]) {
    add(table, name === "polyflake" ? "polyflake, nextId()" : name, () => inBrowser(name));
  }
  add(table, WASM_FLOOR, () => inBrowser(""));
}

ours("native");
ours("wasm");
for (const peer of peers) theirs(peer);
publicIds();
others();
floors();
browser();

if (!isMainThread) {
  const row = await rows.get(workerData.join("\t"))();
  parentPort.on("message", ({ count, ready }) => {
    // Both threads start together.
    Atomics.add(ready, 0, 1);
    while (Atomics.load(ready, 0) < 2);
    parentPort.postMessage(row.ids(count));
  });
} else if (process.argv.length < 4) {
  for (const name of rows.keys())
    console.log(name + (name.startsWith("browser") ? "\tlanguage=browser" : ""));
} else {
  const row = await rows.get(process.argv.slice(2).join("\t"))();
  for await (const line of createInterface({ input: process.stdin })) {
    const [what, count, file] = line.split(" ");
    if (what === "round") {
      console.log((await row.round()).join(" "));
      continue;
    }
    const ids = row.chunk > 0 && (await row.ids(Number(count)));
    console.log(row.chunk, row.threads ?? 1);
    if (ids) {
      writeFileSync(file, ids);
      console.log();
    }
  }
  await row.end?.();
}
