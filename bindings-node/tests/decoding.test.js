// Checks the values that the package itself extracts from an ID, using the core's shifts and masks, against bigint
// arithmetic, and tests columns.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { Layout, Snowflake } from "polyflake";
import { each, fails, T } from "./support.js";

const LAYOUTS = [
  "twitter",
  "js-safe",
  "seata",
  "mastodon",
  "baidu",
  "sonyflake",
  // Layouts of up to 64 bits, with timestamps above and below the 53 bits that a Number holds.
  "timestamp:42|node:10|sequence:12@1577836800000/1ms",
  "timestamp:63|sequence:1@0/1ms",
  "timestamp:53|node:10|sequence:1@0/1ms",
  "timestamp:54|node:9|sequence:1@0/1ms",
  "timestamp:1|sequence:32@0/1ms",
  "timestamp:32|node:1|sequence:31@0/1ms",
  "timestamp:31|node:1|sequence:32@0/1ms",
  // Instants past 2^53, because of the epoch or the tick.
  "timestamp:41|worker:10|sequence:12@9007199254740993/1ms",
  "timestamp:41|worker:10|sequence:12@9005000231485440/1ms",
  "timestamp:41|worker:10|sequence:12@9005000231485441/1ms",
  "timestamp:50|sequence:14@7/1s",
  "timestamp:43|sequence:20@1577836800001/1s",
  // Node fields above, around and below the timestamp, and across the middle of the ID.
  "a:7|timestamp:30|b:9|sequence:5|c:13@1577836800000/10ms",
  "a:16|timestamp:31|sequence:1|b:16@0/3ms",
  "a:1|b:2|c:3|timestamp:27|d:4|e:5|f:6|sequence:1|g:5|h:6@5/1s",
  "timestamp:28|node:32|sequence:4@0/1ms",
].map((text) => new Layout(text));

const sorted = (values) => [...new Set(values)].sort((a, b) => (a < b ? -1 : 1));

/** IDs with all bits set, none, one, or those of one field, some with no pattern, and the complements of all these. */
function idsOf(layout) {
  const max = 2n ** BigInt(layout.totalBits) - 1n;
  const bits = Array.from({ length: layout.totalBits }, (_, bit) => 1n << BigInt(bit));
  const masks = layout.fields.map(({ mask }) => mask);
  const mixed = Array.from({ length: 50 }, (_, n) => (BigInt(n) * 0x9e3779b97f4a7c15n) & max);
  const some = [0n, max, ...bits, ...masks, ...mixed];
  return sorted([...some, ...some.map((id) => max ^ id)]);
}

/** The values that an ID should decode to, according to the layout's description. */
function expected(layout, id) {
  const value = ({ shift, bits }) => (id >> BigInt(shift)) & ((1n << BigInt(bits)) - 1n);
  const named = (wanted) => value(layout.fields.find(({ name }) => name === wanted));
  const nodes = layout.fields.filter(({ name }) => name !== "timestamp" && name !== "sequence");
  return {
    id,
    timestampMs: layout.epochMs + named("timestamp") * layout.tickMs,
    ticks: named("timestamp"),
    node: Number(nodes.reduce((node, field) => (node << BigInt(field.bits)) | value(field), 0n)),
    fields: Object.fromEntries(nodes.map((field) => [field.name, Number(value(field))])),
    sequence: Number(named("sequence")),
  };
}

const values = ({ id, timestampMs, ticks, node, fields, sequence }) => ({
  id,
  timestampMs,
  ticks,
  node,
  fields,
  sequence,
});

describe("decode takes exact values from an ID", () => {
  each(
    test,
    "of",
    LAYOUTS.map((layout) => [String(layout), layout]),
    (layout) => {
      for (const id of idsOf(layout)) {
        const decoded = layout.decode(id);
        const wanted = expected(layout, id);
        assert.deepEqual(values(decoded), wanted);
        // Read the fields a second time, because they are cached for each node.
        assert.deepEqual(decoded.fields, wanted.fields);
        assert.ok(Object.isFrozen(decoded.fields));
        const time = new Date(Number(wanted.timestampMs));
        assert.deepEqual(decoded.time, Number.isNaN(time.getTime()) ? null : time);
        assert.deepEqual(values(layout.decode(String(id))), wanted);
        if (id <= Number.MAX_SAFE_INTEGER) assert.deepEqual(values(layout.decode(Number(id))), wanted);
      }
      for (const id of [-1n, 2n ** BigInt(layout.totalBits), 2n ** 64n, -(2n ** 64n)]) {
        fails(() => layout.decode(id), "INVALID_ID", `ID ${id} `);
      }
    },
  );

  test("with more nodes than are kept", () => {
    const layout = new Layout("timestamp:41|a:11|b:2|sequence:10@0/1ms");
    for (let round = 0; round < 2; round += 1) {
      for (let node = 0; node < 8192; node += 1) {
        const { fields } = layout.decode(BigInt(node) << 10n);
        if (fields.a !== node >> 2 || fields.b !== (node & 3)) assert.fail(inspect({ node, fields }));
      }
    }
  });

  test("a text is an ID only in plain decimal digits", () => {
    const layout = new Layout("twitter");
    assert.equal(layout.decode("0").id, 0n);
    for (const text of [
      "",
      " 1",
      "1 ",
      "1\n",
      "+1",
      "-1",
      "01",
      "00",
      "0x1",
      "0b1",
      "1n",
      "1e3",
      "1_0",
      "١",
    ]) {
      fails(() => layout.decode(text), "INVALID_ID");
    }
  });
});

describe("a Decoded", () => {
  const layout = new Layout("discord");
  const decoded = layout.decode(175928847299117063n);

  test("is compared by tests, which look at an object's own properties", () => {
    assert.deepEqual(decoded, layout.decode("175928847299117063"));
    assert.notDeepEqual(decoded, layout.decode(175928847299117064n));
    assert.notDeepEqual(decoded, new Layout("twitter").decode(175928847299117063n));
  });

  test("shows its values in Node, also inside of others", () => {
    const shown = inspect(
      { rows: [decoded] },
      { depth: 5, breakLength: Number.POSITIVE_INFINITY, compact: 9 },
    );
    assert.equal(
      shown,
      "{ rows: [ Decoded { id: 175928847299117063n, timestampMs: 1462015105796n, ticks: 41944705796n, node: 32, " +
        "fields: { worker: 1, process: 0 }, sequence: 7 } ] }",
    );
  });

  test("has values that do not depend on what is decoded meanwhile", () => {
    const before = values(decoded);
    for (let n = 0n; n < 5000n; n += 1n) assert.equal(layout.decode(n << 12n).node, Number(n & 1023n));
    assert.deepEqual(values(decoded), before);
  });
});

describe("decodeAll", () => {
  each(
    test,
    "gives the columns of what decode gives, for",
    LAYOUTS.map((layout) => [String(layout), layout]),
    (layout) => {
      const ids = BigUint64Array.from(idsOf(layout));
      const all = layout.decodeAll(ids);
      const one = [...ids].map((id) => layout.decode(id));
      assert.equal(all.ids, ids);
      assert.equal(all.layout, layout);
      assert.deepEqual(
        all.timestampsMs,
        BigUint64Array.from(one, ({ timestampMs }) => timestampMs),
      );
      assert.deepEqual(
        all.ticks,
        BigUint64Array.from(one, ({ ticks }) => ticks),
      );
      assert.deepEqual(
        all.nodes,
        Uint32Array.from(one, ({ node }) => node),
      );
      assert.deepEqual(
        all.sequences,
        Uint32Array.from(one, ({ sequence }) => sequence),
      );
      for (const { name } of layout.fields) {
        const isNode = name !== "timestamp" && name !== "sequence";
        const wanted = isNode ? Uint32Array.from(one, ({ fields }) => fields[name]) : undefined;
        assert.deepEqual(all.field(name), wanted);
      }
      assert.equal(all.field("other"), undefined);
      assert.equal(all.field("toString"), undefined);
    },
  );

  test("any number of IDs, at any place of a buffer, also a shared one", () => {
    const layout = new Layout("twitter");
    for (const count of [0, 1, 511, 512, 513, 1023, 1024, 1025, 3000]) {
      for (const Buffer of [ArrayBuffer, SharedArrayBuffer]) {
        const ids = new BigUint64Array(new Buffer(8 * (count + 2)), 8, count);
        for (let at = 0; at < count; at += 1) ids[at] = (BigInt(at) << 22n) | (BigInt(at % 4096) << 2n);
        const all = layout.decodeAll(ids);
        assert.deepEqual(
          all.ticks,
          BigUint64Array.from(ids, (id) => id >> 22n),
        );
        assert.deepEqual(
          all.sequences,
          Uint32Array.from(ids, (id) => Number(id & 4095n)),
        );
      }
    }
  });

  test("a column is made once", () => {
    const all = new Layout("twitter").decodeAll(new BigUint64Array(3));
    for (const name of ["timestampsMs", "ticks", "nodes", "sequences"]) assert.equal(all[name], all[name]);
    assert.equal(all.field("worker"), all.field("worker"));
    assert.notEqual(all.field("worker"), all.field("datacenter"));
  });

  test("fields may have the names of columns", () => {
    const layout = new Layout("timestamp:40|ticks:6|nodes:6|sequences:6|sequence:6@0/1ms");
    const all = layout.decodeAll(
      new BigUint64Array([(1n << 24n) | (2n << 18n) | (3n << 12n) | (4n << 6n) | 5n]),
    );
    assert.deepEqual(
      ["ticks", "nodes", "sequences"].map((name) => all.field(name)[0]),
      [2, 3, 4],
    );
    assert.deepEqual([all.ticks[0], all.sequences[0]], [1n, 5]);
  });

  test("refuses the first ID that does not fit, and names it", () => {
    const layout = new Layout("twitter");
    for (const at of [0, 700, 1499]) {
      const ids = new BigUint64Array(1500);
      ids[at] = 2n ** 63n + 5n;
      ids[1499] = 2n ** 63n + (at === 1499 ? 5n : 6n);
      fails(() => layout.decodeAll(ids), "INVALID_ID", String(2n ** 63n + 5n));
    }
    const ids = new BigUint64Array(1);
    const all = layout.decodeAll(ids);
    ids[0] = 2n ** 64n - 1n;
    fails(() => all.ticks, "INVALID_ID", String(2n ** 64n - 1n));
  });

  test("takes nothing but a BigUint64Array", () => {
    const layout = new Layout("twitter");
    for (const value of [
      undefined,
      null,
      1n,
      [1n],
      new BigInt64Array(1),
      new ArrayBuffer(8),
      new Uint8Array(8),
    ]) {
      assert.throws(() => layout.decodeAll(value), {
        name: "TypeError",
        message: /decodeAll.*BigUint64Array/,
      });
    }
  });

  test("a Snowflake's own layout", () => {
    const ids = new Snowflake({ layout: "leaf", node: 5, clock: () => T });
    const all = ids.decodeAll(ids.nextIds(10));
    assert.deepEqual(new Set(all.nodes), new Set([5]));
    assert.deepEqual(new Set(all.field("worker")), new Set([5]));
    assert.deepEqual(new Set(all.timestampsMs), new Set([BigInt(T)]));
  });
});
