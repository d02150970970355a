// Tests which backend the package uses, and that it uses only one.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import * as imported from "polyflake";
import { freshNode, isWasm } from "./support.js";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const required = createRequire(import.meta.url)("polyflake");

test(`this run is on ${isWasm ? "wasm" : "the native addon"}`, () => {
  new imported.Layout("twitter");
  const loaded = process.report.getReport().sharedObjects.filter((path) => path.endsWith(".node"));
  assert.equal(loaded.length, isWasm ? 0 : 1, loaded.join());
});

test("import and require give the same classes, which share cursors", () => {
  assert.deepEqual(
    Object.keys(imported)
      .filter((name) => name !== "default")
      .sort(),
    [
      "Counter",
      "Decoded",
      "DecodedAll",
      "Layout",
      "PolyflakeError",
      "PublicIds",
      "Sequences",
      "Snowflake",
      "formatId",
      "parseId",
      "resetState",
    ],
  );
  for (const [name, value] of Object.entries(imported)) assert.equal(required[name], value, name);
  const node = freshNode();
  const [first, second] = [new imported.Snowflake({ node }), new required.Snowflake({ node })];
  for (let n = 0; n < 100; n += 1) assert.ok(first.nextId() < second.nextId());
});

test("package.json is exported", () => {
  const { name } = createRequire(import.meta.url)("polyflake/package.json");
  assert.equal(name, "polyflake");
});

// The package where no native build is installed ----------------------------------------------------------------

const bare = mkdtempSync(join(tmpdir(), "polyflake-"));
after(() => rmSync(bare, { recursive: true }));
const home = join(bare, "node_modules", "polyflake");
cpSync(join(PACKAGE, "dist"), join(home, "dist"), { recursive: true });
cpSync(join(PACKAGE, "package.json"), join(home, "package.json"));

/** Runs `code`, an ES module, in that package's folder, and returns the value that it logs as JSON. */
function run(code, environment = {}) {
  const { POLYFLAKE_BACKEND: _, NODE_OPTIONS: __, ...others } = process.env;
  const env = { ...others, ...environment };
  const head = `
    import { createRequire } from "node:module";
    import { Worker } from "node:worker_threads";
    const require = createRequire(import.meta.url);
    const warnings = [];
    process.on("warning", ({ name, code, message }) => warnings.push({ name, code, message }));
    const log = (value) => console.log(JSON.stringify(value));
    const soon = () => new Promise((resume) => setTimeout(resume));
  `;
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", head + code], {
    cwd: bare,
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
  return JSON.parse(output);
}

const FALLBACK = `
  const { Layout, Snowflake } = await import("polyflake");
  new Layout("twitter");
  const ids = new Snowflake({ node: 1 });
  const id = new (require("polyflake").Snowflake)({ node: 1 }).nextId();
  const next = ids.nextId();
  await soon();
  log({ rises: next > id, worker: new Layout("leaf").decode(next).fields.worker, warnings });
`;

test("if no native build loads, wasm is used, with one warning that says why", () => {
  const { rises, worker, warnings } = run(FALLBACK);
  assert.deepEqual({ rises, worker }, { rises: true, worker: 1 });
  assert.equal(warnings.length, 1, JSON.stringify(warnings));
  assert.equal(warnings[0].code, "POLYFLAKE_WASM");
  assert.match(warnings[0].message, /wasm|WebAssembly/i);
  assert.match(warnings[0].message, /@polyflake\/[a-z0-9-]+/);
});

test("wasm on request gives no warning", () => {
  const { rises, warnings } = run(FALLBACK, { POLYFLAKE_BACKEND: "wasm" });
  assert.deepEqual({ rises, warnings }, { rises: true, warnings: [] });
});

for (const POLYFLAKE_BACKEND of ["wasm", undefined]) {
  test(`wasm in a worker thread, ${POLYFLAKE_BACKEND ? "on request" : "because no native build loads"}`, () => {
    const inside = `
      const { parentPort } = require("node:worker_threads");
      const { Layout, Snowflake, formatId } = require("polyflake");
      const outcome = (call) => {
        try { return String(call()); } catch (error) { return error.code + " " + error.message; }
      };
      parentPort.postMessage({
        builtin: outcome(() => new Snowflake({ node: 1 }).nextId()),
        steady: outcome(() => new Snowflake({ node: 1, clock: "steady" }).nextId()),
        callers: outcome(() => new Snowflake({ node: 1, clock: () => 1700000000000, sequenceStart: "zero" }).nextId()),
        layout: outcome(() => new Layout("discord").decode("175928847299117063").fields.worker),
        text: outcome(() => formatId(255, "hex")),
      });
    `;
    const said = run(
      `new Worker(${JSON.stringify(inside)}, { eval: true, execArgv: [] }).on("message", log).on("error", (error) => { throw error; });`,
      POLYFLAKE_BACKEND ? { POLYFLAKE_BACKEND } : {},
    );
    for (const error of [said.builtin, said.steady]) {
      assert.match(error, /^INVALID_OPTION invalid_option: /);
      assert.match(error, /thread/);
      assert.match(error, /cursor/);
    }
    assert.equal(said.callers, String((BigInt(1700000000000 - 1288834974657) << 22n) | (1n << 12n)));
    assert.deepEqual([said.layout, said.text], ["1", "ff"]);
  });
}
