// `close`, and state files, through which all processes on a host share a node. The file itself is tested in the core.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { PolyflakeError, resetState, Snowflake } from "polyflake";

const isNative = process.env.POLYFLAKE_BACKEND !== "wasm";
const folder = mkdtempSync(join(tmpdir(), "polyflake-state-"));
after(() => rmSync(folder, { recursive: true }));

const run = promisify(execFile);

/** Runs an ES module as a program, and returns its standard output. */
async function issue(program, env = process.env) {
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", program], {
    env,
    maxBuffer: 1 << 26,
  });
  return stdout;
}

const fails = (code) => (error) => error instanceof PolyflakeError && error.code === code;

test("a closed Snowflake throws, and others on its node work", async () => {
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
    assert.throws(call, fails("CLOSED"));
  }
  await assert.rejects(ids.nextIdAsync(), fails("CLOSED"));
  await assert.rejects(ids.nextIdsAsync(3), fails("CLOSED"));
  assert.equal(ids.decode(last).node, 900);
  assert.equal(ids.node, 900);
  assert.ok(other.nextId() > last);
});

test("fill of an empty array does nothing, and throws once the Snowflake is closed", () => {
  for (const clock of ["system", () => Date.now()]) {
    const ids = new Snowflake({ node: 902, clock });
    ids.fill(new BigUint64Array());
    ids.close();
    assert.throws(() => ids.fill(new BigUint64Array()), fails("CLOSED"));
  }
});

test("disposing of a Snowflake closes it", () => {
  const ids = new Snowflake({ node: 901 });
  ids[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
  assert.throws(() => ids.nextId(), fails("CLOSED"));
});

test("the path is a string", () => {
  assert.throws(() => new Snowflake({ node: 1, state: 7 }), TypeError);
  // Replacing the lone surrogate with U+FFFD would name a different file.
  assert.throws(() => new Snowflake({ node: 1, state: "redis://user:secret@host\ud83d" }), {
    name: "TypeError",
    message: "state has \\ud83d at index 24; it must be a path without lone surrogates",
  });
  assert.throws(() => resetState("half\ud83d"), TypeError);
  assert.throws(() => resetState(7), TypeError);
});

test("only the native build has state files", { skip: isNative }, () => {
  assert.throws(() => new Snowflake({ node: 1, state: join(folder, "wasm") }), fails("INVALID_OPTION"));
  assert.throws(() => resetState(join(folder, "wasm")), fails("STATE_FILE"));
});

test("processes share a node, at once and one after another", { skip: !isNative }, async () => {
  const state = join(folder, "shared");
  const program = `
    import { Snowflake } from "polyflake";
    const ids = new Snowflake({ node: 7, state: ${JSON.stringify(state)}, maxWaitMs: 60_000 });
    const out = [];
    for (let n = 0; n < 20; n++) out.push(...ids.nextIds(500), ids.nextId());
    console.log(out.join("\\n"));`;
  const ids = async () => (await issue(program)).trimEnd().split("\n").map(BigInt);
  const early = (await Promise.all([ids(), ids(), ids()])).flat();
  const late = await ids();
  const all = [...early, ...late];
  assert.equal(all.length, 4 * 20 * 501);
  assert.equal(new Set(all).size, all.length);
  const highest = early.sort((a, b) => Number(a - b)).at(-1);
  assert.ok(late.every((id) => id > highest));
});

test("a file that is damaged, replaced or of another node is an error", { skip: !isNative }, () => {
  const state = join(folder, "wrong");
  writeFileSync(state, "no state file");
  assert.throws(() => new Snowflake({ node: 8, state }), fails("STATE_FILE"));
  rmSync(state);
  new Snowflake({ node: 8, state }).nextId();
  assert.throws(() => new Snowflake({ node: 9, state }), fails("STATE_FILE"));
  assert.throws(() => new Snowflake({ node: 8 }), fails("INVALID_OPTION"));
  renameSync(state, `${state}-away`);
  assert.throws(() => resetState(state), fails("STATE_FILE"));
  resetState(`${state}-away`);
});

/** Each clock, as source code. */
const CLOCKS = { "the system clock": '"system"', "a clock function": "() => Date.now()" };
const isLinux = process.platform === "linux";

/** The library built from syncs.c, or `false` where it cannot be preloaded. */
const syncs = isNative && isLinux && join(folder, "syncs.so");
if (syncs) {
  const source = join(import.meta.dirname, "syncs.c");
  execFileSync("cc", ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", syncs, source]);
}
const noSyncs = !syncs && "syncs are recorded and slowed down in the native build on Linux";

for (const [which, clock] of Object.entries(CLOCKS)) {
  for (const call of ["nextIdAsync()", "nextIdsAsync(3)"]) {
    test(`${call} syncs the disk on another thread than the event loop's, with ${which}`, {
      skip: noSyncs,
    }, async () => {
      const name = join(folder, `${which} ${call}`);
      const program = `
        import { readFileSync, truncateSync } from "node:fs";
        import { setImmediate as turn } from "node:timers/promises";
        import { Snowflake } from "polyflake";
        const ids = new Snowflake({ node: 11, state: ${JSON.stringify(name)}, clock: ${clock}, maxWaitMs: 60_000 });
        /** Calls \`call\` until a thread syncs. Returns which threads did. */
        const syncing = async (call) => {
          truncateSync(process.env.SYNCS);
          for (;;) {
            await call();
            await turn();
            const threads = readFileSync(process.env.SYNCS, "utf8").trimEnd();
            if (threads !== "") return threads.split("\\n").map((id) => Number(id) === process.pid);
          }
        };
        const onMain = [];
        for (let n = 0; n < 3; n += 1) onMain.push(...await syncing(() => ids.${call}));
        console.log(JSON.stringify([onMain, await syncing(() => ids.nextId())]));
      `;
      const env = { ...process.env, LD_PRELOAD: syncs, SYNCS: `${name}.syncs` };
      const [waited, blocking] = JSON.parse(await issue(program, env));
      assert.ok(waited.length >= 3 && waited.every((isMain) => !isMain), `${waited}`);
      assert.ok(blocking.length > 0 && blocking.every((isMain) => isMain), `${blocking}`);
    });

    test(`${call} gets its IDs from a disk that takes longer than a bound lasts, with ${which}`, {
      skip: noSyncs,
    }, async () => {
      const name = join(folder, `slow, ${which} ${call}`);
      const program = `
        import { Snowflake } from "polyflake";
        const ids = new Snowflake({ node: 11, state: ${JSON.stringify(name)}, clock: ${clock}, maxWaitMs: 500 });
        const calls = [ids.${call}, ids.${call}];
        const got = await Promise.race([Promise.all(calls), new Promise((end) => setTimeout(end, 60_000))]);
        console.log(got?.flatMap((ids) => typeof ids === "bigint" ? ids : [...ids]).join() ?? "nothing in a minute");
        process.exit();
      `;
      const env = { ...process.env, LD_PRELOAD: syncs, SYNCS: `${name}.syncs`, SYNC_MS: "1300" };
      const said = await issue(program, env);
      assert.match(said, /^[0-9,]+\n$/);
      const issued = said.trim().split(",");
      assert.equal(new Set(issued).size, issued.length);
    });

    test(`${call} fails after the state file was deleted, with ${which}`, {
      skip: !isNative,
    }, async () => {
      const state = join(folder, `deleted, ${which} ${call}`);
      const program = `
        import { rmSync } from "node:fs";
        import { setTimeout as pause } from "node:timers/promises";
        import { PolyflakeError, Snowflake } from "polyflake";
        const ids = new Snowflake({ node: 12, state: ${JSON.stringify(state)}, clock: ${clock}, maxWaitMs: 60_000 });
        await ids.${call};
        rmSync(${JSON.stringify(state)});
        try {
          for (;;) await ids.${call}.then(() => pause(1));
        } catch (error) {
          console.log(JSON.stringify([error instanceof PolyflakeError, error.code, error.message]));
        }
      `;
      const [isOurs, code, message] = JSON.parse(await issue(program));
      assert.deepEqual([isOurs, code], [true, "STATE_FILE"]);
      assert.match(message, /deleted/);
    });
  }
}
