// Two copies of the package in one process: if they do not share cursors, they issue duplicate IDs, and the second copy
// warns.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { each, isWasm } from "./support.js";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const ADDON = join(PACKAGE, "npm/linux-x64-gnu");
const folder = realpathSync(mkdtempSync(join(tmpdir(), "polyflake-copies-")));
after(() => rmSync(folder, { recursive: true }));

/** Folders, each with a copy of the package. "one" has its own native library; "two" and "three" share one. */
for (const name of ["one", "two", "three"]) {
  const modules = join(folder, name, "node_modules");
  mkdirSync(join(modules, "@polyflake"), { recursive: true });
  cpSync(join(PACKAGE, "dist"), join(modules, "polyflake/dist"), { recursive: true });
  cpSync(join(PACKAGE, "package.json"), join(modules, "polyflake/package.json"));
  const addon = join(modules, "@polyflake/linux-x64-gnu");
  if (name === "one") cpSync(ADDON, addon, { recursive: true });
  else symlinkSync(ADDON, addon);
}
const nodeCjs = (name) => join(folder, name, "node_modules/polyflake/dist/node.cjs");
/** The browser builds get different versions, because a page would otherwise use the first one for both. */
for (const name of ["one", "two"]) {
  const path = join(folder, name, "node_modules/polyflake/dist/browser.mjs");
  writeFileSync(path, readFileSync(path, "utf8").replaceAll("0.1.0", `0.1.0-${name}`));
}

/**
 * Returns a program's warnings, from the console and from Node. `one`, `two` and `three` are the copies; `page` loads a
 * copy's browser build.
 */
async function warnings(code, backend = process.env.POLYFLAKE_BACKEND ?? "") {
  const program = `
    import { createRequire } from "node:module";
    import { Worker } from "node:worker_threads";
    const said = [];
    process.on("warning", ({ code, message }) => said.push([code, message]));
    console.warn = (message) => said.push(["console", message]);
    const load = (name) => createRequire(${JSON.stringify(folder)} + "/" + name + "/x.js")("polyflake");
    const [one, two, three] = ["one", "two", "three"].map(load);
    const page = (name) => import(${JSON.stringify(folder)} + "/" + name + "/node_modules/polyflake/dist/browser.mjs");
    ${code}
    await new Promise((resolve) => setImmediate(resolve));
    console.log(JSON.stringify(said));
  `;
  const env = { ...process.env, POLYFLAKE_BACKEND: backend };
  delete env.NODE_OPTIONS;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
    env,
  });
  return JSON.parse(stdout);
}

const isLinux = process.platform === "linux";
const nativeOnly = { skip: isWasm && "wasm shares cursors with no other copy" };

test("two copies with two native libraries: one warning, which names both", nativeOnly, async () => {
  const said = await warnings(`
    for (const { Snowflake } of [one, two, three, one]) new Snowflake({ node: 1 }).nextId();
  `);
  assert.equal(said.length, 1);
  const [[code, message]] = said;
  assert.equal(code, "POLYFLAKE_COPIES");
  for (const part of isLinux ? [join(folder, "one"), ADDON] : [nodeCjs("one"), nodeCjs("two")])
    assert.ok(message.includes(part), message);
  assert.match(message, /one copy|keep one/);
});

test("two copies with one native library share cursors, and do not warn", nativeOnly, async () => {
  const said = await warnings(`
    const [a, b] = [two, three].map(({ Snowflake }) => new Snowflake({ node: 1 }));
    for (let n = 0; n < 1000; n += 1) if (a.nextId() >= b.nextId()) throw new Error("a repeat");
  `);
  assert.deepEqual(said, []);
});

test("a copy for each worker thread, with one native library, does not warn", nativeOnly, async () => {
  const said = await warnings(`
    new two.Snowflake({ node: 1 });
    const code = (name) => \`
      const { parentPort } = require("node:worker_threads");
      process.on("warning", ({ message }) => parentPort.postMessage(message));
      new (require(\${JSON.stringify(${JSON.stringify(folder)} + "/" + name + "/node_modules/polyflake")}).Snowflake)({ node: 1 });
      setImmediate(() => parentPort.postMessage("done"));
    \`;
    for (const name of ["two", "three"]) {
      const worker = new Worker(code(name), { eval: true, execArgv: [] }).on("message", (message) => said.push(message));
      await new Promise((resolve, reject) => worker.once("exit", resolve).once("error", reject));
    }
  `);
  assert.deepEqual(said, ["done", "done"]);
});

test("two copies on WebAssembly: one warning, which names both", async () => {
  const said = await warnings(
    "for (const { Snowflake } of [one, two, three]) new Snowflake({ node: 1 }).nextId();",
    "wasm",
  );
  assert.equal(said.length, 1);
  const [[code, message]] = said;
  assert.equal(code, "POLYFLAKE_COPIES");
  for (const name of ["one", "two"]) assert.ok(message.includes(nodeCjs(name)), message);
  assert.match(message, /npm dedupe/);
});

test("Node's build and the one for pages: one warning on the console, which names both", async () => {
  const said = await warnings(`
    new two.Snowflake({ node: 1 });
    new (await page("two")).Snowflake({ node: 1 });
  `);
  assert.equal(said.length, 1);
  const [[code, message]] = said;
  assert.equal(code, "console");
  for (const path of [nodeCjs("two"), join(folder, "two/node_modules/polyflake/dist/browser.mjs")])
    assert.ok(message.includes(path), message);
});

each(
  test,
  "no warning",
  [
    ["one copy", "for (let n = 0; n < 3; n += 1) new one.Snowflake({ node: 1 });"],
    ["copies that decode only", "for (const { Layout } of [one, two]) new Layout('discord').decode(1n);"],
    [
      "Snowflakes with clock functions, which share cursors with no other",
      "for (const { Snowflake } of [one, two]) new Snowflake({ node: 1, clock: () => Date.now() }).nextId();",
    ],
    [
      "frozen globals",
      "Object.freeze(globalThis); for (const { Snowflake } of [two, three]) new Snowflake({ node: 1 }).nextId();",
    ],
  ],
  async (code) => assert.deepEqual(await warnings(code), []),
);

each(
  test,
  "a path that is not known",
  [
    ["no stack", "Error.stackTraceLimit = 0;"],
    ["another kind of stack", "Error.prepareStackTrace = () => 7;"],
  ],
  async (stubs) => {
    const said = await warnings(`
      const pages = [await page("one"), await page("two")];
      ${stubs}
      for (const { Snowflake } of pages) new Snowflake({ node: 1 }).nextId();
    `);
    assert.equal(said.length, 1);
    assert.match(said[0][1], /from a path that is not known and from a path that is not known/);
  },
);
