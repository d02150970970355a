// The parts of the API that the vectors cannot express: JavaScript's own types.
//
// In a process, Snowflakes with a built-in clock share a cursor for each node, so each such test uses its own node.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { inspect } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Decoded, formatId, Layout, parseId, Snowflake } from "polyflake";
import {
  assertRising,
  doesNotBlock,
  each,
  fails,
  failsLater,
  freshNode,
  ROOMY,
  T,
  TWITTER,
  take,
} from "./support.js";

const FORMATS = [
  "decimal",
  "hex",
  "base32",
  "base36",
  "base58",
  "base62",
  "uuid",
  "bwmarrin-base32",
  "bwmarrin-base58",
];
const held = () => T;

describe("the first ID", () => {
  test("three lines", () => {
    const ids = new Snowflake({ node: { datacenter: 1, worker: 7 } });
    const id = ids.nextId();
    assert.equal(ids.decode(id).fields.worker, 7);
    assert.equal(typeof id, "bigint");
    assert.ok(ids.nextId() > id);
  });

  test("the IDs of the wall clock tell the time", () => {
    const ids = new Snowflake({ node: freshNode() });
    const before = Date.now() - 1;
    const { time } = ids.decode(ids.nextId());
    const after = Date.now() + 1;
    assert.ok(time instanceof Date);
    assert.ok(before <= time.getTime() && time.getTime() <= after, `${before}, ${time.getTime()}, ${after}`);
  });

  for (const clock of ["system", "steady"]) {
    test(`the ${clock} clock`, () => {
      const ids = new Snowflake({ node: freshNode(), clock });
      const issued = ids.nextIds(20_000);
      assert.equal(issued.length, 20_000);
      assertRising([...issued, ids.nextId()]);
    });
  }
});

describe("nodes", () => {
  each(
    test,
    "a node is an integer or an object",
    [
      ["Number", 39],
      ["bigint", 39n],
      ["decimal text", "39"],
      ["fields", { datacenter: 1, worker: 7 }],
      ["fields in another order", { worker: 7n, datacenter: "1" }],
      ["fields without a prototype", Object.assign(Object.create(null), { datacenter: 1, worker: 7 })],
    ],
    (node) => {
      const ids = new Snowflake({ node, clock: held });
      assert.equal(ids.node, 39);
      const decoded = ids.decode(ids.nextId());
      assert.equal(decoded.node, 39);
      assert.deepEqual(Object.entries(decoded.fields), [
        ["datacenter", 1],
        ["worker", 7],
      ]);
    },
  );

  each(
    test,
    "a layout without a node field needs no node",
    [
      ["none", undefined],
      ["0", 0],
      ["no fields", {}],
    ],
    (node) => {
      const ids = new Snowflake({ layout: "mastodon", node, clock: held });
      assert.equal(ids.node, 0);
      assert.deepEqual(ids.decode(ids.nextId()).fields, {});
    },
  );

  test("a field may be called after a member of Object.prototype", () => {
    const layout = new Layout("timestamp:41|constructor:4|valueof:4|sequence:8@0/1ms");
    const ids = new Snowflake({ layout, node: { constructor: 1, valueof: 2 }, clock: held });
    assert.deepEqual(Object.entries(ids.decode(ids.nextId()).fields), [
      ["constructor", 1],
      ["valueof", 2],
    ]);
    assert.deepEqual(
      layout.decode(layout.compose(T, { constructor: 3, valueof: 4 }, 5)).fields.constructor,
      3,
    );
  });

  test("undefined means the default", () => {
    const node = freshNode();
    const ids = new Snowflake({
      layout: undefined,
      node,
      maxBackwardMs: undefined,
      maxAheadMs: undefined,
      maxWaitMs: undefined,
      sequenceStart: undefined,
      clock: undefined,
    });
    assertRising([new Snowflake({ node }).nextId(), ids.nextId()]);
  });
});

describe("layouts", () => {
  const pairs = [
    ["timestamp", 41],
    ["datacenter", 5],
    ["worker", 5n],
    ["sequence", "12"],
  ];
  each(
    test,
    "are equal in every form",
    [
      ["preset", "twitter"],
      ["layout", new Layout("twitter")],
      ["text", TWITTER],
      [
        "object",
        { fields: { timestamp: 41, datacenter: 5, worker: 5, sequence: 12 }, epochMs: 1288834974657 },
      ],
      ["pairs", { fields: pairs, epochMs: 1288834974657n, tickMs: 1 }],
      ["iterator", { fields: pairs.values(), epochMs: "1288834974657", tickMs: undefined }],
      ["Map", { fields: new Map(pairs), epochMs: 1288834974657, tickMs: 1n }],
    ],
    (given) => {
      const layout = new Layout(given);
      const twitter = new Layout("twitter");
      assert.ok(layout.equals(twitter) && twitter.equals(layout));
      assert.equal(String(layout), TWITTER);
      assert.equal(`${layout}`, layout.toString());
      assert.equal(JSON.stringify({ layout }), `{"layout":"${TWITTER}"}`);
      assert.equal(inspect(layout), `Layout('${TWITTER}')`);
      const ids = new Snowflake({ layout, node: 1, clock: held });
      assert.ok(ids.layout.equals(twitter));
      assert.equal(ids.layout, ids.layout);
    },
  );

  test("what a layout does not equal", () => {
    const layout = new Layout("twitter");
    for (const other of [new Layout("leaf"), TWITTER, null, undefined, {}])
      assert.equal(layout.equals(other), false);
  });

  test("presets", () => {
    assert.ok(Layout.presets.includes("twitter") && Layout.presets.includes("js-safe"));
    for (const name of Layout.presets)
      assert.ok(new Layout(String(new Layout(name))).equals(new Layout(name)), name);
  });

  test("properties", () => {
    const layout = new Layout("twitter");
    assert.deepEqual([layout.epochMs, layout.tickMs, layout.endsAtMs], [1288834974657n, 1n, 3487858230208n]);
    assert.equal(layout.epoch.toISOString(), "2010-11-04T01:42:54.657Z");
    assert.equal(layout.endsAt.toISOString(), "2080-07-10T17:30:30.208Z");
    assert.deepEqual(
      [layout.idsPerTick, layout.nodes, layout.totalBits, layout.nodeBits],
      [4096, 1024, 63, 10],
    );
    assert.deepEqual([layout.timestampBits, layout.timestampShift], [41, 22]);
    assert.deepEqual([layout.sequenceBits, layout.sequenceShift], [12, 0]);
    assert.deepEqual(layout.fields, [
      { name: "timestamp", bits: 41, shift: 22, mask: ((1n << 41n) - 1n) << 22n },
      { name: "datacenter", bits: 5, shift: 17, mask: 31n << 17n },
      { name: "worker", bits: 5, shift: 12, mask: 31n << 12n },
      { name: "sequence", bits: 12, shift: 0, mask: 4095n },
    ]);
  });

  test("a layout that outlives Date", () => {
    const layout = new Layout("timestamp:60|sequence:4@0/1ms");
    assert.equal(layout.endsAt, null);
    assert.equal(layout.endsAtMs, 2n ** 60n - 1n);
    const last = layout.decode(2n ** 64n - 1n);
    assert.deepEqual([last.time, last.timestampMs], [null, 2n ** 60n - 1n]);
    const lastDate = 8_640_000_000_000_000n;
    assert.equal(layout.decode(layout.minId(lastDate)).time.getTime(), Number(lastDate));
    assert.equal(layout.decode(layout.minId(lastDate + 1n)).time, null);
    assert.equal(JSON.parse(JSON.stringify(last)).time, null);
  });
});

describe("decoding", () => {
  test("a Discord ID", () => {
    const layout = new Layout("discord");
    const decoded = layout.decode("175928847299117063");
    assert.ok(decoded instanceof Decoded);
    assert.equal(decoded.id, 175928847299117063n);
    assert.equal(decoded.time.toISOString(), "2016-04-30T11:18:25.796Z");
    assert.deepEqual([decoded.timestampMs, decoded.ticks], [1462015105796n, 1462015105796n - 1420070400000n]);
    assert.deepEqual(decoded.fields, { worker: 1, process: 0 });
    assert.deepEqual([decoded.node, decoded.sequence], [32, 7]);
    assert.equal(decoded.layout, layout);
  });

  test("JSON, where bigints are strings", () => {
    assert.equal(
      JSON.stringify(new Layout("discord").decode(175928847299117063n)),
      '{"id":"175928847299117063","time":"2016-04-30T11:18:25.796Z","timestampMs":"1462015105796",' +
        '"ticks":"41944705796","node":32,"fields":{"worker":1,"process":0},"sequence":7}',
    );
  });

  test("it compares as a value", () => {
    const layout = new Layout("discord");
    const decoded = layout.decode(175928847299117063n);
    assert.ok(decoded.equals(new Snowflake({ layout, node: 3, clock: held }).decode("175928847299117063")));
    for (const other of [
      layout.decode(175928847299117064n),
      new Layout("twitter").decode(175928847299117063n),
      175928847299117063n,
      null,
    ]) {
      assert.equal(decoded.equals(other), false);
    }
    assert.match(inspect(decoded), /Decoded.*id: 175928847299117063n.*worker: 1.*sequence: 7/s);
  });

  test("a Number that is a safe integer", () => {
    assert.equal(new Layout("twitter").decode(Number.MAX_SAFE_INTEGER).id, 2n ** 53n - 1n);
    assert.equal(new Layout("twitter").decode(-0).id, 0n);
  });
});

describe("instants", () => {
  const date = new Date("2024-02-29T12:30:15.250Z");
  each(
    test,
    "are the same in every form",
    [
      ["Date", date],
      ["Number", date.getTime()],
      ["bigint", BigInt(date.getTime())],
    ],
    (time) => {
      const layout = new Layout("twitter");
      const ticks = BigInt(date.getTime()) - layout.epochMs;
      assert.equal(layout.minId(time), ticks << 22n);
      assert.equal(layout.maxId(time), (ticks << 22n) | (2n ** 22n - 1n));
      const id = layout.compose(time, { datacenter: 3, worker: 4 }, 5);
      assert.equal(id, (ticks << 22n) | (3n << 17n) | (4n << 12n) | 5n);
      assert.equal(layout.compose(time, (3 << 5) | 4, "5"), id);
      assert.deepEqual(layout.decode(id).time, date);
    },
  );

  test("a layout without a node field composes with null", () => {
    assert.equal(new Layout("mastodon").compose(T, null, 7), (BigInt(T) << 16n) | 7n);
  });

  test("a time range contains the IDs of its instants", () => {
    const layout = new Layout("sonyflake");
    const [low, high] = [layout.minId(T + 1), layout.maxId(T + 19)];
    for (const [ms, inside] of [
      [T, false],
      [T + 10, true],
      [T + 20, false],
    ]) {
      const id = layout.compose(ms, 65535, 0);
      assert.equal(low <= id && id <= high, inside, `${ms}`);
    }
  });
});

describe("issuing", () => {
  test("every call continues after the last ID", async () => {
    const ids = new Snowflake({ node: 5, clock: held, sequenceStart: "zero" });
    const array = new BigUint64Array(2);
    const issued = [ids.nextId(), ids.tryNextId(), ids.next().value, ...ids.nextIds(3)];
    ids.fill(array);
    issued.push(
      ...array,
      BigInt(ids.nextIdString()),
      await ids.nextIdAsync(),
      ...(await ids.nextIdsAsync(2)),
    );
    const decoded = issued.map((id) => ids.decode(id));
    assert.deepEqual(
      decoded.map(({ sequence }) => sequence),
      [...issued.keys()],
    );
    for (const { timestampMs, node } of decoded) assert.deepEqual([timestampMs, node], [BigInt(T), 5]);
  });

  test("it is an iterator", () => {
    const ids = new Snowflake({ node: 5, clock: held });
    assert.equal(ids[Symbol.iterator](), ids);
    const issued = [];
    for (const id of ids) {
      issued.push(id);
      if (issued.length === 3) break;
    }
    const { value, done } = ids.next();
    assert.equal(done, false);
    const [first, second] = ids;
    issued.push(value, first, second, ...take(ids, 3));
    assertRising(issued);
    assert.equal(issued.length, 9);
  });

  for (const format of FORMATS) {
    test(`nextIdString as ${format}`, () => {
      const ids = new Snowflake({ node: 5, clock: held });
      const before = ids.nextId();
      const text = ids.nextIdString(format);
      assert.equal(parseId(text, format), before + 1n);
      assert.equal(text, formatId(before + 1n, format));
    });
  }

  test("nextIdString takes an ID even if there is no such format", () => {
    const ids = new Snowflake({ layout: ROOMY, node: 5, clock: held });
    const before = ids.nextId();
    fails(() => ids.nextIdString("base64"), "INVALID_OPTION");
    assert.equal(ids.nextId(), before + 2n);
  });

  test("a clock that uses other Snowflakes and formats changes neither the ID nor its format", () => {
    const other = new Snowflake({ layout: ROOMY, node: 6, clock: held });
    const clock = () => {
      assert.equal(formatId(255n, "base62"), "00000000047");
      other.nextIdString("base58");
      assert.equal(other.decode(other.nextId()).node, 6);
      return T;
    };
    const ids = new Snowflake({ layout: ROOMY, node: 5, clock });
    const id = ids.nextId();
    assert.equal(ids.decode(id).node, 5);
    assert.equal(ids.nextIdString("hex"), (id + 1n).toString(16));
    assert.deepEqual([...ids.nextIds(2)], [id + 2n, id + 3n]);
  });

  test("nextIdString is decimal by default", () => {
    const ids = new Snowflake({ node: 5, clock: held });
    assert.equal(ids.nextIdString(), String(ids.nextId() - 1n));
    assert.equal(JSON.stringify({ id: ids.nextIdString(undefined) }), `{"id":"${ids.nextId() - 1n}"}`);
  });

  test("nextIdNumber with js-safe", () => {
    const ids = new Snowflake({ layout: "js-safe", node: 3, clock: () => Date.parse("2090-01-01") });
    const id = ids.nextIdNumber();
    assert.ok(Number.isSafeInteger(id));
    assert.equal(ids.nextId(), BigInt(id) + 1n);
    assert.equal(ids.decode(id).fields.worker, 3);
    assert.equal(JSON.parse(JSON.stringify(id)), id);
  });

  test("nextIdNumber fails if a Number may lose digits, and takes no ID", () => {
    const ids = new Snowflake({ node: 3, clock: held });
    const before = ids.nextId();
    assert.throws(() => ids.nextIdNumber(), {
      name: "RangeError",
      message: /63 bits.* 53.*nextIdString.*js-safe/,
    });
    assert.equal(ids.nextId(), before + 1n);
    const widest = new Snowflake({ layout: "timestamp:45|sequence:8@0/1ms", clock: held });
    assert.ok(Number.isSafeInteger(widest.nextIdNumber()));
    const wider = new Snowflake({ layout: "timestamp:46|sequence:8@0/1ms", clock: held });
    assert.throws(() => wider.nextIdNumber(), { name: "RangeError", message: /54 bits/ });
  });

  for (const n of [1, 511, 512, 513, 5000n, "100000"]) {
    test(`nextIds(${n})`, () => {
      const ids = new Snowflake({ layout: ROOMY, node: 9, clock: held });
      const issued = ids.nextIds(n);
      assert.ok(issued instanceof BigUint64Array);
      assert.equal(issued.length, Number(n));
      assertRising(issued);
      assert.equal(ids.nextId(), issued.at(-1) + 1n);
    });
  }

  test("the largest batch", () => {
    const ids = new Snowflake({ layout: ROOMY, node: 9, clock: held });
    const issued = ids.nextIds(2 ** 24);
    assert.equal(issued.length, 2 ** 24);
    assert.equal(issued.at(-1) - issued[0], 2n ** 24n - 1n);
  });

  test("IDs of 64 bits", () => {
    const last = 2 ** 48 - 1;
    const ids = new Snowflake({ layout: "timestamp:48|sequence:16@0/1ms", clock: () => last });
    const issued = ids.nextIds(3);
    assert.ok(issued[0] > 2n ** 63n);
    assert.equal(ids.nextId(), issued[2] + 1n);
    assert.equal(ids.decode(issued[0]).timestampMs, BigInt(last));
  });

  test("a clock may return a bigint", () => {
    const ids = new Snowflake({ node: 5, clock: () => BigInt(T) });
    assert.equal(ids.decode(ids.nextId()).timestampMs, BigInt(T));
  });

  test("a clock may use another Snowflake, and its own", () => {
    const inner = new Snowflake({ layout: "leaf", node: 5, clock: held });
    const issued = [];
    const outer = new Snowflake({
      node: 6,
      clock() {
        if (issued.length === 0) {
          issued.push(0n);
          issued[0] = outer.nextId();
        }
        return inner.decode(inner.nextId()).timestampMs;
      },
    });
    issued.push(outer.nextId(), ...outer.nextIds(5));
    assertRising(issued);
    assert.equal(outer.decode(issued[0]).timestampMs, BigInt(T));
  });

  test("a method works through call, and only on a Snowflake", () => {
    const ids = new Snowflake({ node: 5, clock: held });
    const { nextId } = Snowflake.prototype;
    assert.equal(nextId.call(ids) + 1n, ids.nextId());
    assert.throws(() => nextId.call({}), TypeError);
  });

  test("a subclass", () => {
    class Orders extends Snowflake {
      nextId() {
        return super.nextId() | 0n;
      }
    }
    const ids = new Orders({ node: 5, clock: held });
    assertRising([ids.nextId(), ids.nextId(), ids.next().value]);
    assert.ok(ids instanceof Snowflake);
  });
});

describe("fill", () => {
  const KINDS = [
    ["an array", (count) => new BigUint64Array(count)],
    ["a subarray", (count) => new BigUint64Array(count + 7).subarray(5, -2)],
    ["shared memory", (count) => new BigUint64Array(new SharedArrayBuffer(8 * count))],
    [
      "a part of shared memory",
      (count) => new BigUint64Array(new SharedArrayBuffer(8 * count + 16), 8, count),
    ],
    [
      "a resizable buffer",
      (count) => new BigUint64Array(new ArrayBuffer(8 * count, { maxByteLength: 16 * count + 8 })),
    ],
  ];
  for (const count of [0, 1, 511, 512, 513, 16_385, 100_000]) {
    each(test, `${count} into`, KINDS, (make) => {
      const ids = new Snowflake({ layout: ROOMY, node: 9, clock: held, sequenceStart: "zero" });
      const array = make(count);
      const first = ids.nextId();
      assert.equal(ids.fill(array), undefined);
      assert.equal(array.length, count);
      for (let at = 0; at < count; at += 1) {
        if (array[at] !== first + BigInt(at + 1)) assert.fail(`at ${at}: ${array[at]} after ${first}`);
      }
      assert.equal(ids.nextId(), first + BigInt(count + 1));
    });
  }

  test("it touches nothing else", () => {
    const whole = new BigUint64Array(8).fill(5n);
    new Snowflake({ node: 9, clock: held }).fill(whole.subarray(3, 5));
    assert.deepEqual([...whole.subarray(0, 3), ...whole.subarray(5)], [5n, 5n, 5n, 5n, 5n, 5n]);
    assert.equal(whole[4], whole[3] + 1n);
  });
});

describe("without blocking", () => {
  test("nextIdAsync", async () => {
    const ids = new Snowflake({ node: freshNode() });
    const issued = [await ids.nextIdAsync(), await ids.nextIdAsync(), ids.nextId()];
    assertRising(issued);
    assert.equal(typeof issued[0], "bigint");
  });

  for (const n of [1, 512, 5000n, "30000"]) {
    test(`nextIdsAsync(${n})`, async () => {
      const ids = new Snowflake({ node: freshNode() });
      const issued = await ids.nextIdsAsync(n);
      assert.ok(issued instanceof BigUint64Array);
      assert.equal(issued.length, Number(n));
      assertRising([...issued, ids.nextId()]);
    });
  }

  test("a batch does not block the event loop while it waits", async () => {
    // With four IDs per tick, the batch waits for some 250 ticks.
    const layout = "timestamp:41|worker:10|sequence:2@1288834974657/1ms";
    const ids = new Snowflake({ layout, node: 1, maxWaitMs: 60_000 });
    await doesNotBlock(async () => assertRising(await ids.nextIdsAsync(1000)));
  });

  test("batches at the same time share the cursor", async () => {
    const node = freshNode();
    const batches = Array.from({ length: 8 }, () =>
      new Snowflake({ node, maxWaitMs: 60_000 }).nextIdsAsync(5000),
    );
    const issued = (await Promise.all(batches)).map((batch) => [...batch]);
    for (const batch of issued) assertRising(batch);
    assert.equal(new Set(issued.flat()).size, 40_000);
  });

  test("more batches than libuv's pool has threads", async () => {
    const layout = "timestamp:41|worker:10|sequence:6@1288834974657/1ms";
    const ids = new Snowflake({ layout, node: 2, maxWaitMs: 60_000 });
    const batches = await Promise.all(Array.from({ length: 12 }, () => ids.nextIdsAsync(100)));
    assert.equal(new Set(batches.flatMap((batch) => [...batch])).size, 1200);
  });

  test("errors reject", async () => {
    const ids = new Snowflake({ node: 5, clock: held });
    await failsLater(ids.nextIdsAsync(0), "INVALID_OPTION", "n is 0", "1 to 16777216");
    await assert.rejects(ids.nextIdsAsync(1.5), { name: "TypeError", message: /n is 1\.5/ });
    await assert.rejects(ids.nextIdsAsync(true), TypeError);
    const late = new Snowflake({ node: 5, clock: () => 0 });
    await failsLater(late.nextIdAsync(), "TIME_OUT_OF_RANGE");
    await failsLater(late.nextIdsAsync(5), "TIME_OUT_OF_RANGE");
  });

  test("an error on a thread rejects too", async () => {
    const ids = new Snowflake({ layout: "baidu", node: 5 });
    await failsLater(ids.nextIdAsync(), "TIME_OUT_OF_RANGE", "1463673600000");
    await failsLater(ids.nextIdsAsync(5), "TIME_OUT_OF_RANGE", "1463673600000");
  });
});

describe("stats", () => {
  test("count waits and rollbacks", () => {
    let now = T;
    const ids = new Snowflake({ node: 5, clock: () => now, maxAheadMs: 2, sequenceStart: "zero" });
    assert.deepEqual(ids.stats, { waits: 0, rollbacks: 0, leadMs: 0, lastIssuedMs: null, leaseLosses: 0 });
    ids.nextIds(2 * 4096 + 1);
    assert.deepEqual(ids.stats, {
      waits: 0,
      rollbacks: 0,
      leadMs: 2,
      lastIssuedMs: BigInt(T + 2),
      leaseLosses: 0,
    });
    ids.nextIds(4095);
    fails(() => ids.tryNextId(), "SEQUENCE_EXHAUSTED");
    assert.deepEqual([ids.stats.waits, ids.stats.rollbacks], [1, 0]);
    now = T - 5000;
    fails(() => ids.tryNextId(), "CLOCK_MOVED_BACKWARDS");
    assert.deepEqual([ids.stats.rollbacks, ids.stats.leadMs], [1, 5002]);
  });
});

describe("shared cursors", () => {
  test("twitter and leaf with the same node share a cursor", () => {
    const node = freshNode();
    const layouts = ["twitter", "leaf", TWITTER, new Layout("leaf")];
    const clocks = ["system", "steady", undefined, "system"];
    const generators = layouts.map((layout, at) => new Snowflake({ layout, node, clock: clocks[at] }));
    const issued = [];
    for (let n = 0; n < 2000; n += 1) for (const ids of generators) issued.push(ids.nextId());
    assertRising(issued);
    assert.equal(new Set(generators.map((ids) => ids.stats.lastIssuedMs)).size, 1);
  });

  test("a Snowflake for each call", () => {
    const node = freshNode();
    assertRising(Array.from({ length: 5000 }, () => new Snowflake({ node }).nextId()));
  });

  for (const bound of ["maxAheadMs", "maxBackwardMs"]) {
    test(`a different ${bound} on the same cursor fails`, () => {
      const node = freshNode();
      new Snowflake({ node });
      fails(
        () => new Snowflake({ layout: "leaf", node, [bound]: 5 }),
        "INVALID_OPTION",
        `${bound} is 5`,
        "already",
      );
      assert.ok(new Snowflake({ node, maxWaitMs: 60_000, sequenceStart: "zero" }).nextId() > 0n);
    });
  }

  test("Snowflakes with a clock function share nothing", () => {
    const [first, second] = [1, 2].map(() => new Snowflake({ node: 5, clock: held }));
    assert.deepEqual(first.nextIds(10), second.nextIds(10));
  });
});

describe("values do not change", () => {
  const ids = new Snowflake({ node: 5, clock: held });
  const layout = new Layout("twitter");
  const decoded = layout.decode(1n);
  each(
    test,
    "it is frozen",
    [
      ["a Decoded's fields", decoded.fields, "worker"],
      ["a new field", decoded.fields, "other"],
      ["stats", ids.stats, "waits"],
      ["Layout.presets", Layout.presets, 0],
      ["layout.fields", layout.fields, 0],
      ["a field", layout.fields[0], "bits"],
    ],
    (value, name) => {
      assert.ok(Object.isFrozen(value));
      assert.throws(() => {
        value[name] = 5;
      }, TypeError);
    },
  );

  each(
    test,
    "it has no setter",
    [
      ["layout", layout, ["epochMs", "epoch", "tickMs", "endsAtMs", "fields", "nodes", "totalBits"]],
      ["Snowflake", ids, ["layout", "node", "stats"]],
      ["Decoded", decoded, ["id", "timestampMs", "time", "ticks", "node", "fields", "sequence", "layout"]],
      [
        "DecodedAll",
        layout.decodeAll(new BigUint64Array(1)),
        ["ids", "timestampsMs", "ticks", "nodes", "sequences", "layout"],
      ],
    ],
    (value, names) => {
      for (const name of names) {
        assert.throws(() => {
          value[name] = 5;
        }, TypeError);
      }
    },
  );

  test("changing a Date changes nothing", () => {
    layout.epoch.setTime(0);
    assert.equal(layout.epoch.getTime(), 1288834974657);
    decoded.time.setTime(0);
    assert.equal(decoded.time.getTime(), 1288834974657);
  });
});

test("Snowflakes that are dropped and made again issue each its own IDs", async () => {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc");
  const make = (node) => ({ node, ids: new Snowflake({ layout: "leaf", node, clock: held }) });
  let kept = [];
  for (let round = 0; round < 5; round += 1) {
    const all = Array.from({ length: 1024 }, (_, node) => make(node));
    kept = [...kept.slice(0, 200), ...all.filter(({ node }) => node % 7 === round)];
    for (const { node, ids } of [...all, ...kept]) {
      assert.equal(ids.decode(ids.nextId()).node, node);
      assert.equal(ids.decode(BigInt(`0x${ids.nextIdString("hex")}`)).node, node);
      assert.equal(ids.decode(ids.nextIds(1)[0]).node, node);
    }
    all.length = 0;
    gc();
    await turn();
  }
});

test("a Snowflake that only its own call refers to", () => {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc");
  for (const call of ["nextId", "nextIdString"]) {
    const clock = () => {
      gc();
      new Snowflake({ layout: "leaf", node: 9, clock: held }).nextId();
      return T;
    };
    const id = BigInt(new Snowflake({ layout: "leaf", node: 5, clock })[call]());
    assert.equal(new Layout("leaf").decode(id).node, 5);
  }
});

describe("texts", () => {
  for (const format of FORMATS) {
    test(`${format} round-trips`, () => {
      for (const id of [0n, 1n, 38358284406638839n, 2n ** 63n, 2n ** 64n - 1n]) {
        assert.equal(parseId(formatId(id, format), format), id);
        assert.equal(formatId(String(id), format), formatId(id, format));
      }
    });
  }

  test("examples", () => {
    assert.equal(formatId(38358284406638839n, "base32"), "01226N0640J7Q");
    assert.equal(formatId("38358284406638839"), "38358284406638839");
    assert.equal(formatId(255, "hex"), "ff");
    assert.equal(parseId("o1226n064oj7q", "base32"), 38358284406638839n);
    assert.equal(parseId("FF", "hex"), 255n);
    assert.equal(parseId("007"), 7n);
  });
});

// These tests run in a separate process, with access to the garbage collector.
describe("memory", () => {
  function run(code) {
    const head = `
      import { Snowflake } from "polyflake";
      const turn = () => new Promise((resume) => setTimeout(resume));
      async function collect() {
        for (let n = 0; n < 5; n += 1) { gc(); await turn(); }
      }
    `;
    return execFileSync(process.execPath, ["--expose-gc", "--input-type=module", "-e", head + code], {
      cwd: import.meta.dirname,
      encoding: "utf8",
    });
  }

  test("a Snowflake keeps its clock", () => {
    const code = `
      const ids = new Snowflake({ node: 1, clock: () => ${T} });
      const first = ids.nextId();
      await collect();
      console.log(ids.nextId() - first, (await ids.nextIdsAsync(2)).at(-1) - first);
    `;
    assert.equal(run(code), "1n 3n\n");
  });

  test("a clock that refers to its Snowflake is collected with it", () => {
    const code = `
      let collected = 0;
      const registry = new FinalizationRegistry(() => { collected += 1; });
      for (let n = 0; n < 100; n += 1) {
        const owner = { now: ${T}, ids: new Snowflake({ node: 1, clock: () => owner.now }) };
        owner.ids.nextId();
        registry.register(owner);
      }
      await collect();
      console.log(collected > 90);
    `;
    assert.equal(run(code), "true\n");
  });
});

describe("memory that goes away", () => {
  const shrinking = () => new ArrayBuffer(8 * 3000, { maxByteLength: 8 * 3000 });
  const WAYS = [
    [
      "given away",
      () => new ArrayBuffer(8 * 3000),
      (buffer) => structuredClone(buffer, { transfer: [buffer] }),
    ],
    ["shrunk to one ID", shrinking, (buffer) => buffer.resize(8)],
    ["shrunk to nothing", shrinking, (buffer) => buffer.resize(0)],
  ];

  /** Fills the array. A TypeError is allowed, since the array may have lost its memory. */
  function fill(ids, array) {
    try {
      ids.fill(array);
    } catch (error) {
      assert.ok(error instanceof TypeError, `${error}`);
    }
  }

  each(test, "before the call", WAYS, (make, lose) => {
    const ids = new Snowflake({ node: 9, clock: held });
    const buffer = make();
    const array = new BigUint64Array(buffer, 16, 2);
    lose(buffer);
    const before = ids.nextId();
    fill(ids, array);
    assert.ok(ids.nextId() > before);
  });

  // Repeated, so that leaks would add up.
  each(test, "while the clock is read", WAYS, (make, lose) => {
    for (let n = 0; n < 1000; n += 1) {
      const buffer = make();
      let readings = 0;
      const clock = () => {
        readings += 1;
        if (readings === 1 + (n % 3)) lose(buffer);
        return T;
      };
      const ids = new Snowflake({ layout: ROOMY, node: 9, clock });
      fill(ids, new BigUint64Array(buffer));
      assert.ok(buffer.byteLength <= 8);
    }
    assert.equal(new Snowflake({ layout: ROOMY, node: 9, clock: held }).nextIds(3000).length, 3000);
  });
});

test("a Snowflake shows its layout and its node", () => {
  const ids = new Snowflake({ node: 7, clock: held });
  assert.equal(inspect(ids), `Snowflake { layout: '${TWITTER}', node: 7 }`);
});
