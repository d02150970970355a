// The installed package in headless Chromium: unbundled and bundled by Vite, on a page and in a Web Worker.
import assert from "node:assert/strict";
import { cp, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { before, describe, test } from "node:test";
import { chromium } from "playwright-core";
import { build, preview } from "vite";
import { atEnd, project, repository, root } from "./project.js";

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".json": "application/json",
};

let cwd;
let browser;
let plain;

before(async () => {
  cwd = await project();
  await cp(path.join(root, "tests/vectors.js"), path.join(cwd, "vectors.js"));
  await cp(path.join(repository, "tests/vectors.json"), path.join(cwd, "vectors.json"));
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
  atEnd(() => browser.close());
  plain = await serve(cwd);
});

/** Serves the files of a folder on a free port. */
async function serve(folder) {
  const server = createServer(async (request, response) => {
    const file = path.join(folder, path.normalize(new URL(request.url, "http://loopback").pathname));
    try {
      response.setHeader("content-type", TYPES[path.extname(file)] ?? "application/octet-stream");
      response.end(await readFile(file));
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** Opens a page, and returns the results of its promises `page`, `worker` and, if it exists, `reading`. */
async function open(url) {
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(url);
  await page.waitForFunction(() => window.ready, undefined, { timeout: 120_000 }).catch(() => {});
  assert.deepEqual(
    errors.filter((error) => !error.includes("favicon") && !error.includes("404")),
    [],
  );
  const reading = await page.evaluate(() => window.reading);
  return {
    page: await page.evaluate(() => window.page),
    worker: await page.evaluate(() => window.worker),
    ...(reading && { reading }),
  };
}

function passed(outcomes) {
  for (const [where, { failures, ran, expected }] of Object.entries(outcomes)) {
    assert.deepEqual(failures, [], where);
    assert.ok(ran > 0);
    assert.equal(ran, expected, `${where}: vectors`);
  }
}

describe("Chromium", () => {
  test("unbundled", async () => {
    passed(await open(`${plain}/plain/index.html`));
  });

  test("the entry that reads IDs, unbundled, on a page that allows no WebAssembly", async () => {
    passed(await open(`${plain}/plain/reading.html`));
  });

  test("clocks that do not advance", async () => {
    const outcomes = await open(`${plain}/plain/frozen.html`);
    const exhausted = new Array(4).fill("SEQUENCE_EXHAUSTED");
    assert.deepEqual(outcomes, { page: exhausted, worker: exhausted });
  });

  test("bundled by Vite", async () => {
    const config = { root: path.join(cwd, "vite"), configFile: false, logLevel: "error" };
    const publicDir = path.join(cwd, "public");
    await cp(path.join(cwd, "vectors.json"), path.join(publicDir, "vectors.json"));
    await build({ ...config, publicDir });
    const server = await preview({ ...config, preview: { host: "127.0.0.1", port: 0 } });
    atEnd(() => server.close());
    passed(await open(`http://127.0.0.1:${server.httpServer.address().port}/`));
  });
});
