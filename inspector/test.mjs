// Drives the built page in a real browser. INSPECTOR_SITE is the folder to serve, INSPECTOR_SCREENSHOTS the folder for
// screenshots, and CHROMIUM the browser.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, resolve } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { pathToFileURL } from "node:url";

const repository = resolve(import.meta.dirname, "..");
const site = resolve(process.env.INSPECTOR_SITE ?? join(repository, "target/inspector/site"));
const screenshots = resolve(
  process.env.INSPECTOR_SCREENSHOTS ?? join(repository, "target/inspector/screenshots"),
);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

// The development dependencies of the npm package are used here too.
const require = createRequire(join(repository, "bindings-node/package.json"));
const { chromium } = require("playwright-core");
const axe = require("axe-core");
const { formatId, Layout, PolyflakeError } = await import(
  pathToFileURL(join(repository, "bindings-node/dist/browser.mjs")).href
);

const TYPES = { ".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript" };

async function serve() {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://page");
    const name = pathname === "/" ? "index.html" : pathname.slice(1);
    try {
      const body = await readFile(join(site, name));
      response
        .writeHead(200, { "content-type": TYPES[extname(name)] ?? "application/octet-stream" })
        .end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { server, address: `http://127.0.0.1:${server.address().port}/` };
}

const TWITTER = "1541815603606036480";
const DISCORD = "175928847299117063";
const TSID = "01226N0640J7Q";

const VIEWS = {
  start: "",
  inspect: `#inspect?id=${TWITTER}`,
  readings: `#inspect?id=${TSID}`,
  unreadable: "#inspect?id=zz!",
  "layout-invalid": "#inspect?id=12&layout=nonsense",
  layout: "#layout",
  "many-fields":
    "#layout?layout=timestamp:41%7Ca:2%7Cb:1%7Cregion-with-a-long-name:3%7Cd:2%7Ce:1%7Cf:1%7Cg:1%7Ch:1%7Csequence:11@1735689600000/1ms",
  "73-bits": "#layout?layout=timestamp:37%7Cworker:20%7Csequence:16@0/1ms",
  generate: "#generate?layout=discord",
  "node-invalid": "#generate?node=datacenter:1,worker:99",
};

describe("inspector", { timeout: 1_800_000 }, () => {
  let served;
  let browser;
  let context;
  let page;
  let complaints;

  before(async () => {
    mkdirSync(screenshots, { recursive: true });
    served = await serve();
    browser = await chromium.launch({
      executablePath,
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    });
  });
  after(async () => {
    await browser?.close();
    served.server.closeAllConnections();
    served.server.close();
  });

  async function open(hash = "", options = {}, from = served.address) {
    await context?.close();
    context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      timezoneId: "Europe/Zurich",
      permissions: ["clipboard-read", "clipboard-write"],
      ...options,
    });
    await go(hash, from);
  }

  async function go(hash, from = served.address) {
    await page?.close();
    page = await context.newPage();
    page.setDefaultTimeout(120_000);
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(String(error.stack ?? error)));
    await page.goto(from + hash);
    await page.waitForFunction(() => document.title.includes("·"));
  }

  beforeEach(async () => {
    complaints = [];
    await open();
  });
  afterEach(async () => {
    assert.deepEqual(complaints, []);
  });

  const idInput = () => page.getByLabel("Snowflake ID");
  const answer = () => page.getByRole("region", { name: "The ID" });
  const fits = () => page.getByRole("region", { name: "Layouts" });
  const readings = () => page.getByRole("region", { name: "Readings" });
  const figures = () => page.getByRole("region", { name: "What the layout gives" });
  const fact = async (region, name) =>
    (
      await region
        .locator("dt", { hasText: new RegExp(`^${name}$`) })
        .locator("xpath=following-sibling::dd")
        .innerText()
    )
      .replace(/\s+/g, " ")
      .trim();
  // The address changes before the view does.
  const choose = async (layout) => {
    await fits().getByRole("link", { name: layout }).click();
    await answer().getByText(`As ${layout}`).waitFor();
  };
  // page.url() may lag behind a URL that a script has just set.
  const address = () => page.evaluate(() => location.href);
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  const names = (region) => region.locator(".choice b").allInnerTexts();
  const said = (text) =>
    page.waitForFunction((part) => document.getElementById("said").textContent.includes(part), text);

  /** The table of fields: each field's name and its value. */
  const values = async () =>
    Object.fromEntries(
      await answer()
        .locator("tbody tr")
        .evaluateAll((rows) =>
          rows.map((row) => [row.dataset.field, row.querySelector(".value").textContent]),
        ),
    );

  const message = (call) => {
    try {
      call();
    } catch (error) {
      assert.ok(error instanceof PolyflakeError);
      return error.message;
    }
    assert.fail("nothing was thrown");
  };

  describe("an ID", () => {
    test("Twitter's published one", async () => {
      await idInput().fill(TWITTER);
      assert.equal((await names(fits()))[0], "twitter");
      assert.match(await fact(answer(), "UTC"), /^2022-06-28 16:07:40\.105 UTC/);
      assert.match(await fact(answer(), "Local"), /^2022-06-28 18:07:40\.105 GMT\+2 Europe\/Zurich$/);
      assert.match(await fact(answer(), "Node"), /^378 /);
      assert.deepEqual(await values(), {
        timestamp: "367597485448",
        datacenter: "11",
        worker: "26",
        sequence: "0",
      });
      const bits = (await answer().locator(".cell").allInnerTexts()).join("");
      assert.equal(bits, "0001010101100101101000010001111101100010000101111010000000000000");
      assert.equal(
        await answer().getByRole("img").getAttribute("aria-label"),
        "64 bits, from the highest: 1 unused; timestamp 41 bits, 367597485448; datacenter 5 bits, 11; worker 5 bits, 26; sequence 12 bits, 0",
      );
      await said("twitter: 2022-06-28 16:07:40.105 UTC");
    });

    test("every text format reads back and can be copied", async () => {
      await idInput().fill(TWITTER);
      for (const format of [
        "decimal",
        "hex",
        "base32",
        "base36",
        "base58",
        "base62",
        "uuid",
        "bwmarrin-base32",
        "bwmarrin-base58",
      ]) {
        const text = formatId(TWITTER, format);
        assert.equal(
          await answer()
            .locator("dt", { hasText: new RegExp(`^${format}$`) })
            .locator("xpath=..")
            .locator("code")
            .innerText(),
          text,
        );
        await answer()
          .getByRole("button", { name: `Copy ${format}`, exact: true })
          .click();
        assert.equal(await clipboard(), text);
        await go(`#inspect?id=${text}&as=${format}`);
        assert.equal(
          await answer()
            .locator("dt", { hasText: "decimal" })
            .locator("xpath=..")
            .locator("code")
            .innerText(),
          TWITTER,
        );
      }
    });

    test("Discord's published one, chosen from the list, and Back to the start", async () => {
      await idInput().fill(DISCORD);
      await choose("discord");
      assert.match(await fact(answer(), "UTC"), /^2016-04-30 11:18:25\.796 UTC/);
      assert.deepEqual(await values(), {
        timestamp: "41944705796",
        worker: "1",
        process: "0",
        sequence: "7",
      });
      assert.match(await address(), /#inspect\?id=175928847299117063&layout=discord$/);
      assert.equal(await fits().locator("[aria-current]").getAttribute("data-key"), "fit discord");
      await idInput().fill(TWITTER);
      assert.match(await fact(answer(), "UTC"), /^2026-08-25 14:24:45\.448 UTC/);
      await page.goBack();
      assert.equal(await idInput().inputValue(), DISCORD);
      await page.goBack();
      assert.match(await answer().locator("h2").innerText(), /twitter/);
      await page.goBack();
      assert.equal(await idInput().inputValue(), "");
      assert.equal(
        await page.getByRole("heading", { name: "Or start from a published one" }).isVisible(),
        true,
      );
    });

    test("a TSID as text: each reading is shown, base32 first", async () => {
      await idInput().fill(TSID);
      assert.deepEqual(await names(readings()), ["base32", "base36"]);
      assert.equal((await names(fits()))[0], "tsid");
      assert.deepEqual(await values(), { timestamp: "9145327665", node: "4", sequence: "2295" });
      await readings().getByRole("link", { name: "base36" }).click();
      assert.match(await address(), /as=base36/);
      assert.match(await answer().innerText(), /139155870040489286/);
    });

    test("hex with and without 0x, in either case, and what a console or JSON puts around an ID", async () => {
      for (const text of [
        "1565a11f6217a000",
        "0x1565a11f6217a000",
        "1565A11F6217A000",
        `"${TWITTER}",`,
        `${TWITTER}n`,
        ` ${TWITTER}\n`,
      ]) {
        await idInput().fill(text);
        assert.match(await fact(answer(), "UTC"), /^2022-06-28 16:07:40\.105 UTC/, text);
      }
    });

    test("ShardingSphere's and Baidu's published ones", async () => {
      await go("#inspect?id=725026630224842752&layout=shardingsphere");
      assert.match(await fact(answer(), "UTC"), /^2022-04-24 08:36:58\.989 UTC/);
      const { worker, sequence } = await values();
      assert.deepEqual([worker, sequence], ["1", "0"]);
      await go(
        "#inspect?id=180363646902239241&layout=timestamp:29%7Cworker:21%7Csequence:13@1474300800000/1s",
      );
      assert.match(await fact(answer(), "UTC"), /^2017-01-19 04:15:46\.000 UTC/);
      assert.equal(await answer().locator(".layout-name").innerText(), "your layout");
      const baidu = await values();
      assert.deepEqual([baidu.worker, baidu.sequence], ["4", "9"]);
    });

    test("plausible times come first, with reasons; a small number is just after every epoch", async () => {
      await idInput().fill(TWITTER);
      const headings = await fits().locator("h3").allInnerTexts();
      assert.match(headings[0], /^Plausible time/);
      assert.match(headings[1], /^Unlikely time/);
      const mastodon = fits().getByRole("link", { name: "mastodon" });
      assert.match(await mastodon.innerText(), /in \d+ years/);
      await fits()
        .getByText(/^Does not fit/)
        .click();
      const expected = message(() => new Layout("js-safe").decode(TWITTER));
      assert.ok((await fits().locator(".reasons").innerText()).includes(expected));
      await idInput().fill("12345");
      assert.match((await fits().locator("h3").allInnerTexts())[0], /^Just after the epoch/);
      await idInput().fill("0");
      assert.match(await fact(answer(), "UTC"), /^2010-11-04 01:42:54\.657 UTC/);
    });

    test("the lowest and highest ID of its tick, and why a layout with a node above the time has none", async () => {
      await idInput().fill(TWITTER);
      await answer().getByText("IDs of the same tick").click();
      const layout = new Layout("twitter");
      const { timestampMs } = layout.decode(TWITTER);
      assert.equal(
        await answer().locator("details code").first().innerText(),
        String(layout.minId(timestampMs)),
      );
      assert.equal(
        await answer().locator("details code").last().innerText(),
        String(layout.maxId(timestampMs)),
      );
      await choose("seata");
      assert.equal(
        await answer().locator("details .error").innerText(),
        message(() => new Layout("seata").minId(timestampMs)),
      );
    });

    test("a text that is not an ID: every format says why", async () => {
      await idInput().fill("zz!");
      assert.equal(await idInput().getAttribute("aria-invalid"), "true");
      assert.match(await answer().innerText(), /base32\s+invalid_id: .*position 3/);
      await said("No format reads this as an ID");
      await idInput().fill("18446744073709551616");
      assert.match(await answer().innerText(), /decimal\s+invalid_id: /);
    });

    test("a chosen layout that the ID does not fit, or that does not exist", async () => {
      await go(`#inspect?id=${TWITTER}&layout=js-safe`);
      assert.ok((await answer().innerText()).includes(message(() => new Layout("js-safe").decode(TWITTER))));
      await answer().getByRole("link", { name: "Choose the likeliest layout" }).click();
      assert.match(await address(), /#inspect\?id=1541815603606036480$/);
      await go(`#inspect?id=${TWITTER}&layout=twiter`);
      assert.ok((await answer().innerText()).includes(message(() => new Layout("twiter"))));
    });
  });

  describe("a layout", () => {
    const error = () => page.locator("#layout-error");

    test("how long the presets last and how many IDs they give", async () => {
      await go("#layout");
      assert.match(await figures().locator("h2").innerText(), /^Lasts\s+69\.7 years$/);
      assert.match(await fact(figures(), "Ends"), /^2080-07-10 17:30:30\.208 UTC in /);
      assert.match(await fact(figures(), "Nodes"), /^1,024 datacenter 32 × worker 32$/);
      assert.match(await fact(figures(), "IDs a second and node"), /^4,096,000 4,096 in each ms$/);
      assert.match(await fact(figures(), "IDs a second in all"), /^4\.19 billion /);
      await page.getByLabel("Start from").selectOption("baidu");
      assert.match(await figures().locator("h2").innerText(), /^Lasted/);
      assert.match(await fact(figures(), "Ends"), /^2024-11-20 13:24:15\.999 UTC ran out/);
      assert.match(await fact(figures(), "IDs a second and node"), /^8,192 8,192 in each tick of 1 s$/);
      assert.match(await address(), /#layout\?layout=baidu$/);
      for (const name of Layout.presets) {
        await page.getByLabel("Start from").selectOption(name);
        assert.ok((await figures().innerText()).includes(String(new Layout(name))), name);
      }
    });

    test("73 bits: the core's message is beside the widths until they fit", async () => {
      await go("#layout?layout=timestamp:37%7Cworker:10%7Csequence:16@0/1ms");
      await page.getByLabel("Bits of field 2").fill("20");
      const fields = { timestamp: 37, worker: 20, sequence: 16 };
      const expected = message(() => new Layout({ fields, epochMs: 0 }));
      assert.match(expected, /^invalid_layout: .*73 bits.*9/);
      assert.equal(await error().innerText(), expected);
      assert.ok((await figures().innerText()).includes(expected));
      for (const field of [1, 2, 3]) {
        const width = page.getByLabel(`Bits of field ${field}`);
        assert.equal(await width.getAttribute("aria-invalid"), "true");
        assert.equal(await width.getAttribute("aria-describedby"), "layout-error");
      }
      await said(expected);
      await page.getByLabel("Bits of field 2").fill("11");
      assert.equal(await error().count(), 0);
      assert.match(await figures().locator("h2").innerText(), /4\.4 years/);
    });

    test("every other error is beside its field", async () => {
      const beside = async (label, text) => {
        const input = page.getByLabel(label, { exact: true });
        const good = await input.inputValue();
        await input.fill(text);
        assert.equal(await input.getAttribute("aria-invalid"), "true", label);
        assert.match(await error().innerText(), /^invalid_layout: /);
        assert.equal(
          await error().evaluate((p) => p.parentElement.contains(document.activeElement)),
          true,
          label,
        );
        await input.fill(good);
        assert.equal(await error().count(), 0, label);
      };
      await go("#layout");
      await beside("Bits of field 2", "0");
      await beside("Bits of field 4", "");
      await beside("Name of field 2", "Data Center");
      await beside("Name of field 3", "datacenter");
      await beside("Epoch, in Unix ms", "-1");
      await beside("Epoch, in Unix ms", "");
      await beside("Tick, in ms", "0");
      await page.getByLabel("Name of field 1").fill("time");
      assert.match(await error().innerText(), /^invalid_layout: .*timestamp/);
      await go("#layout?layout=twiter");
      assert.equal(
        await error().innerText(),
        message(() => new Layout("twiter")),
      );
    });

    test("fields are added, moved, renamed and removed; the epoch is a date or Unix ms", async () => {
      await go("#layout");
      await page.getByRole("button", { name: "Add a field" }).click();
      assert.equal(
        await page.getByLabel("Name of field 4").evaluate((input) => input === document.activeElement),
        true,
      );
      await page.keyboard.type("rack");
      assert.match(await figures().innerText(), /timestamp:41\|datacenter:5\|worker:5\|rack:1\|sequence:12@/);
      await page.getByRole("button", { name: "Move field 4 up" }).click();
      assert.equal(
        await page.evaluate(() => document.activeElement.getAttribute("aria-label")),
        "Move field 3 up",
      );
      await page.getByRole("button", { name: "Remove field 2" }).click();
      await page.getByLabel("Epoch, as a date in UTC").fill("2025-01-01T00:00:00.000");
      await page.getByLabel("Tick, in ms").fill("10");
      assert.match(
        await figures().innerText(),
        /timestamp:41\|rack:1\|worker:5\|sequence:12@1735689600000\/10ms/,
      );
      assert.equal(await page.getByLabel("Epoch, in Unix ms").inputValue(), "1735689600000");
      await page.getByLabel("Epoch, in Unix ms").fill("0");
      assert.equal(await page.getByLabel("Epoch, as a date in UTC").inputValue(), "1970-01-01T00:00");
      await figures().getByRole("button", { name: "Copy layout" }).click();
      assert.equal(await clipboard(), "timestamp:41|rack:1|worker:5|sequence:12@0/10ms");
    });

    test("Back undoes a burst of editing at once", async () => {
      await go("#layout");
      await page.getByLabel("Bits of field 1").focus();
      for (let step = 0; step < 3; step += 1) await page.keyboard.press("ArrowDown");
      assert.match(await figures().locator("h2").innerText(), /8\.7 years/);
      await page.goBack();
      assert.equal(await page.getByLabel("Bits of field 1").inputValue(), "41");
      assert.match(await figures().locator("h2").innerText(), /69\.7 years/);
    });

    test("an end past the year 275760 is shown in Unix ms", async () => {
      await go("#layout?layout=timestamp:63%7Csequence:1@0/1ms");
      assert.match(await fact(figures(), "Ends"), /^Unix ms 9223372036854775807 in 292 million years$/);
    });
  });

  describe("generating", () => {
    const made = () => page.locator("#made-list a").allInnerTexts();

    test("as many as asked for, with the chosen layout and node; copied one by one, all at once, and in another format", async () => {
      await go("#generate?layout=discord&node=worker:5,process:6&count=100");
      await page.getByRole("button", { name: "Generate", exact: true }).click();
      await page.getByRole("heading", { name: "100 IDs" }).waitFor();
      const ids = await made();
      assert.equal(new Set(ids).size, 100);
      const oldestFirst = ids.map(BigInt).reverse();
      assert.ok(oldestFirst.every((id, index) => index === 0 || id > oldestFirst[index - 1]));
      const layout = new Layout("discord");
      for (const id of ids) assert.deepEqual({ ...layout.decode(id).fields }, { worker: 5, process: 6 });
      await page.getByRole("button", { name: `Copy ${ids[0]}` }).click();
      assert.equal(await clipboard(), ids[0]);
      await page.getByRole("button", { name: "Copy all IDs" }).click();
      assert.deepEqual((await clipboard()).split("\n"), oldestFirst.map(String));
      await page.getByLabel("Written as").selectOption("base62");
      assert.deepEqual(
        await made(),
        ids.map((id) => formatId(id, "base62")),
      );
      await page.getByRole("button", { name: "Copy JSON of all IDs" }).click();
      assert.deepEqual(
        JSON.parse(await clipboard()),
        oldestFirst.map((id) => formatId(id, "base62")),
      );
      await page.locator("#made-list a").first().click();
      assert.equal(
        await answer().locator("dt", { hasText: "decimal" }).locator("xpath=..").locator("code").innerText(),
        ids[0],
      );
      assert.equal((await values()).worker, "5");
    });

    test("live, until stopped", async () => {
      await go("#generate");
      await page.getByRole("button", { name: "Generate live" }).click();
      await page.locator("#made-list li").nth(2).waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      const ids = await made();
      await page.getByRole("button", { name: "Generate", exact: true }).click();
      await page.getByRole("heading", { name: `${ids.length + 10} IDs` }).waitFor();
      assert.equal(new Set(await made()).size, ids.length + 10);
      await page.getByRole("button", { name: "Clear" }).click();
      assert.deepEqual(await made(), []);
    });

    test("more than fit one tick", async () => {
      await go("#generate?layout=timestamp:41%7Csequence:2@0/1ms&count=100");
      await page.getByRole("button", { name: "Generate", exact: true }).click();
      await page.getByRole("heading", { name: "100 IDs" }).waitFor();
      assert.equal(new Set(await made()).size, 100);
    });

    test("a node that does not fit, and a layout that has run out", async () => {
      await go("#generate");
      const worker = page.getByLabel(/^worker/);
      await worker.fill("99");
      const expected = message(() =>
        new Layout("twitter").compose(Date.now(), { datacenter: 0, worker: 99 }, 0),
      );
      assert.equal(await page.locator("#generate-error").innerText(), expected);
      assert.equal(await worker.getAttribute("aria-invalid"), "true");
      await go("#generate?layout=baidu");
      await page.getByRole("button", { name: "Generate", exact: true }).click();
      assert.match(await page.locator("#generate-error").innerText(), /^time_out_of_range: /);
      await go("#generate?layout=timestamp:37%7Cworker:20%7Csequence:16@0/1ms");
      assert.match(await page.locator("#generate-error").innerText(), /73 bits/);
      assert.equal(await page.getByRole("button", { name: "Generate", exact: true }).isDisabled(), true);
    });
  });

  test("a shared address shows the same view", async () => {
    const shown = () =>
      page.evaluate(() => [
        document.title,
        // A time such as "in 2 days" may change while the test runs.
        document
          .querySelector("main")
          .innerText.replaceAll(/\bin [\d.,]+ (year|day)s?|[\d.,]+ (year|day)s? ago/g, ""),
        ...[...document.querySelectorAll("main section:not([hidden]) :is(input, select)")].map(
          ({ value }) => value,
        ),
      ]);
    await idInput().fill(TSID);
    await readings().getByRole("link", { name: "base36" }).click();
    await choose("seata");
    const addresses = [await address()];
    const views = [await shown()];
    const keep = async () => {
      addresses.push(await address());
      views.push(await shown());
    };
    await page.getByRole("link", { name: "Layout", exact: true }).click();
    await page.getByLabel("Bits of field 2").fill("55");
    await keep();
    await page.getByLabel("Name of field 2").fill("Not a name");
    await page.getByLabel("Bits of field 3").fill("");
    await page.getByLabel("Epoch, in Unix ms").fill("x");
    await keep();
    await page.getByLabel("Start from").selectOption("twitter");
    await page.getByRole("link", { name: "Generate", exact: true }).click();
    await page.getByLabel(/^datacenter/).fill("31");
    await page.getByLabel("Written as").selectOption("base58");
    await page.getByLabel("How many").selectOption("1000");
    await keep();
    for (const [index, shared] of addresses.entries()) {
      await page.goto("about:blank");
      for (const load of [() => page.goto(shared), () => page.reload()]) {
        await load();
        await page.waitForFunction(() => document.title.includes("·"));
        assert.deepEqual(await shown(), views[index], shared);
      }
    }
  });

  test("with the keyboard only: from the top of the page to a chosen layout, an edited one, and a copied ID", async () => {
    const focused = () =>
      page.evaluate(() => {
        const { activeElement: element } = document;
        return element.getAttribute("aria-label") ?? element.dataset.key ?? element.id;
      });
    const tabTo = async (wanted) => {
      for (let presses = 0; presses < 80; presses += 1) {
        await page.keyboard.press("Tab");
        if ((await focused()) === wanted) return;
      }
      assert.fail(`the Tab key does not lead to ${wanted}`);
    };
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "skip");
    await page.keyboard.press("Enter");
    assert.equal(await focused(), "title-inspect");
    assert.equal(new URL(await address()).hash, "");
    await tabTo("id");
    await page.keyboard.type(DISCORD);
    await tabTo("fit discord");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.equal(outline, "solid");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash.includes("layout=discord"));
    assert.equal(await focused(), "fit discord");
    assert.equal((await values()).sequence, "7");

    await page.locator("#skip").focus();
    await tabTo("to-layout");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.id === "title-layout");
    await tabTo("Bits of field 2");
    await page.keyboard.press("ArrowUp");
    assert.match(await page.locator("#layout-error").innerText(), /65 bits/);
    await page.keyboard.press("ArrowDown");
    await tabTo("Move field 2 down");
    await page.keyboard.press("Enter");
    assert.equal(await focused(), "Move field 3 down");
    assert.match(await figures().innerText(), /timestamp:42\|process:5\|worker:5\|sequence:12@/);

    await page.locator("#skip").focus();
    await tabTo("to-generate");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.id === "title-generate");
    await tabTo("go");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "10 IDs" }).waitFor();
    const newest = await page.locator("#made-list a").first().innerText();
    await tabTo(`Copy ${newest}`);
    await page.keyboard.press("Enter");
    await said(`Copied ${newest}`);
    assert.equal(await clipboard(), newest);
    assert.equal(await focused(), `Copy ${newest}`);
  });

  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 360]) {
      test(`${colorScheme}, ${width} wide: axe finds nothing, nothing overflows, screenshots`, async () => {
        await open("", { colorScheme, viewport: { width, height: 800 } });
        for (const [name, hash] of Object.entries(VIEWS)) {
          await go(hash);
          if (name === "generate") {
            await page.getByRole("button", { name: "Generate", exact: true }).click();
            await page.getByRole("heading", { name: "10 IDs" }).waitFor();
          }
          if (name === "inspect") await answer().getByText("IDs of the same tick").click();
          await page.mouse.move(0, 0);
          const over = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.ok(over <= 0, `${name} is ${over} px wider than the window`);
          await page.screenshot({
            path: join(screenshots, `${name}-${width}-${colorScheme}.png`),
            fullPage: true,
          });
          await page.evaluate(axe.source);
          const { violations } = await page.evaluate(() =>
            globalThis.axe.run({
              runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
            }),
          );
          const found = violations.map(
            ({ id, nodes }) =>
              `${id}: ${nodes.map(({ html, any }) => `${html} ${any.map(({ message: why }) => why)}`).join("; ")}`,
          );
          assert.deepEqual(found, [], name);
        }
      });
    }
  }

  test("nothing moves for users who prefer reduced motion", async () => {
    const moves = () =>
      page.evaluate(() =>
        [...document.querySelectorAll("*")].some((element) =>
          getComputedStyle(element)
            .transitionDuration.split(", ")
            .some((duration) => duration !== "0s"),
        ),
      );
    await open(`#inspect?id=${TWITTER}`, { reducedMotion: "no-preference" });
    assert.equal(await moves(), true);
    await open(`#inspect?id=${TWITTER}`, { reducedMotion: "reduce" });
    assert.equal(await moves(), false);
  });

  test("nothing is loaded from other hosts, and the security policy blocks other scripts", async () => {
    const addresses = [];
    page.on("request", (request) => addresses.push(request.url()));
    await page.goto("about:blank");
    await page.goto(`${served.address}#inspect?id=${TWITTER}`);
    await page.waitForFunction(() => document.title.includes("·"));
    assert.ok(
      addresses.every((from) => from.startsWith(served.address) || from.startsWith("data:")),
      addresses.join(),
    );
    const ran = await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "globalThis.ran = true";
      document.body.append(script);
      return globalThis.ran ?? false;
    });
    assert.equal(ran, false);
    assert.equal(complaints.length, 1);
    assert.match(complaints.pop(), /Content Security Policy/);
  });

  test("after the first visit it works offline", async () => {
    const elsewhere = await serve();
    await open(`#inspect?id=${TWITTER}`, {}, elsewhere.address);
    await page.evaluate(async () => {
      await navigator.serviceWorker.ready;
    });
    await page.waitForFunction(
      async () => (await navigator.serviceWorker.ready).active.state === "activated",
    );
    elsewhere.server.closeAllConnections();
    await new Promise((closed) => elsewhere.server.close(closed));
    await page.reload();
    assert.match(await fact(answer(), "UTC"), /^2022-06-28 16:07:40\.105 UTC/);
    await page.getByRole("link", { name: "Layout", exact: true }).click();
    assert.match(await figures().locator("h2").innerText(), /69\.7 years/);
  });
});
