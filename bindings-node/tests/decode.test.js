// The entry point `polyflake/decode`, which reads IDs without the core, gives the same results as the core.
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

/** A layout from the vectors, for this entry point and for the core. */
const both = (given) => [presets[given] ?? layoutFields(given), new Layout(given)];

/** The core's longer wordings, and the shorter ones that this entry point uses instead. */
const SHORTER = [
  ["IDs of this layout do not sort by time, because node field", "node field"],
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

  test("in every form that new Layout takes, but what can be read once only", () => {
    const id = new Layout(own).compose(1767225600001, 5, 7);
    for (const layout of [
      own,
      { ...own, tickMs: 1n },
      {
        fields: [
          ["timestamp", "41"],
          ["worker", 10n],
          ["sequence", 12],
        ],
        epochMs: "1767225600000",
      },
    ]) {
      for (const _ of "again") {
        const { timestampMs, node, sequence } = decode(id, layout);
        assert.deepEqual([timestampMs, node, sequence], [1767225600001n, 5, 7]);
      }
    }
    assert.equal(minId(1767225600001, own), new Layout(own).minId(1767225600001));
  });

  each(
    test,
    "that cannot be",
    [
      ["no timestamp", { worker: 10, sequence: 12 }, "there is no timestamp field"],
      ["no sequence", { timestamp: 41, worker: 10 }, "there is no sequence field"],
      [
        "too many bits",
        { timestamp: 41, worker: 20, sequence: 12 },
        "width of all is `73`; it takes 1 to 64",
      ],
    ],
    (fields, says) => {
      const error = thrownBy(() => decode(1, { ...own, fields }));
      assert.ok(error instanceof PolyflakeError);
      assert.deepEqual([error.code, error.message], ["INVALID_LAYOUT", `invalid_layout: ${says}`]);
    },
  );

  /** Checks that `decode` and its siblings refuse a layout as `new Layout` does, and that they name the field and the value. */
  function refused(layout, ...says) {
    const wanted = thrownBy(() => new Layout(layout));
    for (const call of [decode, minId, maxId]) {
      const error = thrownBy(() => call(1, layout));
      assert.deepEqual([error.name, error.code, error.number], [wanted.name, wanted.code, wanted.number]);
      for (const said of says) assert.ok(error.message.includes(said), error.message);
    }
  }

  const TEXTS = ["", " 5 ", "0x10", "+5", "-5", "05", "1_0", "5n", "1e1", "10ms", "9.5", "9".repeat(99)];
  const wrong = [
    ...[...TEXTS, -1, -1n, 2n ** 64n].map((value) => [value, `\`${String(value).slice(0, 1)}`]),
    ["5\n", "`5\\u{a}`"],
    ["５", "`\\u{ff15}`"],
    ...[9.5, NaN, 2 ** 60].map((value) => [value, `is ${value}`]),
    [null, "null"],
    [true, "boolean"],
    [[5], "an array"],
    [{}, "object"],
  ];
  each(
    test,
    "with a number that is none",
    wrong.map(([value, said]) => [
      `${typeof value} ${JSON.stringify(String(value)).slice(0, 9)}`,
      value,
      said,
    ]),
    (value, said) => {
      refused({ ...own, epochMs: value }, "epochMs", said);
      refused({ ...own, tickMs: value }, "tickMs", said);
      refused({ ...own, fields: { ...own.fields, worker: value } }, "width of worker", said);
      refused(
        {
          ...own,
          fields: [
            ["timestamp", value],
            ["sequence", 12],
          ],
        },
        "width of timestamp",
        said,
      );
    },
  );

  test("with a number that is too small or too large", () => {
    refused({ ...own, epochMs: undefined }, "epochMs", "undefined");
    refused({ ...own, tickMs: 0 }, "tickMs", "`0`");
    refused({ ...own, epochMs: 2n ** 63n }, "epochMs", `\`${2n ** 63n}\``);
    for (const width of [0, 65]) {
      refused({ ...own, fields: { ...own.fields, worker: width } }, "width of worker", `\`${width}\``);
    }
    for (const least of [{ epochMs: 0 }, { epochMs: "0", tickMs: 1 }]) {
      assert.equal(decode(0, { ...own, ...least }).timestampMs, 0n);
    }
  });

  const LONG = `a${"0".repeat(24)}`;
  each(
    test,
    "with a name that is none",
    // JavaScript moves a property named `1` to the front.
    ["1", "", "Worker", "-a", "_a", "a b", "a\n", "é", LONG, "__proto__"].map((name) => [name, name]),
    (name) => {
      refused(
        { ...own, fields: JSON.parse(`{"timestamp": 41, ${JSON.stringify(name)}: 10, "sequence": 12}`) },
        "is not a field name",
      );
      refused(
        {
          ...own,
          fields: [
            [name, 10],
            ["timestamp", 41],
            ["sequence", 12],
          ],
        },
        "is not a field name",
      );
    },
  );

  test("with the longest name", () => {
    const name = LONG.slice(0, 24);
    const fields = { timestamp: 41, [name]: 10, "a-b_9": 1, sequence: 12 };
    assert.deepEqual(Object.keys(decode(1, { ...own, fields }).fields), [name, "a-b_9"]);
  });

  each(
    test,
    "with fields that are none",
    [
      ["a number", 5, "INVALID_LAYOUT", "there is no timestamp field"],
      ["null", null, "INVALID_LAYOUT", "there is no timestamp field"],
      [
        "what can be read once only",
        Object.entries(own.fields).values(),
        "INVALID_LAYOUT",
        "there is no timestamp field",
      ],
      ["a text", "timestamp:41", "INVALID_LAYOUT", "`11` is not a field name"],
      ["pairs that are none", [5], undefined, "a field's name must be a string, not undefined"],
      [
        "a name that is none",
        [[["timestamp"], 41]],
        undefined,
        "a field's name must be a string, not an array",
      ],
      [
        "those of a Layout",
        new Layout("discord").fields,
        undefined,
        "a field's name must be a string, not undefined",
      ],
    ],
    (fields, code, says) => {
      for (const call of [decode, minId, maxId]) {
        const error = thrownBy(() => call(1, { ...own, fields }));
        assert.deepEqual([error.name, error.code], [code ? "PolyflakeError" : "TypeError", code]);
        assert.ok(error.message.endsWith(says), error.message);
      }
    },
  );

  test("that is a Layout of the main entry", () => {
    assert.throws(() => decode(1, new Layout("discord")), {
      name: "TypeError",
      message: /^a field's name must be /,
    });
  });

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
          message: `layout must be an object with fields, not ${type}`,
        });
      }
    }
  });

  test("that lacks something", () => {
    for (const [layout, name, message] of [
      [{}, "PolyflakeError", /there is no timestamp field$/],
      [[], "PolyflakeError", /there is no timestamp field$/],
      [{ ...own, fields: undefined }, "PolyflakeError", /there is no timestamp field$/],
      [{ fields: own.fields }, "TypeError", /^epochMs must be .*, not undefined$/],
    ]) {
      for (const call of [decode, minId, maxId]) {
        assert.throws(() => call(1, layout), { name, message });
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
