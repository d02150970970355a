// Public IDs: every case of tests/public_ids.json, which describes its own format under "about", and inputs that only
// JavaScript can pass.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { PublicIds } from "polyflake";
import { fails, thrownBy } from "./support.js";

const vectors = JSON.parse(readFileSync(new URL("../../tests/public_ids.json", import.meta.url), "utf8"));
const KEYS = ["pfk_10kvEGTqNtUTXFUlMnM4wIa", "pfk_03KxYVLQeEpWyLpNnYpNeDo"];
const ID = 1541815603606036480n;
const TEXT = "order_15ShV20Bxc6UJvKSQbDvo0J";
const orders = () => new PublicIds(KEYS, "order");
const opened = ({ keys, prefix }) => new PublicIds(keys, prefix);

/** How to run a case from each section. */
const SECTIONS = {
  public_ids(given) {
    const ids = opened(given);
    for (const id of [BigInt(given.id), given.id]) assert.equal(ids.encode(id), given.text);
    assert.equal(ids.decode(given.text), BigInt(given.id));
  },
  public_ids_read(given) {
    const ids = opened(given);
    assert.equal(ids.decode(given.text), BigInt(given.id));
    assert.notEqual(ids.encode(given.id), given.text);
  },
  public_ids_refused(given) {
    const ids = opened(given);
    const { message } = fails(() => ids.decode(given.text), given.error.toUpperCase());
    if (given.position === null) assert.ok(!message.includes("position"), message);
    else assert.ok(message.includes(`position ${given.position} `), message);
  },
  public_keys_refused(given) {
    const { message } = fails(() => opened(given), given.error.toUpperCase());
    for (const key of given.keys) {
      for (let at = 5; at + 4 <= key.length; at += 1) {
        const part = key.slice(at, at + 4);
        assert.ok(!/^[0-9A-Za-z]{4}$/.test(part) || !message.includes(part), `${part} is in ${message}`);
      }
    }
  },
};

function typeError(call, message) {
  const error = thrownBy(call);
  assert.ok(error instanceof TypeError, `${error}`);
  assert.equal(error.message, message);
}

describe("vectors", () => {
  test("every section is run", () => {
    assert.deepEqual(Object.keys(vectors), ["about", ...Object.keys(SECTIONS)]);
  });
  for (const [section, run] of Object.entries(SECTIONS)) {
    for (const [number, given] of vectors[section].entries()) test(`${section} ${number}`, () => run(given));
  }
});

test("keys come as one string or several", () => {
  for (const keys of [KEYS, KEYS.join("\n"), KEYS.join(","), [KEYS.join(" ")]]) {
    const ids = new PublicIds(keys, "order");
    assert.equal(ids.encode(ID), TEXT);
    assert.deepEqual([ids.prefix, ids.keyNumbers], ["order", [1, 0]]);
  }
});

test("a page of rows", () => {
  const ids = orders();
  const page = BigUint64Array.of(0n, ID, 2n ** 64n - 1n);
  const texts = ids.encodeAll(page);
  assert.equal(texts[1], TEXT);
  assert.deepEqual(ids.encodeAll([...page]), texts);
  assert.deepEqual(ids.encodeAll(new Set([...page].map(String))), texts);
  assert.deepEqual(ids.decodeAll(texts), page);
  assert.deepEqual(ids.decodeAll(new Set(texts)), page);
  assert.deepEqual([ids.encodeAll([]), ids.decodeAll([])], [[], new BigUint64Array()]);
  fails(() => ids.decodeAll([TEXT, `${TEXT.slice(0, -1)}K`]), "INVALID_ID");
});

test("what is no ID is refused", () => {
  const ids = orders();
  for (const id of [-1n, 2n ** 64n, "-1", "", "x", `${2n ** 64n}`, 10n ** 5000n, -1]) {
    fails(() => ids.encode(id), "INVALID_ID");
    fails(() => ids.encodeAll([ID, id]), "INVALID_ID");
  }
  assert.equal(ids.encode(7), ids.encode(7n));
  assert.equal(ids.encode(0), ids.encode("0"));
});

test("wrong types are TypeErrors, which show no key", () => {
  const ids = orders();
  typeError(
    () => ids.encode(null),
    "id must be a bigint, a safe integer Number or a decimal string, not null",
  );
  assert.match(thrownBy(() => ids.encode(2 ** 53)).message, /not a safe integer/);
  typeError(() => ids.decode(7n), "the public ID must be a string, not bigint");
  typeError(() => ids.encodeAll("12"), "ids must be an array or another iterable, not string");
  typeError(() => ids.decodeAll(TEXT), "the public IDs must be an array or another iterable, not string");
  typeError(
    () => new PublicIds(undefined, "order"),
    "keys must be a string or an array of strings, not undefined",
  );
  typeError(() => new PublicIds([1], "order"), "a key must be a string, not number");
  typeError(() => new PublicIds(KEYS), "prefix must be a string, not undefined");
  fails(() => ids.decode(`${TEXT.slice(0, -1)}\ud800`), "INVALID_ID");
  fails(() => new PublicIds(`${KEYS[0].slice(0, -1)}\ud800`, "order"), "INVALID_OPTION");
});

test("keys are made", () => {
  const made = new Set(Array.from({ length: 100 }, () => PublicIds.generateKey()));
  assert.equal(made.size, 100);
  for (const key of made) assert.deepEqual(new PublicIds(key, "").keyNumbers, [0]);
  for (const number of [61, 61n, "61"]) {
    assert.deepEqual(new PublicIds(PublicIds.generateKey(number), "").keyNumbers, [61]);
  }
  for (const number of [-1, 62, 2n ** 64n]) fails(() => PublicIds.generateKey(number), "INVALID_OPTION");
});

test("keys are shown nowhere", () => {
  const ids = orders();
  const shown = [inspect(ids, { showHidden: true, depth: 9 }), JSON.stringify(ids), String(ids)].join();
  assert.ok(shown.includes("order"));
  for (const key of KEYS) assert.ok(!shown.includes(key.slice(5)), shown);
});
