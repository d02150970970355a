// close, and state files: one node for all processes of a host. The core's tests prove the file itself.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { PolyflakeError, resetState, Snowflake } from "polyflake";

const isNative = process.env.POLYFLAKE_BACKEND !== "wasm";
const folder = mkdtempSync(join(tmpdir(), "polyflake-state-"));
after(() => rmSync(folder, { recursive: true }));

const refused = (code) => (error) => error instanceof PolyflakeError && error.code === code;

test("a closed Snowflake refuses, and others on its node go on", async () => {
  const [ids, other] = [new Snowflake({ node: 900 }), new Snowflake({ node: 900 })];
  const last = ids.nextId();
  ids.close();
  ids.close();
  for (const call of [
    () => ids.nextId(),
    () => ids.tryNextId(),
    () => ids.nextIds(3),
    () => ids.fill(new BigUint64Array(3)),
    () => ids.next(),
    () => ids.nextIdString(),
    () => ids.stats,
  ]) {
    assert.throws(call, refused("CLOSED"));
  }
  await assert.rejects(ids.nextIdAsync(), refused("CLOSED"));
  await assert.rejects(ids.nextIdsAsync(3), refused("CLOSED"));
  assert.equal(ids.decode(last).node, 900);
  assert.equal(ids.node, 900);
  assert.ok(other.nextId() > last);
});

test("what disposes of a Snowflake closes it", () => {
  const ids = new Snowflake({ node: 901 });
  ids[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
  assert.throws(() => ids.nextId(), refused("CLOSED"));
});

test("the path is a string", () => {
  assert.throws(() => new Snowflake({ node: 1, state: 7 }), TypeError);
  // With U+FFFD in its place it would be another file.
  assert.throws(() => new Snowflake({ node: 1, state: "half\ud83d" }), refused("INVALID_OPTION"));
  assert.throws(() => resetState("half\ud83d"), refused("STATE_FILE"));
  assert.throws(() => resetState(7), TypeError);
});

test("state files are the native build's", { skip: isNative }, () => {
  assert.throws(() => new Snowflake({ node: 1, state: join(folder, "wasm") }), refused("INVALID_OPTION"));
  assert.throws(() => resetState(join(folder, "wasm")), refused("STATE_FILE"));
});

test("processes at once and one after the other share a node", { skip: !isNative }, async () => {
  const state = join(folder, "shared");
  const program = `
    import { Snowflake } from "polyflake";
    const ids = new Snowflake({ node: 7, state: ${JSON.stringify(state)}, maxWaitMs: 60_000 });
    const out = [];
    for (let n = 0; n < 20; n++) out.push(...ids.nextIds(500), ids.nextId());
    console.log(out.join("\\n"));`;
  const run = promisify(execFile);
  const issue = async () => {
    const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", program], {
      maxBuffer: 1 << 26,
    });
    return stdout.trimEnd().split("\n").map(BigInt);
  };
  const early = (await Promise.all([issue(), issue(), issue()])).flat();
  const late = await issue();
  const all = [...early, ...late];
  assert.equal(all.length, 4 * 20 * 501);
  assert.equal(new Set(all).size, all.length);
  const highest = early.sort((a, b) => Number(a - b)).at(-1);
  assert.ok(late.every((id) => id > highest));
});

test("a file that is damaged, replaced or another node's is refused", { skip: !isNative }, () => {
  const state = join(folder, "refused");
  writeFileSync(state, "no state file");
  assert.throws(() => new Snowflake({ node: 8, state }), refused("STATE_FILE"));
  rmSync(state);
  new Snowflake({ node: 8, state }).nextId();
  assert.throws(() => new Snowflake({ node: 9, state }), refused("STATE_FILE"));
  assert.throws(() => new Snowflake({ node: 8 }), refused("INVALID_OPTION"));
  renameSync(state, `${state}-away`);
  assert.throws(() => resetState(state), refused("STATE_FILE"));
  resetState(`${state}-away`);
});
