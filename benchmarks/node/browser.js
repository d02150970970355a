// Runs page.js in headless Chromium.

import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const HTML = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.js"></script>';
const CHUNK = 64;
const OURS = fileURLToPath(new URL("../../bindings-node/dist/browser.mjs", import.meta.url));

// What a peer's package needs in a browser, besides the package itself.
const NEEDS = {
  "nodejs-snowflake": {
    modules: {
      fs: 'import wasm from "nodejs-snowflake/nodejs_snowflake_bg.wasm"; export const readFileSync = () => wasm;',
      path: 'export const join = (...parts) => parts.join("/");',
      util: "export const { TextDecoder, TextEncoder } = globalThis;",
    },
  },
  "flake-idgen": {
    before: 'import { Buffer } from "buffer"; globalThis.Buffer = Buffer;',
  },
};

/** The measurements for a row in the browser's table: those of the package, or of the floor if the name is empty. */
export async function inBrowser(name) {
  const [esbuild, { chromium }] = await Promise.all([import("esbuild"), import("playwright-core")]);
  const { before = "", modules = {} } = NEEDS[name] ?? {};
  const from = JSON.stringify(name === "polyflake" ? OURS : name);
  const contents = name && `${before} import * as exported from ${from}; export { exported };`;
  const stdin = { contents, resolveDir: here };
  const files = new Map([
    ["/", { type: "text/html", text: HTML }],
    ["/page.js", await bundle(esbuild, { entryPoints: [`${here}page.js`] })],
    ["/subject.js", await bundle(esbuild, { stdin, plugins: [standIns(modules)] })],
  ]);
  const { url, server } = await serve(files);
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
  });
  const page = await browser.newPage();
  await page.goto(url);
  await page.waitForFunction(() => globalThis.prepare);
  await page.evaluate((name) => globalThis.prepare(name, "/subject.js"), name);
  return {
    round: () => page.evaluate(() => globalThis.round()),
    chunk: name ? CHUNK : 0,
    ids: async (count) =>
      Uint32Array.from(await page.evaluate(([count, chunk]) => globalThis.ids(count, chunk), [count, CHUNK])),
    end: () => Promise.all([browser.close(), server.close()]),
  };
}

/** Bundles a module and all its imports in one file. */
async function bundle(esbuild, options) {
  const { outputFiles } = await esbuild.build({
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    define: { __dirname: '""' },
    loader: { ".wasm": "binary" },
    logLevel: "silent",
    write: false,
    absWorkingDir: here,
    ...options,
  });
  return { type: "text/javascript", text: outputFiles[0].text };
}

/** An esbuild plugin that replaces Node's modules with source text. */
function standIns(modules) {
  return {
    name: "stand-ins",
    setup(build) {
      const names = Object.keys(modules);
      if (names.length === 0) return;
      const filter = new RegExp(`^(${names.join("|")})$`);
      build.onResolve({ filter }, ({ path }) => ({ path, namespace: "stand-in" }));
      build.onLoad({ filter: /./, namespace: "stand-in" }, ({ path }) => ({
        contents: modules[path],
        resolveDir: here,
      }));
    },
  };
}

/** Serves the files, isolated from other origins: such a page has the most precise timers. */
async function serve(files) {
  const server = createServer((request, response) => {
    const file = files.get(request.url);
    response.writeHead(file ? 200 : 404, {
      "content-type": file?.type ?? "text/plain",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-embedder-policy": "require-corp",
    });
    response.end(file?.text);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `http://127.0.0.1:${server.address().port}/` };
}
