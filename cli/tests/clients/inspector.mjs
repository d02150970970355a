// The inspector, as the service delivers it, in Chromium: it says the same about an ID as the service's own
// `/v1/decode/ID`.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";

// The development dependencies of the npm package are used here too.
const require = createRequire(join(resolve(import.meta.dirname, "../../.."), "bindings-node/package.json"));
const { chromium } = require("playwright-core");
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

const TYPES = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
};

for (const [name, address, token] of [
  ["open", process.env.OPEN_HTTP],
  ["closed", process.env.CLOSED_HTTP, process.env.SECRET],
]) {
  describe(`the inspector, ${name}`, { timeout: 300_000 }, () => {
    const from = `http://${address}/`;
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    const get = async (path) => (await fetch(from + path, { headers })).json();
    let browser;
    let page;
    let complaints;
    let answers;

    before(async () => {
      browser = await chromium.launch({
        executablePath,
        args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
      });
    });
    after(() => browser?.close());

    beforeEach(async () => {
      [complaints, answers] = [[], []];
      page = await browser.newPage({ timezoneId: "Europe/Zurich" });
      page.setDefaultTimeout(120_000);
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) complaints.push(message.text());
      });
      page.on("pageerror", (error) => complaints.push(String(error.stack ?? error)));
      page.on("response", (answer) => answers.push(answer));
      await page.goto(from);
      await page.waitForFunction(() => document.title.includes("·"));
    });
    afterEach(async () => {
      await page.close();
      assert.deepEqual(complaints, []);
    });

    test("an ID, typed: what it shows is what the service decodes", async () => {
      const [issued] = (await get("v1/ids/snowflake")).ids;
      for (const id of ["1541815603606036480", issued]) {
        const parts = await get(`v1/decode/${id}`);
        assert.equal(parts.id, id);
        await page.getByLabel("Snowflake ID").fill(id);
        const answer = page.getByRole("region", { name: "The ID" });
        await page
          .getByRole("region", { name: "Layouts" })
          .getByText("twitter", { exact: true })
          .first()
          .click();
        const fact = async (of) =>
          (
            await answer
              .locator("dt", { hasText: new RegExp(`^${of}$`) })
              .locator("xpath=following-sibling::dd")
              .innerText()
          ).trim();
        const time = parts.time.replace("T", " ").replace("Z", " UTC");
        await answer.getByText(time).first().waitFor();
        assert.equal((await fact("UTC")).slice(0, time.length), time);
        assert.equal((await fact("Node")).split(/\s/)[0], String(parts.node));
        const rows = await answer
          .locator("tbody tr")
          .evaluateAll((found) =>
            found.map((row) => [row.dataset.field, row.querySelector(".value").textContent]),
          );
        const expected = { timestamp: parts.ticks, ...parts.fields, sequence: parts.sequence };
        assert.deepEqual(
          Object.fromEntries(rows),
          Object.fromEntries(Object.entries(expected).map(([field, value]) => [field, String(value)])),
        );
      }
    });

    test("every file has its type, and nothing comes from elsewhere", async () => {
      const own = answers.filter((answer) => !answer.url().startsWith("data:"));
      assert.ok(own.length > 5, String(own.length));
      for (const answer of own) {
        assert.ok(answer.url().startsWith(from), answer.url());
        assert.equal(answer.status(), 200, answer.url());
        const { pathname } = new URL(answer.url());
        const ending = pathname === "/" ? "html" : pathname.split(".").pop();
        assert.equal(answer.headers()["content-type"], TYPES[ending], pathname);
      }
    });

    test("its security policy blocks other scripts", async () => {
      const ran = await page.evaluate(() => {
        const script = document.createElement("script");
        script.textContent = "globalThis.ran = true";
        document.body.append(script);
        return globalThis.ran ?? false;
      });
      assert.equal(ran, false);
      // One from the page, and one from the server.
      assert.equal(complaints.length, 2);
      for (const complaint of complaints.splice(0)) assert.match(complaint, /Content Security Policy/);
    });
  });
}
