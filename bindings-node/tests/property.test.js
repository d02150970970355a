// Random layouts, instants, strings and clocks. POLYFLAKE_PROPERTY_CASES sets how many of each (default: 300).
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { formatId, Layout, PolyflakeError, parseId, Snowflake } from "polyflake";
import { assertRising, T } from "./support.js";

const CASES = Number(process.env.POLYFLAKE_PROPERTY_CASES ?? 300);
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
const LATEST = 2n ** 63n - 1n;

const holds = (name, ...parts) => {
  const property = fc.property(...parts);
  test(name, () => fc.assert(property, { numRuns: CASES }));
};

/** The parts of a valid layout, of any shape. */
const layoutParts = fc
  .record({
    sequence: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 32 })),
    timestamp: fc.integer({ min: 1, max: 62 }),
    nodes: fc.array(
      fc.record({
        bits: fc.integer({ min: 1, max: 12 }),
        place: fc.constantFrom("above", "between", "below"),
      }),
      {
        maxLength: 8,
      },
    ),
    epoch: fc.bigInt({ min: 0n, max: LATEST }),
    tick: fc.oneof(fc.constantFrom(1n, 1n, 10n, 1000n), fc.bigInt({ min: 1n, max: LATEST })),
  })
  .map(({ sequence, timestamp, nodes, epoch, tick }) => {
    const timestampBits = Math.min(timestamp, 64 - sequence);
    let room = Math.min(32, 64 - sequence - timestampBits);
    const placed = { above: [], between: [], below: [] };
    for (const [n, { bits, place }] of nodes.entries()) {
      const fits = Math.min(bits, room);
      if (fits > 0) placed[place].push([`field-${n}`, fits]);
      room -= fits;
    }
    const { above, between, below } = placed;
    const fields = [...above, ["timestamp", timestampBits], ...between, ["sequence", sequence], ...below];
    const ticks = 1n << BigInt(timestampBits);
    const longestTick = 2n ** 63n / ticks;
    const tickMs = tick < longestTick ? tick : longestTick;
    const latestEpoch = 2n ** 63n - ticks * tickMs;
    const epochMs = epoch < latestEpoch ? epoch : latestEpoch;
    return { fields, epochMs, tickMs };
  });

const layouts = layoutParts.map((parts) => new Layout(parts));
const fraction = fc.integer({ min: 0, max: 2 ** 32 });
/** Returns the whole number that lies the given fraction of the way from `low` to `high`. */
const between = (low, high, share) => low + ((high - low) * BigInt(share)) / 2n ** 32n;

describe("layouts", () => {
  holds("text and parts round-trip", layoutParts, (parts) => {
    const layout = new Layout(parts);
    const names = parts.fields.map(([name, bits]) => `${name}:${bits}`).join("|");
    const { epochMs, tickMs } = parts;
    const text = String(layout);
    assert.ok(text.startsWith(`${names}@${epochMs}/`), text);
    for (const other of [
      new Layout(text),
      new Layout(`${names}@${epochMs}/${tickMs}ms`),
      new Layout({ ...parts, fields: Object.fromEntries(parts.fields) }),
      new Layout({ fields: layout.fields.map(({ name, bits }) => [name, bits]), epochMs, tickMs }),
    ]) {
      assert.ok(layout.equals(other) && String(other) === text);
    }
    assert.deepEqual([layout.epochMs, layout.tickMs], [epochMs, tickMs]);
    assert.equal(
      layout.totalBits,
      parts.fields.reduce((sum, [, bits]) => sum + bits, 0),
    );
    assert.equal(layout.endsAtMs, epochMs + 2n ** BigInt(layout.timestampBits) * tickMs - 1n);
    assert.equal(layout.nodes, 2 ** layout.nodeBits);
    assert.equal(layout.idsPerTick, 2 ** layout.sequenceBits);
    const masks = layout.fields.reduce((all, { mask }) => {
      assert.equal(all & mask, 0n);
      return all | mask;
    }, 0n);
    assert.equal(masks, 2n ** BigInt(layout.totalBits) - 1n);
  });

  holds(
    "any text is a layout that round-trips, or fails",
    fc.string({ unit: "binary", maxLength: 60 }),
    (text) => {
      try {
        assert.ok(new Layout(String(new Layout(text))).equals(new Layout(text)));
      } catch (error) {
        assert.match(error.code, /^(INVALID|UNKNOWN)_LAYOUT$/);
      }
    },
  );
});

describe("IDs", () => {
  holds("compose and decode are inverse", layouts, fraction, fraction, fraction, (layout, a, b, c) => {
    const time = between(layout.epochMs, layout.endsAtMs, a);
    const node = Number(between(0n, BigInt(layout.nodes - 1), b));
    const sequence = Number(between(0n, BigInt(layout.idsPerTick - 1), c));
    const id = layout.compose(time, node, sequence);
    const decoded = layout.decode(id);
    const ticks = (time - layout.epochMs) / layout.tickMs;
    assert.deepEqual(
      [decoded.id, decoded.ticks, decoded.node, decoded.sequence],
      [id, ticks, node, sequence],
    );
    assert.equal(decoded.timestampMs, layout.epochMs + ticks * layout.tickMs);
    assert.equal(layout.compose(decoded.timestampMs, decoded.fields, BigInt(sequence)), id);
    assert.equal(
      layout.compose(String(decoded.time) && decoded.timestampMs, String(node), String(sequence)),
      id,
    );
    for (const { name, shift, mask } of layout.fields) {
      const value = { ...decoded.fields, timestamp: ticks, sequence }[name];
      assert.equal((id & mask) >> BigInt(shift), BigInt(value), name);
    }
    assert.ok(decoded.equals(layout.decode(String(id))));
  });

  holds("every number that fits a layout's bits is an ID", layouts, fraction, (layout, share) => {
    const id = between(0n, 2n ** BigInt(layout.totalBits) - 1n, share);
    const { timestampMs, fields, sequence } = layout.decode(id);
    assert.equal(layout.compose(timestampMs, fields, sequence), id);
    assert.equal(layout.decode(JSON.parse(JSON.stringify(layout.decode(id))).id).id, id);
  });

  holds("time ranges end at ticks", layouts, fraction, (layout, share) => {
    const time = between(layout.epochMs, layout.endsAtMs, share);
    const { tickMs } = layout;
    let high;
    try {
      high = layout.maxId(time);
    } catch (error) {
      assert.equal(error.code, "INVALID_LAYOUT");
      assert.notEqual(layout.fields[0].name, "timestamp");
      return;
    }
    const last = layout.decode(high).timestampMs;
    assert.ok(last <= time && time < last + tickMs);
    assert.equal(layout.decode(high).node, layout.nodes - 1);
    if (high + 1n < 2n ** BigInt(layout.totalBits)) assert.ok(layout.decode(high + 1n).timestampMs > time);
    try {
      const low = layout.minId(time);
      const first = layout.decode(low).timestampMs;
      assert.ok(time <= first && first < time + tickMs);
      if (low > 0n) assert.ok(layout.decode(low - 1n).timestampMs < time);
    } catch (error) {
      assert.equal(error.code, "TIME_OUT_OF_RANGE");
      assert.ok(time > layout.endsAtMs - tickMs + 1n);
    }
  });
});

describe("texts", () => {
  const ids = fc.oneof(
    fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    fc.nat(64).map((bits) => 2n ** BigInt(bits) - 1n),
  );

  holds("every format round-trips", ids, (id) => {
    for (const format of FORMATS) {
      const text = formatId(id, format);
      assert.equal(parseId(text, format), id, `${format} ${text}`);
      assert.equal(formatId(String(id), format), text);
    }
    assert.equal(formatId(id), String(id));
    assert.equal(formatId(id, "hex"), id.toString(16));
    assert.equal(formatId(id, "base36"), id.toString(36));
    const bits =
      ((id >> 16n) << 80n) | (8n << 76n) | (((id >> 4n) & 0xfffn) << 64n) | (2n << 62n) | ((id & 15n) << 58n);
    assert.equal(
      formatId(id, "uuid"),
      bits
        .toString(16)
        .padStart(32, "0")
        .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"),
    );
  });

  holds("texts of equal length sort as their IDs do", ids, ids, (one, other) => {
    for (const format of ["base32", "base62", "uuid"]) {
      assert.equal(formatId(one, format) < formatId(other, format), one < other);
    }
  });

  const digits = fc.string({
    unit: fc.constantFrom(..."0123456789abcxyzABCXYZiloILOuU-_ \0é\ud800"),
    maxLength: 24,
  });
  holds("any text is an ID, or fails", digits, fc.constantFrom(...FORMATS), (text, format) => {
    try {
      const id = parseId(text, format);
      assert.equal(parseId(formatId(id, format), format), id);
    } catch (error) {
      assert.equal(error.code, "INVALID_ID");
      assert.match(error.message, /position [1-9]|empty|this string has/);
    }
  });
});

describe("generating", () => {
  // Few IDs per tick, so that many calls find none, and clock steps on both sides of every bound.
  const steps = fc.array(
    fc.record({
      by: fc.oneof(fc.constant(0), fc.integer({ min: -4, max: 4 }), fc.integer({ min: -60, max: 60 })),
      call: fc.constantFrom("nextId", "tryNextId", "next", "nextIds", "fill", "nextIdString"),
      n: fc.integer({ min: 1, max: 40 }),
    }),
    { minLength: 1, maxLength: 60 },
  );
  const options = fc.record({
    maxBackwardMs: fc.constantFrom(0, 1, 5, 30, 1000),
    maxAheadMs: fc.constantFrom(0, 0, 1, 7, 50),
    sequenceStart: fc.constantFrom("zero", "spread"),
  });

  const CALLS = {
    nextId: (ids) => [ids.nextId()],
    tryNextId: (ids) => [ids.tryNextId()],
    next: (ids) => [ids.next().value],
    nextIdString: (ids) => [BigInt(ids.nextIdString())],
    nextIds: (ids, n) => [...ids.nextIds(n)],
    fill(ids, n) {
      const array = new BigUint64Array(n);
      ids.fill(array);
      return [...array];
    },
  };

  for (const tickMs of [1, 3]) {
    holds(
      `whatever the clock does, no ID repeats, with a tick of ${tickMs} ms`,
      options,
      fc.integer({ min: 0, max: 3 }),
      steps,
      (bounds, node, script) => {
        const layout = new Layout(`timestamp:41|node:2|sequence:3@${T - 30}/${tickMs}ms`);
        let now = T;
        const ids = new Snowflake({ ...bounds, layout, node, maxWaitMs: 0, clock: () => now });
        const ticksOf = (ms) => BigInt(Math.floor(ms / tickMs));
        const all = [];
        for (const { by, call, n } of script) {
          now += by;
          const lead = ids.stats.leadMs;
          const last = all.at(-1) === undefined ? -1n : ids.decode(all.at(-1)).ticks;
          try {
            const issued = CALLS[call](ids, n);
            for (const id of issued) {
              const decoded = ids.decode(id);
              assert.equal(decoded.node, node);
              const ahead = ticksOf(now - (T - 30)) + ticksOf(bounds.maxAheadMs);
              assert.ok(
                decoded.ticks <= ahead || decoded.ticks === last,
                `${decoded.ticks}, ${ahead}, ${last}`,
              );
              assert.ok(decoded.ticks >= ticksOf(now - (T - 30)));
            }
            all.push(...issued);
          } catch (error) {
            if (!(error instanceof PolyflakeError)) throw error;
            if (error.code === "TIME_OUT_OF_RANGE") assert.ok(now < T - 30);
            else if (error.code === "CLOCK_MOVED_BACKWARDS") assert.ok(lead > 0 && error.behindMs > 0);
            else assert.equal(error.code, "SEQUENCE_EXHAUSTED");
            if (error.code !== "TIME_OUT_OF_RANGE") assert.ok(error.retryAfterMs > 0);
            // A failed batch loses the IDs it had taken, so the last ID is unknown.
            if (call === "nextIds" || call === "fill") return assertRising(all);
          }
        }
        assertRising(all);
      },
    );
  }
});

describe("anything", () => {
  const anything = fc.oneof(
    fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withNullPrototype: true,
    }),
    fc.constantFrom("twitter", "seata", "zero", "steady", "hex", 7, 7n, "7", T),
    fc.bigInt(),
    fc.record({ datacenter: fc.integer(), worker: fc.anything() }),
    fc.record({ fields: fc.anything(), epochMs: fc.anything() }),
  );
  const layout = new Layout("twitter");
  const clock = () => T;
  const CALLS = {
    "new Snowflake": (value) => new Snowflake({ clock, ...Object(value) }),
    "new Layout": (value) => new Layout(value),
    node: (value) => new Snowflake({ clock, node: value }),
    layout: (value) => new Snowflake({ clock, node: 1, layout: value }),
    maxWaitMs: (value) => new Snowflake({ clock, node: 1, maxWaitMs: value }),
    sequenceStart: (value) => new Snowflake({ clock, node: 1, sequenceStart: value }),
    clock: (value) => new Snowflake({ node: 1, clock: () => value }).nextId(),
    decode: (value) => layout.decode(value),
    "compose's time": (value) => layout.compose(value, 1, 0),
    "compose's node": (value) => layout.compose(T, value, 0),
    "compose's sequence": (value) => layout.compose(T, 1, value),
    minId: (value) => layout.minId(value),
    formatId: (value) => formatId(value),
    parseId: (value) => parseId(value),
    format: (value) => formatId(1, value),
    fields: (value) => new Layout({ fields: value, epochMs: 0 }),
    nextIds: (value) => new Snowflake({ clock, node: 1, maxWaitMs: 0 }).nextIds(value),
    equals: (value) => assert.equal(layout.equals(value) || layout.decode(1n).equals(value), false),
  };
  for (const [name, call] of Object.entries(CALLS)) {
    holds(`${name} accepts it, or throws a PolyflakeError or a TypeError`, anything, (value) => {
      try {
        call(value);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        assert.ok(error instanceof PolyflakeError || error instanceof TypeError, String(error));
        assert.notEqual(error.code, "INTERNAL");
      }
    });
  }
});
