// Checks what the tarballs contain, and runs package linters.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { before, test } from "node:test";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { folder, pack, platform, root, run } from "./project.js";

/** The browser module has no public IDs. */
const MOST_GZIPPED = { browser: 26 * 1024, other: 39 * 1024 };

let main;
let native;

before(async () => {
  const into = await folder();
  main = await pack(root, into);
  native = await pack(platform, into);
});

test("the package contains exactly what is used", (t) => {
  const files = main.files.map((file) => file.path).sort();
  for (const { path: name, size } of main.files) t.diagnostic(`${String(size).padStart(8)} ${name}`);
  t.diagnostic(`packed ${main.size}, unpacked ${main.unpackedSize} bytes`);
  assert.deepEqual(files, [
    "LICENSE",
    "README.md",
    "decode.d.cts",
    "decode.d.ts",
    "dist/browser.cjs",
    "dist/browser.mjs",
    "dist/decode.cjs",
    "dist/decode.mjs",
    "dist/node.cjs",
    "dist/node.mjs",
    "dist/polyflake.wasm",
    "dist/workerd.mjs",
    "index.d.cts",
    "index.d.ts",
    "package.json",
  ]);
});

test("the platform package contains the addon", (t) => {
  for (const { path: name, size } of native.files) t.diagnostic(`${String(size).padStart(8)} ${name}`);
  t.diagnostic(`packed ${native.size}, unpacked ${native.unpackedSize} bytes`);
  const files = native.files.map((file) => file.path).sort();
  assert.deepEqual(
    files.filter((name) => !name.endsWith(".node")),
    ["LICENSE", "README.md", "package.json"],
  );
  assert.equal(files.length, 4);
});

test("the versions of the two agree", async () => {
  const { version, optionalDependencies } = JSON.parse(
    await readFile(path.join(root, "package.json"), "utf8"),
  );
  assert.equal(native.version, version);
  assert.equal(optionalDependencies[native.name], version);
});

test("neither contains a path of the build machine", async () => {
  const { stdout } = await run("tar", ["xzOf", main.tarball], { encoding: "latin1" });
  assert.ok(stdout.length > 0);
  assert.ok(!stdout.includes(path.resolve(root, "..")));
});

/** Returns the gzipped size. Node's zlib is not used, because its level 9 differs and its output is 1 % larger. */
async function gzipped(file) {
  const { stdout } = await run("gzip", ["-9cn", file], { encoding: "buffer" });
  return stdout.length;
}

test("the modules are small", async (t) => {
  const inlined = /"(AGFzbQ[^"]+)"/.exec(await readFile(path.join(root, "dist/browser.mjs"), "utf8"));
  const browser = path.join(await folder(), "browser.wasm");
  await writeFile(browser, Buffer.from(inlined[1], "base64"));
  const sizes = {
    browser: await gzipped(browser),
    other: await gzipped(path.join(root, "dist/polyflake.wasm")),
  };
  t.diagnostic(`gzipped: ${JSON.stringify(sizes)}`);
  for (const [module, size] of Object.entries(sizes)) {
    assert.ok(
      size <= MOST_GZIPPED[module],
      `${module}: ${size} bytes gzipped, at most ${MOST_GZIPPED[module]}`,
    );
  }
});

test("browsers get nothing of public IDs", async () => {
  const secret = /public_?ids?\b/i;
  for (const name of ["browser.mjs", "browser.cjs", "decode.mjs"]) {
    const text = await readFile(path.join(root, "dist", name), "utf8");
    assert.doesNotMatch(text, secret, name);
    const module = Buffer.from(/"(AGFzbQ[^"]+)"/.exec(text)?.[1] ?? "", "base64");
    assert.doesNotMatch(module.toString("latin1"), secret, name);
  }
  assert.match(await readFile(path.join(root, "dist/workerd.mjs"), "utf8"), secret);
});

test("publint finds nothing", async () => {
  for (const { tarball } of [main, native]) {
    const bytes = await readFile(tarball);
    const { messages, pkg } = await publint({
      pack: { tarball: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) },
      strict: true,
    });
    assert.deepEqual(
      messages.map((message) => formatMessage(message, pkg)),
      [],
    );
  }
});

test("TypeScript finds the types with every module resolution", async () => {
  await run(path.join(root, "node_modules/.bin/attw"), [
    main.tarball,
    "--no-color",
    "--exclude-entrypoints",
    "./polyflake.wasm",
  ]);
});
