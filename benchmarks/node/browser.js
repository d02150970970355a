// Runs page.js in headless Chromium.

import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { cause, peers } from "./peers.js";

const here = fileURLToPath(new URL(".", import.meta.url));
const HTML = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.js"></script>';
const OURS = fileURLToPath(new URL("../../bindings-node/dist/browser.mjs", import.meta.url));

// What a peer's package needs besides itself in a browser.
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

/** The rows of the browser's table, and the missing peers. */
export async function inBrowser(rounds) {
  const ends = [];
  const missing = [];
  try {
    const [esbuild, { chromium }] = await Promise.all([import("esbuild"), import("playwright-core")]);
    const files = new Map([
      ["/", { type: "text/html", text: HTML }],
      ["/page.js", await bundle(esbuild, { entryPoints: [`${here}page.js`], alias: { polyflake: OURS } })],
    ]);
    const bundled = [];
    for (const [n, { name }] of peers.entries()) {
      const { before = "", modules = {} } = NEEDS[name] ?? {};
      const contents = `${before} import * as exported from ${JSON.stringify(name)}; export { exported };`;
      const url = `/${n}.js`;
      try {
        const options = { stdin: { contents, resolveDir: here }, plugins: [standIns(modules)] };
        files.set(url, await bundle(esbuild, options));
        bundled.push({ name, url });
      } catch (error) {
        missing.push({ kind: "missing", name, why: `does not bundle: ${cause(error)}` });
      }
    }
    const { url, server } = await serve(files);
    ends.unshift(() => server.close());
    const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
    const browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args,
    });
    ends.unshift(() => browser.close());
    const page = await browser.newPage();
    await page.goto(url);
    await page.waitForFunction(() => globalThis.bench);
    console.error(`Chromium ${browser.version()}`);
    return [...missing, ...(await page.evaluate(([n, all]) => globalThis.bench(n, all), [rounds, bundled]))];
  } catch (error) {
    const why = `no figures from Chromium: ${cause(error)}`;
    const none = ["polyflake", ...peers.map(({ name }) => name)];
    return none.map((name) => ({ kind: "missing", name, why }));
  } finally {
    for (const end of ends) await end();
  }
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

/** An esbuild plugin that replaces Node's modules with texts. */
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
