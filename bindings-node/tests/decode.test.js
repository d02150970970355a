// The entry `polyflake/decode`, which reads IDs without the core: it gives what the core gives.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import * as polyflake from "polyflake";
import * as entry from "polyflake/decode";
import { each, thrownBy } from "./support.js";
import { layoutFields, runReadingVectors } from "./vectors.js";

const { Layout } = polyflake;
const { decode, formatId, maxId, minId, PolyflakeError, parseId, presets } = entry;
const vectors = JSON.parse(readFileSync(new URL("../../tests/vectors.json", import.meta.url), "utf8"));

runReadingVectors(entry, vectors, (section, name, run) => test(`${section} ${name}`, run));

/** A layout of the vectors, here and in the core. */
const both = (given) => [presets[given] ?? layoutFields(given), new Layout(given)];

/** What the core says in more words. */
const SHORTER = [
  [", because node field", ": node field"],
  [": no range of IDs holds a span of time", ""],
  [
    / is not the (hyphen|version|variant|end) of an ID's UUID; it takes /,
    " is not a uuid digit; the digits are ",
  ],
  [" or bwmarrin-base58", ", bwmarrin-base58"],
];

/** Checks that both calls fail in the same way. */
function failAlike(own, core) {
  const [error, wanted] = [thrownBy(own), thrownBy(core)];
  assert.deepEqual([error.name, error.code, error.number], [wanted.name, wanted.code, wanted.number]);
  assert.equal(
    error.message,
    SHORTER.reduce((message, [words, fewer]) => message.replace(words, fewer), wanted.message),
  );
}

describe("presets", () => {
  test("are those of the core", () => {
    assert.deepEqual(Object.keys(presets), [...Layout.presets]);
    for (const [name, preset] of Object.entries(presets)) {
      assert.equal(String(new Layout(preset)), String(new Layout(name)));
    }
  });

  test("are each exported, too", () => {
    const { presets: _, ...others } = entry;
    const exported = Object.entries(others).filter(([, value]) => typeof value === "object");
    const names = exported.map(([name]) => name.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`));
    assert.deepEqual(names.toSorted(), Object.keys(presets).toSorted());
    for (const [at, [, preset]] of exported.entries()) assert.equal(preset, presets[names[at]]);
  });
});

describe("decode gives what Layout.decode gives", () => {
  const layouts = new Set(vectors.decode.map(({ layout }) => layout));
  each(
    test,
    "for",
    [...layouts].map((layout) => [layout, layout]),
    (given) => {
      const [layout, core] = both(given);
      const max = 2n ** BigInt(core.totalBits) - 1n;
      const bits = Array.from({ length: core.totalBits }, (_, bit) => 1n << BigInt(bit));
      const mixed = Array.from({ length: 50 }, (_, n) => (BigInt(n) * 0x9e3779b97f4a7c15n) & max);
      for (const id of [0n, max, ...bits, ...bits.map((bit) => max ^ bit), ...mixed]) {
        const [decoded, wanted] = [decode(id, layout), core.decode(id)];
        for (const name of ["id", "time", "timestampMs", "ticks", "node", "fields", "sequence"]) {
          assert.deepEqual(decoded[name], wanted[name], name);
        }
        assert.ok(Object.isFrozen(decoded.fields));
        assert.equal(decoded.layout, layout);
        assert.deepEqual(decoded.toJSON(), wanted.toJSON());
        assert.equal(JSON.stringify(decoded), JSON.stringify(wanted));
        assert.deepEqual(Object.keys(decoded.fields), Object.keys(wanted.fields));
      }
    },
  );
});

describe("errors are those of the core", () => {
  test("an ID that does not fit", () => {
    for (const { layout: given, id } of vectors.decode_refused) {
      const [layout, core] = both(given);
      failAlike(
        () => decode(id, layout),
        () => core.decode(id),
      );
      failAlike(
        () => decode(BigInt(id), layout),
        () => core.decode(BigInt(id)),
      );
    }
  });

  test("an instant without an ID", () => {
    for (const { layout: given, time_ms, ...outcomes } of vectors.bounds) {
      const [layout, core] = both(given);
      const time = BigInt(time_ms);
      for (const [outcome, call, name] of [
        [outcomes.min_id, minId, "minId"],
        [outcomes.max_id, maxId, "maxId"],
      ]) {
        if (!outcome.error) continue;
        failAlike(
          () => call(time, layout),
          () => core[name](time),
        );
      }
    }
  });

  test("a text that is no ID", () => {
    for (const { text, format } of vectors.texts_refused) {
      failAlike(
        () => parseId(text, format),
        () => polyflake.parseId(text, format),
      );
    }
  });

  test("a text with other than plain characters, which have their numbers here", () => {
    assert.match(
      thrownBy(() => formatId("é\u202e")).message,
      /^invalid_id: ID \\u\{e9\}\\u\{202e\} does not fit/,
    );
  });

  const LONG = "7".repeat(100);
  each(
    test,
    "a wrong value",
    [
      ["a long number", ({ formatId }) => formatId(LONG)],
      ["a huge bigint", ({ formatId }) => formatId(-(10n ** 5000n))],
      ["a text with control characters", ({ formatId }) => formatId("1\u001b[2J\n")],
      ["a format that there is not", ({ formatId }) => formatId(1, "base64")],
      ["a property of objects as a format", ({ parseId }) => parseId("1", "toString")],
      ["a long format", ({ parseId }) => parseId("1", LONG)],
      ["an ID and a format", ({ formatId }) => formatId(-1, "base64")],
      ["a Number that lost digits", ({ decode }) => decode(2 ** 60)],
      ["null as an ID", ({ decode }) => decode(null)],
      ["an Invalid Date", ({ minId }) => minId(new Date(Number.NaN))],
      ["a text as a time", ({ maxId }) => maxId("2020-01-01")],
      ["a fraction of a ms", ({ maxId }) => maxId(1.5)],
      ["a huge time", ({ minId }) => minId(10n ** 50n)],
      ["a number as a text", ({ parseId }) => parseId(1)],
      ["null as a format", ({ formatId }) => formatId(1, null)],
    ],
    (call) => {
      const core = new Layout("twitter");
      failAlike(
        () =>
          call({
            ...entry,
            decode: (id) => decode(id, presets.twitter),
            minId: (time) => minId(time, presets.twitter),
            maxId: (time) => maxId(time, presets.twitter),
          }),
        () =>
          call({
            ...polyflake,
            decode: (id) => core.decode(id),
            minId: (time) => core.minId(time),
            maxId: (time) => core.maxId(time),
          }),
      );
    },
  );
});

describe("a layout of one's own", () => {
  const own = { fields: { timestamp: 41, worker: 10, sequence: 12 }, epochMs: 1767225600000 };

  test("in every form that new Layout takes", () => {
    const id = new Layout(own).compose(1767225600001, 5, 7);
    for (const layout of [
      own,
      { ...own, tickMs: 1n },
      {
        fields: [
          ["timestamp", "41"],
          ["worker", 10n],
          ["sequence", 12],
        ].values(),
        epochMs: "1767225600000",
      },
    ]) {
      const { timestampMs, node, sequence } = decode(id, layout);
      assert.deepEqual([timestampMs, node, sequence], [1767225600001n, 5, 7]);
    }
    assert.equal(minId(1767225600001, own), new Layout(own).minId(1767225600001));
  });

  each(
    test,
    "that cannot be",
    [
      ["no timestamp", { worker: 10, sequence: 12 }, "there is no timestamp field"],
      ["no sequence", { timestamp: 41, worker: 10 }, "there is no sequence field"],
      ["too many bits", { timestamp: 41, worker: 20, sequence: 12 }, "the fields take 73 bits; an ID has 64"],
    ],
    (fields, says) => {
      const error = thrownBy(() => decode(1, { ...own, fields }));
      assert.ok(error instanceof PolyflakeError);
      assert.deepEqual([error.code, error.message], ["INVALID_LAYOUT", `invalid_layout: ${says}`]);
    },
  );

  test("that is none", () => {
    for (const [layout, type] of [
      [undefined, "undefined"],
      [null, "null"],
      ["discord", "string"],
      [7, "number"],
    ]) {
      for (const call of [decode, minId, maxId]) {
        assert.throws(() => call(1, layout), {
          name: "TypeError",
          message: `layout must be an object with fields and epochMs, not ${type}`,
        });
      }
    }
  });

  test("that lacks something", () => {
    for (const [layout, message] of [
      [{}, /^layout has no fields$/],
      [[], /^layout has no fields$/],
      [{ ...own, fields: undefined }, /^layout has no fields$/],
      [{ fields: own.fields }, /^epochMs must be .*, not undefined$/],
    ]) {
      for (const call of [decode, minId, maxId]) {
        assert.throws(() => call(1, layout), { name: "TypeError", message });
      }
    }
  });
});

test("formatId writes what the core writes", () => {
  for (const format of Object.keys(vectors.texts[0]).filter((name) => name !== "id")) {
    for (let n = 0n; n < 64n; n += 1n) {
      for (const id of [1n << n, (1n << n) - 1n, (n * 0x9e3779b97f4a7c15n) & (2n ** 64n - 1n)]) {
        const text = formatId(id, format);
        assert.equal(text, polyflake.formatId(id, format));
        assert.equal(parseId(text, format), id);
      }
    }
  }
});
