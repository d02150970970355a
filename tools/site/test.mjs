// The site as a visitor finds it: its links, and its pages in a real browser. HYPERLINK is the link checker, SITE the
// folder to serve, SITE_SCREENSHOTS the folder for screenshots, and CHROMIUM the browser.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname, join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";

const repository = resolve(import.meta.dirname, "../..");
const site = resolve(process.env.SITE ?? join(repository, "target/site"));
const screenshots = resolve(process.env.SITE_SCREENSHOTS ?? join(repository, "target/site-screenshots"));

// The development dependencies of the npm package are used here too.
const require = createRequire(join(repository, "bindings-node/package.json"));
const { chromium } = require("playwright-core");
const axe = require("axe-core");

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/** Each page that the tests look at, and a string that it must show. */
const PAGES = {
  landing: ["", "One core, not another port"],
  code: ["getting-started/python.html", "from polyflake import"],
  tabs: ["counters.html", "next_id"],
  tables: ["errors.html", "sequence_exhausted"],
  presets: ["layouts.html", "shardingsphere"],
  benchmark: ["benchmarks/amd-epyc.html", "Ratio"],
  benchmarks: ["benchmarks/index.html", "How to read the figures"],
  counters: ["benchmarks/amd-epyc-counters.html", "A number from a counter takes"],
  targets: ["benchmarks/targets.html", "reached"],
  c: ["api/c.html", "polyflake_next_id"],
  go: ["api/go.html", "func (s *Snowflake) NextID() (ID, error)"],
  php: ["api/php.html", "public function nextId(): int"],
  api: ["api/index.html", "TypeScript"],
  rust: ["api/rust/polyflake/struct.Snowflake.html", "next_id"],
  coordination: ["api/rust/polyflake_coordination/index.html", "polyflake_coordination"],
  // The types come from the stub.
  python: ["api/python/polyflake.html", "SupportsIndex"],
  java: ["api/java/io.polyflake/io/polyflake/Snowflake.html", "public long nextId()"],
  node: ["api/node/classes/polyflake.Snowflake.html", "nextId"],
  inspector: ["inspector/index.html#inspect?id=1541815603606036480", "2022-06-28 16:07:40.105"],
};

/** The site is served below a folder, as a project's pages are on a static host. */
const BASE = "/polyflake/";

async function serve() {
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://site").pathname);
    try {
      assert.ok(path.startsWith(BASE) && !path.includes(".."));
      let file = join(site, path.slice(BASE.length));
      if ((await stat(file)).isDirectory()) file = join(file, "index.html");
      const body = await readFile(file);
      response
        .writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" })
        .end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { server, address: `http://127.0.0.1:${server.address().port}${BASE}` };
}

/** Runs the link checker, and returns its output. */
function hyperlink(folder) {
  return new Promise((done) => {
    execFile(
      process.env.HYPERLINK ?? join(repository, "target/tools/bin/hyperlink"),
      [folder, "--check-anchors"],
      { maxBuffer: 2 ** 28 },
      (error, stdout, stderr) => done({ code: error?.code ?? 0, text: stdout + stderr }),
    );
  });
}

/** Checks a link that the link checker cannot check, because it works only with scripts. */
async function works(link) {
  const [path, anchor] = link.split("#");
  const file = join(site, path, extname(path) ? "" : "index.html");
  const page = await readFile(file, "utf8");
  const has = (text, id) =>
    text.includes(` id="${id}"`) || text.includes(` id=${id} `) || text.includes(` id=${id}>`);
  // rustdoc marks several lines of a source file.
  const lines = /^(\d+)-(\d+)$/.exec(anchor);
  if (path.startsWith("/api/rust/src/") && lines) return has(page, lines[1]) && has(page, lines[2]);
  // rustdoc's page for an item that has moved, which keeps the anchor.
  const moved = /location\.replace\("([^"]+)" \+ location\.search \+ location\.hash\)/.exec(page);
  if (moved) return has(await readFile(resolve(file, "..", moved[1]), "utf8"), anchor);
  // The inspector's views.
  return path === "/inspector" && page.includes(`id="view-${anchor}"`);
}

async function broken(folder) {
  const { code, text } = await hyperlink(folder);
  const found = [...text.matchAll(/^ {2}error: bad link (.*)$/gm)].map(([, link]) => link);
  assert.match(text, /^Checking \d+ links/m);
  assert.equal(found.length > 0, code !== 0, text);
  const bad = [];
  for (const link of found) {
    if (!(link.includes("#") && (await works(link).catch(() => false)))) bad.push(link);
  }
  return [...new Set(bad)];
}

describe("links", { timeout: 300_000 }, () => {
  test("every link and anchor leads somewhere", async () => {
    assert.deepEqual(await broken(site), []);
  });

  test("a broken one is noticed", async () => {
    const folder = mkdtempSync(join(tmpdir(), "site-"));
    try {
      writeFileSync(
        join(folder, "index.html"),
        '<p id="here"><a href="#here">1</a><a href="#gone">2</a><a href="gone.html">3</a><img src="gone.svg"></p>',
      );
      assert.deepEqual((await broken(folder)).sort(), ["/#gone", "/gone.html", "/gone.svg"]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("pages", { timeout: 900_000 }, () => {
  let served;
  let browser;

  before(async () => {
    mkdirSync(screenshots, { recursive: true });
    served = await serve();
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    });
  });
  after(async () => {
    await browser?.close();
    served?.server.closeAllConnections();
    served?.server.close();
  });

  /** Calls `run` with a separate page. Errors in scripts, and requests to other hosts, fail the test. */
  async function visit(options, run) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const complaints = [];
    page.on("console", (message) => {
      if (message.type() === "error") complaints.push(`${page.url()}: ${message.text()}`);
    });
    page.on("pageerror", (error) => complaints.push(`${page.url()}: ${error}`));
    page.on("request", (request) => {
      if (!/^(data:|blob:)/.test(request.url()) && !request.url().startsWith(served.address))
        complaints.push(`${page.url()} loads ${request.url()}`);
    });
    try {
      await run(page);
      assert.deepEqual(complaints, []);
    } finally {
      await context.close();
    }
  }

  /** How light the page's background is, from 0 to 255. */
  const lightness = (page) =>
    page.evaluate(() => {
      const colors = [document.body, document.documentElement].map(
        (e) => getComputedStyle(e).backgroundColor,
      );
      const color = colors.find((each) => each !== "rgba(0, 0, 0, 0)") ?? "rgb(255, 255, 255)";
      const [red, green, blue] = color.match(/[\d.]+/g).map(Number);
      return (red + green + blue) / 3;
    });

  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 768, 360]) {
      for (const [name, [path, text]] of Object.entries(PAGES)) {
        test(`${name}, ${colorScheme}, ${width} wide`, () =>
          visit({ colorScheme, viewport: { width, height: 800 } }, async (page) => {
            await page.goto(served.address + path);
            await page.getByText(text).filter({ visible: true }).first().waitFor();
            await page.screenshot({ path: join(screenshots, `${name}-${width}-${colorScheme}.png`) });
            const over = await page.evaluate(
              () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
            );
            assert.ok(over <= 0, `${over} px wider than the window`);
            const light = await lightness(page);
            assert.equal(light > 128, colorScheme === "light", `its background's lightness is ${light}`);
          }));
      }
    }
  }

  test("a wide table scrolls in itself, code too", () =>
    visit({ viewport: { width: 360, height: 800 } }, async (page) => {
      for (const [path, selector] of [
        ["errors.html", ".table-wrapper"],
        ["layouts.html", "pre code"],
      ]) {
        await page.goto(served.address + path);
        const wide = await page
          .locator(selector)
          .evaluateAll((all) =>
            all
              .filter((each) => each.scrollWidth > each.clientWidth)
              .map((each) => getComputedStyle(each).overflowX),
          );
        assert.ok(wide.length > 0 && wide.every((overflow) => overflow === "auto"), `${path}: ${wide}`);
      }
    }));

  for (const [words, path] of [
    ["step back", "clocks.html"],
    ["even ID trap", "sharding.html"],
    ["polyflake_counter_next_block", "api/c.html"],
  ]) {
    test(`a search for "${words}" finds ${path}`, () =>
      visit({ viewport: { width: 360, height: 800 } }, async (page) => {
        await page.goto(`${served.address}benchmarks/index.html`);
        await page.keyboard.press("/");
        await page.locator("#mdbook-searchbar").pressSequentially(words);
        const found = page.locator("#mdbook-searchresults a");
        await found.first().waitFor();
        await page.screenshot({ path: join(screenshots, `search-${path.replace(/\W/g, "-")}.png`) });
        const links = await found.evaluateAll((all) => all.map((a) => new URL(a.href).pathname));
        assert.ok(links.slice(0, 3).includes(BASE + path), links.join("\n"));
        await page.locator(`#mdbook-searchresults a[href*="${path}"]`).first().click();
        await page.waitForURL(`**/${path}**`);
      }));
  }

  test("the menu leads to every part, on a phone too, and each part leads back", () =>
    visit({ viewport: { width: 360, height: 800 } }, async (page) => {
      const languages = [
        "polyflake.h",
        "Go: package polyflake",
        "PHP: namespace Polyflake",
        "Module io.polyflake",
      ];
      for (const name of ["Guide", "Inspector", "Benchmarks", "API"]) {
        await page.goto(`${served.address}getting-started/c.html`);
        await page.locator(".site-menu").getByRole("link", { name, exact: true }).click();
        await page.waitForURL((url) => !url.pathname.endsWith("/getting-started/c.html"));
        const current = page.locator(".site-menu [aria-current=page]");
        assert.equal(await current.textContent(), name);
        await page.locator(".site-name").click();
        await page.getByRole("heading", { name: "Polyflake", level: 1 }).waitFor();
      }
      const found = [];
      for (let row = 0; row < 8; row++) {
        await page.goto(`${served.address}api/index.html`);
        const links = page.locator("main td a");
        assert.equal(await links.count(), 8);
        await links.nth(row).click();
        await page.waitForURL((url) => !url.pathname.endsWith("/api/index.html"));
        const heading = page.locator("h1, h2").filter({ visible: true }).first();
        found.push((await heading.textContent()).trim());
        await page.locator(".site-name, #to-the-guide").click();
        await page.getByRole("heading", { name: "Polyflake", level: 1 }).waitFor();
      }
      for (const language of languages) assert.ok(found.includes(language), found.join("\n"));
    }));

  test("no page of the guide is wider than a phone", () =>
    visit({ viewport: { width: 360, height: 800 } }, async (page) => {
      const files = await readdir(site, { recursive: true });
      const others = /^(api\/(rust|python|node|java)|inspector)\/|^toc\.html$/;
      const pages = files.filter((file) => file.endsWith(".html") && !others.test(file));
      assert.ok(pages.length > 40, pages.join("\n"));
      for (const file of pages) {
        await page.goto(served.address + file);
        // Content that is wider has its own scroll bar.
        const over = await page.evaluate(() =>
          [document.documentElement, document.querySelector(".content")].map(
            (each) => each.scrollWidth - each.clientWidth,
          ),
        );
        assert.ok(Math.max(...over) <= 0, `${file}: ${over} px`);
      }
    }));

  const tab = (page, name) => page.getByRole("tab", { name, exact: true }).first();
  const isChosen = async (page, name) =>
    assert.equal(await tab(page, name).getAttribute("aria-selected"), "true", `${page.url()}: ${name}`);

  test("tabs remember the language on every page", () =>
    visit({ viewport: { width: 1280, height: 800 } }, async (page) => {
      await page.goto(served.address);
      await isChosen(page, "Python");
      await tab(page, "Go").click();
      await page.getByText("polyflake.New(polyflake.Node(7))").waitFor();
      assert.equal(await page.getByText("Snowflake(node=7)", { exact: false }).first().isVisible(), false);
      for (const path of ["counters.html", "text-formats.html", "sequences.html"]) {
        await page.goto(served.address + path);
        await isChosen(page, "Go");
      }
      await page.goto(served.address);
      await isChosen(page, "Go");
      // A page without Go shows its first language, but does not forget the choice.
      await page.goto(`${served.address}leases.html`);
      await isChosen(page, "Python");
      await page.goto(`${served.address}counters.html`);
      await isChosen(page, "Go");
    }));

  test("all tabs of a page change together, and by keyboard", () =>
    visit({ viewport: { width: 1280, height: 800 } }, async (page) => {
      await page.goto(`${served.address}decoding.html`);
      await tab(page, "Python").focus();
      await page.keyboard.press("ArrowRight");
      assert.match(page.url(), /decoding\.html$/);
      const chosen = page.locator("[role=tab][aria-selected=true]");
      assert.deepEqual(await chosen.allTextContents(), ["JavaScript", "JavaScript"]);
      assert.ok(await tab(page, "JavaScript").evaluate((each) => each === document.activeElement));
      await page.keyboard.press("Home");
      assert.deepEqual(await chosen.allTextContents(), ["Python", "Python"]);
      await page.keyboard.press("ArrowLeft");
      assert.deepEqual(await chosen.allTextContents(), ["JavaScript", "JavaScript"]);
      // Only the second group of tabs has Rust.
      await tab(page, "Rust").click();
      assert.deepEqual(await chosen.allTextContents(), ["JavaScript", "Rust"]);
    }));

  test("a link to a language's heading shows its tab", () =>
    visit({ viewport: { width: 1280, height: 800 } }, async (page) => {
      await page.goto(`${served.address}index.html#php`);
      await isChosen(page, "PHP");
      await page.getByText("new Polyflake\\Snowflake(node: 7)").waitFor();
    }));

  test("without scripts everything is shown, one after the other", () =>
    visit({ viewport: { width: 360, height: 800 }, javaScriptEnabled: false }, async (page) => {
      await page.goto(served.address);
      for (const language of ["Python", "Node and browsers", "Rust", "Go", "PHP", "C"])
        assert.ok(await page.getByRole("heading", { name: language, exact: true }).isVisible(), language);
      for (const text of ["make python", "make c", "00101010110010110100001000111110110001000"])
        assert.ok(await page.getByText(text).first().isVisible(), text);
      await page.goto(`${served.address}counters.html`);
      for (const block of await page.locator("main pre").all()) assert.ok(await block.isVisible());
    }));

  /** The rows of the table of fields, as the inspector and the landing page show it. */
  const fields = (page) =>
    page
      .locator("table.fields tbody tr")
      .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));

  test("the landing page takes an ID apart as the inspector does", () =>
    visit({ viewport: { width: 1280, height: 800 } }, async (page) => {
      await page.goto(served.address);
      const input = page.getByLabel("Snowflake ID", { exact: true });
      await input.waitFor();
      const picture = await readFile(join(repository, "docs/README.md"), "utf8");
      assert.match(picture, new RegExp(`data-id="${await input.inputValue()}"`));
      await page.getByRole("button", { name: "New ID" }).click();
      const made = await input.inputValue();
      for (const id of ["1541815603606036480", made, "0", String(2n ** 63n - 1n)]) {
        await page.goto(served.address);
        await input.fill(id);
        const cells = () => page.locator(".cell").allTextContents();
        const shown = [await fields(page), await cells()];
        assert.equal(shown[0].length, 4);
        const time = await page.locator(".said span").textContent();
        await page.getByRole("link", { name: "Open in the inspector" }).click();
        await page.locator("table.fields").waitFor();
        assert.deepEqual([await fields(page), await cells()], shown);
        assert.equal(await page.getByLabel("Snowflake ID", { exact: true }).inputValue(), id);
        await page.getByText(time.split(",")[0]).first().waitFor();
      }
      const [, [, , , datacenter], [, , , worker]] = await fields(page);
      assert.deepEqual([datacenter, worker], ["31", "31"]);
    }));

  test("arrows move within what has the focus, and turn pages otherwise", () =>
    visit({ viewport: { width: 360, height: 800 } }, async (page) => {
      await page.goto(served.address);
      await page.getByLabel("Snowflake ID", { exact: true }).focus();
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("/");
      assert.match(await page.getByLabel("Snowflake ID", { exact: true }).inputValue(), /\//);
      await page.goto(`${served.address}errors.html`);
      const table = page.locator(".table-wrapper").first();
      await table.focus();
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction(() => document.activeElement.scrollLeft > 0);
      await table.evaluate((each) => each.blur());
      await page.keyboard.press("ArrowRight");
      await page.waitForURL("**/benchmarks/index.html");
    }));

  test("the landing page says what is wrong with an ID", () =>
    visit({ viewport: { width: 360, height: 800 } }, async (page) => {
      await page.goto(served.address);
      await page.getByLabel("Snowflake ID", { exact: true }).fill("12x");
      await page.locator(".live-id .error").waitFor();
      assert.equal(await page.locator(".live-id table").count(), 0);
    }));

  test("a benchmark page begins with its chart and ends with its machine", () =>
    visit({ viewport: { width: 1280, height: 800 } }, async (page) => {
      for (const name of ["amd-epyc", "amd-epyc-counters", "amd-epyc-service", "intel-xeon"]) {
        await page.goto(`${served.address}benchmarks/${name}.html`);
        const top = await page.locator("main img").first().boundingBox();
        assert.ok(top.y < 200, `${name}: ${top.y}`);
        const headings = await page.locator("main h2").allTextContents();
        assert.equal(headings.at(-1).trim(), "How it was measured");
        assert.equal(await page.locator("main").getByText("reached").count(), 0);
      }
    }));

  test("axe finds nothing on pages of each kind", () =>
    visit({ viewport: { width: 1280, height: 800 } }, async (page) => {
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        for (const path of [
          "index.html",
          "counters.html",
          "benchmarks/amd-epyc.html",
          "inspector/index.html",
        ]) {
          await page.goto(served.address + path);
          if (path === "index.html") await page.locator(".live-id.live").waitFor();
          await page.evaluate(axe.source);
          const { violations } = await page.evaluate(() =>
            // Skip mdBook's own bar, and allow tables whose first column has no name.
            axe.run(
              { exclude: ["#mdbook-menu-bar"] },
              { rules: { "empty-table-header": { enabled: false } } },
            ),
          );
          const found = violations.map(({ id, nodes }) => `${path}: ${id}: ${nodes[0].html}`);
          assert.deepEqual(found, []);
        }
      }
    }));

  test("the inspector and the book have the same colours", () =>
    visit({ viewport: { width: 1280, height: 800 } }, async (page) => {
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        const seen = [];
        for (const path of ["index.html", "inspector/index.html"]) {
          await page.goto(served.address + path);
          const names = ["--back", "--card", "--text", "--accent", "--line", "--node8"];
          seen.push(
            await page.evaluate((all) => {
              const style = getComputedStyle(document.documentElement);
              return all.map((name) => style.getPropertyValue(name).trim());
            }, names),
          );
        }
        assert.deepEqual(seen[0], seen[1]);
        assert.ok(seen[0].every((colour) => /^#/.test(colour)));
      }
    }));

  test("the inspector reads an ID, and generates some", () =>
    visit({ viewport: { width: 1280, height: 800 } }, async (page) => {
      await page.goto(`${served.address}inspector/`);
      await page.getByLabel("Snowflake ID", { exact: true }).fill("175928847299117063");
      await page.getByText("2016-04-30 11:18:25.796").first().waitFor();
      for (const view of ["Layout", "Generate", "Inspect"]) {
        await page.getByRole("link", { name: view, exact: true }).click();
        await page.waitForURL(`**/inspector/**#${view.toLowerCase()}**`);
      }
      await page.getByRole("link", { name: "Generate", exact: true }).click();
      await page.getByRole("button", { name: "Generate", exact: true }).click();
      await page.getByRole("heading", { name: "10 IDs" }).waitFor();
    }));

  test("each chart is shown", () =>
    visit({ viewport: { width: 360, height: 800 } }, async (page) => {
      await page.goto(`${served.address}benchmarks/amd-epyc.html`);
      const images = page.locator("main img").filter({ visible: true });
      assert.ok((await images.count()) >= 5);
      for (const image of await images.all()) {
        await image.scrollIntoViewIfNeeded();
        assert.ok(await image.evaluate((img) => img.decode().then(() => img.naturalWidth > 0)));
        assert.ok((await image.boundingBox()).width <= 360);
      }
      await images.first().scrollIntoViewIfNeeded();
      await page.screenshot({ path: join(screenshots, "chart-360.png") });
    }));
});
