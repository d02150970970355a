// Checks how much of the package a program loads. docs/getting-started/node.md states the sizes, in KB.
import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { before, describe, test } from "node:test";
import { build } from "vite";
import { folder, pack, platform, project, repository, root, run } from "./project.js";

/** The maximum size of all of `polyflake/decode` in bytes, minified and gzipped. */
const MOST_OF_DECODE = 3 * 1024;

let cwd;
let main;
let native;

before(async () => {
  const into = await folder();
  cwd = await project({ native: false });
  main = await pack(root, into);
  native = await pack(platform, into);
});

/**
 * Returns a file's size in bytes, plain and gzipped. Node's zlib is not used, because its output has a different size.
 */
async function sizeOf(file) {
  const { stdout } = await run("gzip", ["-9cn", file], { encoding: "buffer" });
  return { bytes: (await stat(file)).size, gzipped: stdout.length };
}

/** Returns the size of a program minified by Vite. */
async function bundled(program, conditions = ["browser"]) {
  const at = await folder();
  await writeFile(path.join(cwd, "program.js"), program);
  const { output } = await build({
    root: cwd,
    configFile: false,
    logLevel: "error",
    resolve: { conditions },
    build: {
      write: false,
      target: "es2022",
      rollupOptions: {
        input: path.join(cwd, "program.js"),
        external: /\.wasm$/,
        preserveEntrySignatures: "strict",
      },
    },
  });
  assert.equal(output.length, 1);
  const file = path.join(at, "program.js");
  await writeFile(file, output[0].code);
  return sizeOf(file);
}

const packed = ({ unpackedSize, size }) => ({ bytes: unpackedSize, gzipped: size });

/** The measurements, keyed by the first cell of the row. */
const MEASURES = {
  "`decode` and a preset, of `polyflake/decode`": () =>
    bundled(`import { decode, discord } from "polyflake/decode"; console.log(decode("1", discord).time);`),
  "`parseId`, of `polyflake/decode`": () =>
    bundled(`import { parseId } from "polyflake/decode"; console.log(parseId("1", "base62"));`),
  "all of `polyflake/decode`": () => bundled(`export * from "polyflake/decode";`),
  "`polyflake` in a browser, with the WebAssembly": () => bundled(`export * from "polyflake";`),
  "`polyflake` in workerd, beside `polyflake/polyflake.wasm`": () =>
    bundled(`export * from "polyflake";`, ["workerd"]),
  "`polyflake/polyflake.wasm`": () => sizeOf(path.join(root, "dist/polyflake.wasm")),
  "`polyflake` as npm installs it": async () => packed(main),
  "`@polyflake/linux-x64-gnu`, the addon for Node": async () => packed(native),
};

/** The rows of the page's table. */
async function stated() {
  const page = await readFile(path.join(repository, "docs/getting-started/node.md"), "utf8");
  const [, rows] = /^\| what \| KB \| KB gzipped \|\n\|[-|]+\|\n((?:\|.*\n)+)/m.exec(page);
  return new Map(
    rows
      .trimEnd()
      .split("\n")
      .map((row) => row.split("|").map((cell) => cell.trim()))
      .map(([, what, bytes, gzipped]) => [what, { bytes: Number(bytes), gzipped: Number(gzipped) }]),
  );
}

describe("sizes", () => {
  test("every row of the page is measured", async () => {
    assert.deepEqual([...(await stated()).keys()], Object.keys(MEASURES));
  });

  for (const [what, measure] of Object.entries(MEASURES)) {
    // Development builds are larger.
    const skip = what.includes("the addon") && process.env.PROFILE === "dev";
    test(`${what} is what the page says, within 5 %`, { skip }, async () => {
      const [size, says] = [await measure(), (await stated()).get(what)];
      const kilobytes = { bytes: size.bytes / 1024, gzipped: size.gzipped / 1024 };
      assert.ok(
        Object.keys(says).every((of) => Math.abs(says[of] / kilobytes[of] - 1) <= 0.05),
        `${kilobytes.bytes} KB, ${kilobytes.gzipped} KB gzipped; the page says ${says.bytes}, ${says.gzipped}`,
      );
    });
  }

  test(`all of polyflake/decode is at most ${MOST_OF_DECODE} bytes gzipped`, async () => {
    const { gzipped } = await MEASURES["all of `polyflake/decode`"]();
    assert.ok(gzipped <= MOST_OF_DECODE, `${gzipped} bytes gzipped`);
  });

  test("no program but those of the whole package has WebAssembly", async () => {
    const code = await readFile(path.join(root, "dist/decode.mjs"), "utf8");
    assert.ok(!code.includes("WebAssembly.") && !/^import /m.test(code));
  });
});
