// Every wrong value causes a PolyflakeError that names it and says what is valid; every wrong type causes a TypeError.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { formatId, Layout, PolyflakeError, parseId, Snowflake } from "polyflake";
import { each, fails, failsLater, T, thrownBy } from "./support.js";

const vectors = JSON.parse(readFileSync(new URL("../../tests/vectors.json", import.meta.url), "utf8"));
const TWITTER = new Layout("twitter");
const LONGEST = 2 ** 32 - 1;
const held = () => T;
const build = (options) => new Snowflake({ node: 1, clock: held, ...options });
const sequenceOf = (bits) => new Layout({ fields: { timestamp: 41, sequence: bits }, epochMs: 0 });

function typeError(call, ...says) {
  const error = thrownBy(call);
  assert.ok(error instanceof TypeError, `${error}`);
  for (const part of says)
    assert.ok(error.message.includes(part), `"${error.message}" does not say "${part}"`);
  return error;
}

describe("integers", () => {
  // Name, call, error code for an integer out of range, part of the message, lowest and highest valid integers.
  const PLACES = [
    ["node", (value) => build({ node: value }), "INVALID_NODE", "node is", 0, 1023],
    [
      "a node field",
      (value) => build({ node: { datacenter: 1, worker: value } }),
      "INVALID_NODE",
      "node field worker is",
      0,
      31,
    ],
    ...["maxBackwardMs", "maxAheadMs", "maxWaitMs"].map((name) => [
      name,
      (value) => build({ [name]: value }),
      "INVALID_OPTION",
      `${name} is`,
      0,
      LONGEST,
    ]),
    ["n", (value) => build({ layout: ROOMIEST }).nextIds(value), "INVALID_OPTION", "n is", 1, 2 ** 24],
    ["Snowflake.decode", (value) => build().decode(value), "INVALID_ID", "ID", 0, 2n ** 63n - 1n],
    ["Layout.decode", (value) => TWITTER.decode(value), "INVALID_ID", "ID", 0, 2n ** 63n - 1n],
    ["formatId", (value) => formatId(value), "INVALID_ID", "ID", 0, 2n ** 64n - 1n],
    ["compose's node", (value) => TWITTER.compose(T, value, 0), "INVALID_NODE", "node is", 0, 1023],
    ["compose's sequence", (value) => TWITTER.compose(T, 1, value), "INVALID_OPTION", "sequence is", 0, 4095],
    ["a width", sequenceOf, "INVALID_LAYOUT", "", 1, 23],
    [
      "epochMs",
      (value) => new Layout({ fields: { timestamp: 41, sequence: 12 }, epochMs: value }),
      "INVALID_LAYOUT",
      "epoch",
      0,
      2n ** 63n - 2n ** 41n,
    ],
    [
      "tickMs",
      (value) => new Layout({ fields: { timestamp: 41, sequence: 12 }, epochMs: 0, tickMs: value }),
      "INVALID_LAYOUT",
      "tick",
      1,
      2 ** 22,
    ],
  ];
  const TIMES = ["minId", "maxId"].map((name) => [name, (value) => TWITTER[name](value)]);
  TIMES.push(["compose's time", (value) => TWITTER.compose(value, 1, 0)]);

  const NO_INTEGERS = [true, false, [1], [], Symbol("1"), () => 1, new Number(1), /1/];

  for (const [place, call] of PLACES) {
    test(`${place}: a wrong type is a TypeError`, () => {
      for (const value of NO_INTEGERS) {
        const type = Array.isArray(value) ? "array" : typeof value;
        // An object is a node without fields.
        if (place.endsWith("node") && type === "object") continue;
        typeError(() => call(value), "must be ", type);
      }
      if (place !== "compose's node") typeError(() => call(null), "null");
    });
  }

  for (const [place, call] of PLACES) {
    test(`${place}: a Number that is not a safe integer is a TypeError with the reason`, () => {
      for (const value of [2 ** 53, -(2 ** 53), 1e300]) {
        typeError(
          () => call(value),
          `is ${value}, which is not a safe integer`,
          "lose digits",
          "decimal string",
        );
      }
      for (const value of [1.5, -0.5, Infinity, -Infinity, 5e-324]) {
        const { message } = typeError(() => call(value), `is ${value}, which is not a whole number`);
        assert.ok(!/digits|undefined/.test(message), message);
      }
      typeError(
        () => call(Number(undefined)),
        "is NaN, which is not a whole number; Number(undefined) is NaN",
      );
    });
  }

  for (const [place, call, code, says] of PLACES) {
    test(`${place}: out of range, with the value`, () => {
      for (const value of [
        -1n,
        -(2n ** 63n),
        -(2n ** 63n) - 1n,
        2n ** 64n,
        2n ** 64n + 1n,
        10n ** 30n,
        -(10n ** 30n),
      ]) {
        fails(() => call(value), code, says, String(value));
        fails(() => call(String(value)), code, says, String(value));
      }
      fails(() => call(-1), code, says, "-1");
      const huge = 10n ** 5000n;
      assert.ok(fails(() => call(huge), code, says, "1000000").message.length < 1000);
    });
  }

  for (const [place, call, code, says] of PLACES) {
    test(`${place}: a text that is not a whole number`, () => {
      for (const text of [
        "",
        " 1",
        "1 ",
        "1.0",
        "1e3",
        "0x1",
        "+1",
        "1_000",
        "one",
        "１",
        "1n",
        "NaN",
        "\0",
        "\ud800",
      ]) {
        fails(() => call(text), code, says);
      }
    });
  }

  for (const [place, call, code, , first, last] of PLACES) {
    test(`${place}: the first and the last that fit`, () => {
      for (const past of [BigInt(first) - 1n, BigInt(last) + 1n]) fails(() => call(past), code);
      call(first);
      call(last);
    });
  }

  for (const [place, call] of TIMES) {
    test(`${place}: instants`, () => {
      for (const value of [true, null, undefined, "1700000000000", "2024-01-01", [T], {}, Symbol("t")]) {
        typeError(() => call(value), "time must be", "Date");
      }
      for (const value of [1.5, Number.NaN, Infinity, 2 ** 53]) {
        typeError(() => call(value), `time is ${value}, which is not a`);
      }
      typeError(() => call(new Date("yesterday")), "time is an Invalid Date");
      for (const value of [0, -1, 1288834974656, 3487858230209, -(2n ** 63n), 2n ** 64n, new Date(0)]) {
        const shown = String(value instanceof Date ? value.getTime() : value);
        fails(() => call(value), "TIME_OUT_OF_RANGE", shown, "1288834974657", "3487858230208");
      }
      call(1288834974657);
      call(new Date(3487858230208));
    });
  }
});

const ROOMIEST = "timestamp:31|worker:1|sequence:32@0/1s";

describe("a Snowflake's options", () => {
  each(
    test,
    "not an object",
    [
      ["nothing", undefined, "undefined"],
      ["null", null, "null"],
      ["a node", 7, "number"],
      ["a layout", "twitter", "string"],
      ["a function", held, "function"],
    ],
    (options, type) => {
      typeError(() => new Snowflake(options), "options must be an object", type);
    },
  );

  test("it is a class", () => {
    assert.throws(() => Snowflake({ node: 1 }), TypeError);
    assert.throws(() => Layout("twitter"), TypeError);
  });

  each(
    test,
    "an unknown option",
    [
      ["misspelt", { nod: 1 }, "nod"],
      ["another language's", { max_wait_ms: 1 }, "max_wait_ms"],
      ["snake_case once more", { sequence_start: "zero" }, "sequence_start"],
      ["another case", { Layout: "twitter" }, "Layout"],
      ["a node field", { worker: 1 }, "worker"],
      ["no name", { "": 1 }, ""],
      ["with a value of any type", { store: { lease: "x" } }, "store"],
      ["with a function", { onWait() {} }, "onWait"],
      ["with null", { maxLagMs: null }, "maxLagMs"],
      ["its own __proto__", JSON.parse('{"__proto__": "x"}'), "__proto__"],
      ["a lone surrogate", { "max\ud800": 1 }, "max"],
      ["a NUL", { "maxWaitMs\0": 1 }, "maxWaitMs"],
    ],
    (options, name) => {
      const names = "layout, node, maxBackwardMs, maxAheadMs, maxWaitMs, sequenceStart, clock";
      fails(() => build(options), "INVALID_OPTION", `\`${name}`, names);
    },
  );

  each(
    test,
    "a wrong type",
    [
      ["layout", { layout: 1 }, "layout must be a string or a Layout", "number"],
      ["layout, null", { layout: null }, "layout must be", "null"],
      ["layout, its parts", { layout: { fields: { timestamp: 41 } } }, "layout must be", "object"],
      ["sequenceStart", { sequenceStart: 0 }, "sequenceStart must be", "number"],
      ["sequenceStart, boolean", { sequenceStart: true }, "sequenceStart must be", "zero", "boolean"],
      ["clock", { clock: T }, "clock must be", "function", "number"],
      ["clock, a Date", { clock: new Date() }, "clock must be", "object"],
      ["clock, null", { clock: null }, "clock must be", "null"],
      ["node, null", { node: null }, "node must be", "null"],
      ["node, boolean", { node: true }, "node must be", "boolean"],
      ["node, array", { node: [1, 7] }, "node must be", "array"],
      [
        "node field, boolean",
        { node: { datacenter: 1, worker: true } },
        "node field worker must be",
        "boolean",
      ],
      ["node field, object", { node: { datacenter: 1, worker: {} } }, "node field worker must be", "object"],
      [
        "node field, undefined",
        { node: { datacenter: 1, worker: undefined } },
        "node field worker",
        "undefined",
      ],
    ],
    (options, ...says) => {
      typeError(() => build(options), ...says);
    },
  );

  each(
    test,
    "a wrong value",
    [
      ["sequenceStart", { sequenceStart: "Zero" }, "sequenceStart", "`Zero`", "zero or spread"],
      ["sequenceStart, empty", { sequenceStart: "" }, "zero or spread"],
      ["clock", { clock: "wall" }, "clock", "`wall`", "system or steady"],
      ["clock, empty", { clock: "" }, "system or steady"],
      ["maxWaitMs", { maxWaitMs: -1 }, "maxWaitMs is -1", "from 0 to 4294967295"],
      ["maxAheadMs", { maxAheadMs: "soon" }, "maxAheadMs is soon"],
    ],
    (options, ...says) => {
      fails(() => build(options), "INVALID_OPTION", ...says);
    },
  );

  each(
    test,
    "a wrong node",
    [
      ["none", undefined, "missing", "0 to 1023", "datacenter, worker"],
      ["no field", {}, "datacenter"],
      ["one field of two", { datacenter: 1 }, "worker"],
      ["a field too many", { datacenter: 1, worker: 1, process: 1 }, "process", "datacenter, worker"],
      ["another case", { datacenter: 1, Worker: 1 }, "Worker"],
      ["past its field", { datacenter: 1, worker: 32 }, "worker is 32", "0 to 31"],
      ["no node field", { datacenter: 1, worker: 1, sequence: 1 }, "sequence"],
      ["an empty name", { datacenter: 1, worker: 1, "": 1 }, "datacenter, worker"],
      ["a foreign letter", { datacenter: 1, wörker: 1 }, "wörker"],
      ["its own __proto__", JSON.parse('{"datacenter": 1, "worker": 1, "__proto__": 7}'), "__proto__"],
      ["a lone surrogate", { datacenter: 1, "w\ud800": 1 }, "datacenter, worker"],
      ["a NUL", { datacenter: 1, "worker\0": 1 }, "datacenter, worker"],
      [
        "many fields",
        Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`f${n}`, n])),
        "node fields",
      ],
      ["out of range", 1024, "node is 1024", "0 to 1023"],
    ],
    (node, ...says) => {
      fails(() => build({ node }), "INVALID_NODE", ...says);
      if (node !== undefined) fails(() => TWITTER.compose(T, node, 0), "INVALID_NODE", ...says.slice(0, 1));
    },
  );

  test("a node must be given", () => {
    fails(() => new Snowflake({}), "INVALID_NODE", "missing");
    fails(() => new Snowflake({ layout: "sonyflake" }), "INVALID_NODE", "machine");
    fails(() => TWITTER.compose(T, null, 0), "INVALID_NODE", "missing");
  });

  test("a node for a layout without a node field", () => {
    for (const node of [1, { worker: 0 }, 2n ** 64n])
      fails(() => build({ layout: "mastodon", node }), "INVALID_NODE");
  });

  test("inherited fields do not count", () => {
    fails(() => build({ node: { __proto__: { datacenter: 1, worker: 7 } } }), "INVALID_NODE", "datacenter");
  });

  test("what a getter throws reaches the caller", () => {
    const own = new Error("the getter's own");
    const throws = (name) =>
      Object.defineProperty({}, name, {
        enumerable: true,
        get() {
          throw own;
        },
      });
    for (const call of [
      ...["node", "layout", "clock", "maxWaitMs"].map((name) => () => new Snowflake(throws(name))),
      () => build({ node: throws("worker") }),
      () => TWITTER.compose(T, throws("worker"), 0),
      () => new Layout(throws("fields")),
      () => new Layout({ fields: throws("timestamp"), epochMs: 0 }),
    ]) {
      assert.equal(thrownBy(call), own);
    }
  });

  test("properties added to Object.prototype do not show up in an error or a decoded ID", () => {
    const names = ["behindMs", "retryAfterMs", "cause", "worker"];
    for (const name of names) Object.prototype[name] = 5;
    try {
      const error = thrownBy(() => new Snowflake({ node: 1024 }));
      assert.ok(!Object.hasOwn(error, "behindMs") && !Object.hasOwn(error, "cause"));
      assert.equal(error.code, "INVALID_NODE");
      assert.deepEqual(Object.keys(TWITTER.decode(1n).fields), ["datacenter", "worker"]);
      assert.equal(TWITTER.decode(1n).fields.worker, 0);
      assert.ok(build({}).nextId() > 0n);
    } finally {
      for (const name of names) delete Object.prototype[name];
    }
  });

  test("names such as __proto__ leave nothing on Object.prototype", () => {
    const before = Reflect.ownKeys(Object.prototype);
    thrownBy(() => build(JSON.parse('{"__proto__": {"polluted": 1}}')));
    thrownBy(() => build({ node: JSON.parse('{"__proto__": {"polluted": 1}}') }));
    thrownBy(() => new Layout({ fields: JSON.parse('{"__proto__": 5, "timestamp": 41}'), epochMs: 0 }));
    assert.deepEqual(Reflect.ownKeys(Object.prototype), before);
    assert.equal({}.polluted, undefined);
  });
});

describe("layouts", () => {
  each(
    test,
    "an unknown name",
    [
      ["misspelt", "twiter", "twitter"],
      ["another case", "Twitter", "twitter"],
      ["empty", "", "twitter, discord"],
      ["very long", "x".repeat(100_000), "twitter, discord"],
      ["a NUL", "twitter\0", "twitter"],
      ["a lone surrogate", "tw\ud800", "preset"],
    ],
    (name, says) => {
      for (const call of [() => new Layout(name), () => build({ layout: name })]) {
        assert.ok(fails(call, "UNKNOWN_LAYOUT", says).message.length < 1000);
      }
    },
  );

  each(
    test,
    "fields that cannot work",
    [
      ["too many bits", { timestamp: 37, worker: 20, sequence: 16 }, "73 bits", "9 too many"],
      ["no timestamp", { worker: 10, sequence: 12 }, "timestamp"],
      ["no sequence", { timestamp: 41, worker: 10 }, "sequence"],
      [
        "two timestamps",
        [
          ["timestamp", 41],
          ["timestamp", 1],
          ["sequence", 12],
        ],
        "timestamp",
      ],
      [
        "a duplicate name",
        [
          ["timestamp", 41],
          ["w", 1],
          ["w", 2],
          ["sequence", 12],
        ],
        "w",
      ],
      ["none", [], "timestamp"],
      ["none, as an object", {}, "timestamp"],
      ["no width", { timestamp: 0, sequence: 12 }, "timestamp"],
      ["sequence above", { sequence: 12, timestamp: 41 }, "timestamp"],
      ["a name in upper case", { timestamp: 41, Worker: 1, sequence: 12 }, "Worker"],
      ["a wide sequence", { timestamp: 10, sequence: 33 }, "33"],
      ["a lone surrogate", { timestamp: 41, "w\ud800": 1, sequence: 12 }, "name"],
      ["its own __proto__", JSON.parse('{"timestamp": 41, "__proto__": 5, "sequence": 12}'), "__proto__"],
      [
        "nine node fields",
        { timestamp: 41, ...Object.fromEntries([..."abcdefghi"].map((name) => [name, 1])), sequence: 12 },
        "8",
      ],
    ],
    (fields, says) => {
      fails(() => new Layout({ fields, epochMs: 0 }), "INVALID_LAYOUT", says);
    },
  );

  const fields = { timestamp: 41, sequence: 12 };
  each(
    test,
    "a wrong type",
    [
      ["nothing", undefined, "undefined"],
      ["null", null, "null"],
      ["a Number", 5, "number"],
      ["a boolean", true, "boolean"],
      ["an array", ["twitter"], "array"],
      [
        "an object of something else",
        { text: "twitter" },
        "layout has no fields",
        "fields, epochMs and tickMs",
      ],
      ["no epochMs", { fields }, "epochMs", "undefined"],
      ["no fields", { epochMs: 0 }, "layout has no fields"],
      ["nothing in it", {}, "layout has no fields"],
      ["fields as a number", { fields: 5, epochMs: 0 }, "fields", "number"],
      ["fields as a text", { fields: "timestamp:41", epochMs: 0 }, "fields", "string"],
      ["fields null", { fields: null, epochMs: 0 }, "fields", "null"],
      ["a field as a number", { fields: [5], epochMs: 0 }, "pair", "number"],
      ["a field as a text", { fields: ["ab"], epochMs: 0 }, "pair", "string"],
      ["a field of three", { fields: [["timestamp", 41, 0]], epochMs: 0 }, "pair"],
      ["a field without its width", { fields: [["timestamp"]], epochMs: 0 }, "pair"],
      ["a field's name", { fields: [[1, 41]], epochMs: 0 }, "name", "number"],
      ["a field's width", { fields: { timestamp: true }, epochMs: 0 }, "timestamp", "boolean"],
      ["an unknown property", { fields, epochMs: 0, tick: 1 }, "no property tick", "tickMs"],
      ["another language's property", { fields, epochMs: 0, tick_ms: 1 }, "tick_ms"],
      ["tickMs null", { fields, epochMs: 0, tickMs: null }, "tickMs", "null"],
    ],
    (layout, ...says) => {
      typeError(() => new Layout(layout), ...says);
    },
  );

  test("no time range if a node field is above the timestamp", () => {
    for (const name of ["minId", "maxId"]) {
      fails(() => new Layout("seata")[name](T), "INVALID_LAYOUT", "worker", "timestamp");
    }
  });

  test("a range that begins past the last tick", () => {
    const layout = new Layout("cosid-second");
    fails(() => layout.minId(layout.endsAtMs), "TIME_OUT_OF_RANGE", String(layout.endsAtMs));
  });
});

describe("texts", () => {
  each(
    test,
    "not an ID",
    [
      ["a letter", "12x4", "decimal", 3],
      ["a sign", "-1", "decimal", 1],
      ["a plus", "+1", "decimal", 1],
      ["a space", " 1", "decimal", 1],
      ["a line's end", "1\n", "decimal", 2],
      ["an underscore", "1_000", "decimal", 2],
      ["a fraction", "1.0", "decimal", 2],
      ["a bigint's n", "1n", "decimal", 2],
      ["a foreign digit", "１", "decimal", 1],
      ["two bytes", "éé1", "decimal", 1],
      ["two units", "1\u{1f600}2", "decimal", 2],
      ["a NUL", "1\0", "decimal", 2],
      ["a lone surrogate", "12\ud800", "decimal", 3],
      ["65 bits", "18446744073709551616", "decimal", 20],
      ["21 digits", "0".repeat(21), "decimal", 21],
      ["a million digits", "1".repeat(1_000_000), "decimal", 21],
      ["0x", "0x1f", "hex", 2],
      ["65 bits of hex", "10000000000000000", "hex", 17],
      ["U", "U1226N0640J7Q", "base32", 1],
      ["65 bits of base32", "G000000000000", "base32", 13],
      ["65 bits of base36", "3w5e11264sgsg", "base36", 13],
      ["l", "10l", "base58", 2],
      ["65 bits of base58", "jpXCZedGfVR", "base58", 11],
      ["65 bits of base62", "LygHa16AHYG", "base62", 11],
      ["a dash", "a-", "base62", 2],
      ["a capital of bwmarrin-base32", "b49dgrs9wghoO", "bwmarrin-base32", 13],
      ["65 bits of bwmarrin-base32", "oyyyyyyyyyyyy", "bwmarrin-base32", 13],
      ["l of bwmarrin-base58", "10l", "bwmarrin-base58", 2],
      ["65 bits of bwmarrin-base58", "JPwcyDCgEuq", "bwmarrin-base58", 11],
      ["a UUID of version 4", "919108f7-52d1-4320-9bac-f847db4148a8", "uuid", 15],
      ["a UUID of version 7", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "uuid", 15],
      ["another variant", "1565a11f-6217-8a00-c000-000000000000", "uuid", 20],
      ["another's UUID of version 8", "2489e9ad-2ee2-8e00-8ec9-32d5f69181c0", "uuid", 21],
      ["no hyphens", "1565a11f62178a008000000000000000", "uuid", 9],
      ["37 characters", "1565a11f-6217-8a00-8000-0000000000000", "uuid", 37],
    ],
    (text, format, position) => {
      assert.match(
        fails(() => parseId(text, format), "INVALID_ID").message,
        new RegExp(`position ${position}\\b`),
      );
    },
  );

  test("an empty string", () => {
    for (const format of [
      "decimal",
      "hex",
      "base32",
      "base36",
      "base58",
      "base62",
      "uuid",
      "bwmarrin-base32",
      "bwmarrin-base58",
    ]) {
      fails(() => parseId("", format), "INVALID_ID", "empty");
    }
  });

  test("an unknown format", () => {
    for (const format of ["base64", "", "Decimal", "HEX", "__proto__", "toString", "hex\0", "\ud800"]) {
      for (const call of [
        () => formatId(1, format),
        () => parseId("1", format),
        () => build().nextIdString(format),
      ]) {
        fails(call, "INVALID_OPTION", "format", "decimal, hex, base32");
      }
    }
  });

  test("a wrong type", () => {
    for (const [value, type] of [
      [1, "number"],
      [1n, "bigint"],
      [null, "null"],
      [["1"], "array"],
      [{}, "object"],
    ]) {
      typeError(() => parseId(value), "text must be a string", type);
      typeError(() => parseId("1", value), "format must be a string", type);
      typeError(() => formatId(1, value), "format must be a string", type);
      typeError(() => build().nextIdString(value), "format must be a string", type);
    }
    typeError(() => parseId(undefined), "undefined");
  });
});

describe("fill", () => {
  each(
    test,
    "not a BigUint64Array",
    [
      ["nothing", undefined, "undefined"],
      ["null", null, "null"],
      ["a count", 5, "number"],
      ["an array", [0n, 0n], "array"],
      ["signed", new BigInt64Array(2)],
      ["bytes", new Uint8Array(16)],
      ["a buffer", new ArrayBuffer(16)],
      ["a view", new DataView(new ArrayBuffer(16))],
      ["what looks like one", { length: 2, buffer: new ArrayBuffer(16), byteOffset: 0 }],
      ["what inherits from one", Object.create(new BigUint64Array(2))],
      ["what has its prototype", Object.create(BigUint64Array.prototype)],
    ],
    (array, type = "object") => {
      const ids = build();
      const before = ids.nextId();
      typeError(() => ids.fill(array), "BigUint64Array", type);
      assert.equal(ids.nextId(), before + 1n);
    },
  );
});

describe("clocks", () => {
  const CALLS = {
    nextId: (ids) => ids.nextId(),
    tryNextId: (ids) => ids.tryNextId(),
    next: (ids) => ids.next(),
    nextIdString: (ids) => ids.nextIdString(),
    nextIds: (ids) => ids.nextIds(10),
    "nextIds, many": (ids) => ids.nextIds(100_000),
    fill: (ids) => ids.fill(new BigUint64Array(10)),
    stats: (ids) => ids.stats,
  };
  const ASYNC = {
    nextIdAsync: (ids) => ids.nextIdAsync(),
    nextIdsAsync: (ids) => ids.nextIdsAsync(10),
    "nextIdsAsync, many": (ids) => ids.nextIdsAsync(100_000),
  };
  const outcomes = (ids) => Object.entries(CALLS).map(([name, call]) => [name, () => call(ids)]);

  each(
    test,
    "not a time",
    [
      ["undefined", undefined, TypeError],
      ["null", null, TypeError],
      ["NaN", Number.NaN, RangeError],
      ["1.5", 1.5, RangeError],
      ["Infinity", Infinity, RangeError],
      ["2 ** 53", 2 ** 53, RangeError],
      ["a text", "1700000000000", TypeError],
      ["x", "x", TypeError],
      ["a boolean", true, TypeError],
      ["a Date", new Date(T), TypeError],
      ["a promise", Promise.resolve(T), TypeError],
      ["an array", [T], TypeError],
      ["a symbol", Symbol("now"), TypeError],
      ["an object without a text", Object.create(null), TypeError],
      ["a huge bigint", 10n ** 30n, RangeError],
      ["2n ** 63n", 2n ** 63n, RangeError],
      ["below -(2n ** 63n)", -(2n ** 63n) - 1n, RangeError],
    ],
    async (reading, type) => {
      const ids = build({ clock: () => reading });
      for (const [, call] of outcomes(ids)) {
        const error = fails(call, "CLOCK_FAILED");
        assert.ok(error.cause instanceof type, `${error.cause}`);
        if (typeof reading !== "object" || Array.isArray(reading)) {
          assert.ok(error.message.includes(String(reading)), error.message);
        }
      }
      for (const call of Object.values(ASYNC)) {
        assert.ok((await failsLater(call(ids), "CLOCK_FAILED")).cause instanceof type);
      }
    },
  );

  each(
    test,
    "a clock that throws",
    [
      ["an Error", new Error("no sync"), "no sync"],
      ["a RangeError", new RangeError("no sync"), "RangeError: no sync"],
      ["a text", "out of order", "out of order"],
      ["a number", 5, "5"],
      ["undefined", undefined, "undefined"],
      ["null", null, "null"],
      ["a symbol", Symbol("late"), "late"],
      ["an object without a text", Object.create(null)],
      [
        "an object whose text throws",
        {
          toString() {
            throw new Error("not even that");
          },
        },
      ],
    ],
    async (thrown, says = "") => {
      const ids = build({
        clock() {
          throw thrown;
        },
      });
      for (const [name, call] of outcomes(ids)) {
        const error = fails(call, "CLOCK_FAILED", says);
        assert.ok(Object.hasOwn(error, "cause"), name);
        assert.equal(error.cause, thrown, name);
      }
      for (const [name, call] of Object.entries(ASYNC)) {
        assert.equal((await failsLater(call(ids), "CLOCK_FAILED", says)).cause, thrown, name);
      }
    },
  );

  test("a clock outside the layout's time", () => {
    for (const reading of [-1, 0, 1288834974656, 3487858230209, -(2n ** 63n), 2n ** 63n - 1n]) {
      for (const [name, call] of outcomes(build({ clock: () => reading }))) {
        if (name !== "stats") fails(call, "TIME_OUT_OF_RANGE", String(reading));
      }
    }
  });

  test("a clock is called without arguments and without this", () => {
    const calls = [];
    build({
      clock: function clock(...given) {
        calls.push([this, given]);
        return T;
      },
    }).nextId();
    assert.deepEqual(calls[0], [undefined, []]);
  });

  test("a clock that recovers", () => {
    let reading = T;
    const ids = build({ clock: () => reading });
    const first = ids.nextId();
    reading = undefined;
    fails(() => ids.nextId(), "CLOCK_FAILED");
    reading = T - 5000;
    fails(() => ids.nextId(), "CLOCK_MOVED_BACKWARDS");
    reading = T;
    assert.equal(ids.nextId(), first + 1n);
  });

  test("a clock that fails half-way through a batch", () => {
    let readings = 0;
    const ids = build({
      sequenceStart: "zero",
      clock() {
        readings += 1;
        if (readings > 3) throw new Error("gone");
        return T + readings;
      },
    });
    fails(() => ids.nextIds(5 * 4096), "CLOCK_FAILED", "gone");
  });

  for (const [name, call] of Object.entries(CALLS)) {
    test(`a clock that calls its own Snowflake without end: ${name}`, () => {
      const ids = build({
        clock() {
          call(ids);
          return T;
        },
      });
      const { cause } = fails(() => call(ids), "CLOCK_FAILED");
      assert.ok(cause instanceof RangeError || cause instanceof PolyflakeError);
      // Later calls still work.
      assert.ok(build().nextId() > 0n);
      assert.equal(build({ layout: ROOMIEST }).nextIds(10_000).length, 10_000);
    });
  }

  test("a failure is not mistaken for another clock's", () => {
    const inner = build({
      clock() {
        throw new Error("inner");
      },
    });
    const outer = build({
      clock() {
        fails(() => inner.nextId(), "CLOCK_FAILED", "inner");
        throw new Error("outer");
      },
    });
    const error = fails(() => outer.nextId(), "CLOCK_FAILED", "outer");
    assert.equal(error.cause.message, "outer");
    assert.ok(!error.message.includes("inner"));
  });
});

describe("PolyflakeError", () => {
  const error = thrownBy(() => new Snowflake({ node: 1024 }));

  test("its properties", () => {
    assert.ok(error instanceof PolyflakeError && error instanceof Error);
    assert.equal(error.name, "PolyflakeError");
    assert.equal(error.code, "INVALID_NODE");
    assert.equal(error.number, 3);
    assert.match(error.message, /^invalid_node: node is 1024.* 0 to 1023/);
    assert.equal(String(error), `PolyflakeError: ${error.message}`);
    assert.ok(!("behindMs" in error) && !("retryAfterMs" in error) && !("cause" in error));
  });

  test("its stack begins with its name and leads to the call", () => {
    assert.ok(error.stack.startsWith(`PolyflakeError: ${error.message}\n`), error.stack);
    assert.match(error.stack, /bad-input\.test\.js/);
  });

  test("a subclass is one too", () => {
    class Own extends PolyflakeError {}
    const own = new Own(3, "INVALID_NODE", "mine");
    assert.ok(own instanceof PolyflakeError && own instanceof Own);
    assert.deepEqual(
      [own.code, own.number, own.message, own.name],
      ["INVALID_NODE", 3, "mine", "PolyflakeError"],
    );
    assert.ok(!(new Error("x") instanceof PolyflakeError));
  });

  const NUMBERS = new Map(vectors.errors.map(({ number, name }) => [name.toUpperCase(), number]));
  const stepsBack = () => {
    const readings = [T, T - 5000];
    const ids = build({ clock: () => (readings.length > 1 ? readings.shift() : readings[0]) });
    ids.nextId();
    ids.nextId();
  };
  const usedUp = () => build({ sequenceStart: "zero", maxWaitMs: 0 }).nextIds(4097);
  const FAILS = () => {
    throw new Error("no clock");
  };
  each(
    test,
    "what throws it",
    [
      ["INVALID_LAYOUT", () => new Layout("timestamp:41@0/1ms")],
      ["UNKNOWN_LAYOUT", () => new Layout("twiter")],
      ["INVALID_NODE", () => build({ node: -1 })],
      ["INVALID_OPTION", () => build({ maxWaitMs: -1 })],
      ["INVALID_ID", () => TWITTER.decode(-1)],
      ["TIME_OUT_OF_RANGE", () => build({ clock: () => 0 }).nextId()],
      ["CLOCK_MOVED_BACKWARDS", stepsBack],
      ["SEQUENCE_EXHAUSTED", usedUp],
      ["CLOCK_FAILED", () => build({ clock: FAILS }).nextId()],
    ].map(([code, call]) => [code, code, call]),
    (code, call) => {
      const thrown = fails(call, code);
      assert.equal(thrown.number, NUMBERS.get(code));
      assert.equal("behindMs" in thrown, code === "CLOCK_MOVED_BACKWARDS");
      assert.equal("retryAfterMs" in thrown, ["CLOCK_MOVED_BACKWARDS", "SEQUENCE_EXHAUSTED"].includes(code));
      assert.equal("cause" in thrown, code === "CLOCK_FAILED");
    },
  );

  test("its type names exactly the codes there are", () => {
    const types = readFileSync(new URL("../index.d.ts", import.meta.url), "utf8");
    const [, union] = /type PolyflakeErrorCode =([^;]+);/.exec(types);
    assert.deepEqual(union.match(/[A-Z_]+/g).sort(), [...NUMBERS.keys()].sort());
  });
});
