// The examples in README.md run unchanged, and print what their comments say.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { redis } from "./redis.js";

const temporary = await mkdtemp(join(tmpdir(), "polyflake-readme-"));
after(() => rm(temporary, { recursive: true }));

const folder = dirname(dirname(fileURLToPath(import.meta.url)));
const readme = await readFile(`${folder}/README.md`, "utf8");
const examples = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);

/** The store in the examples, which the test replaces with its own Redis. */
const STORE = "redis://redis.internal/0";

// Lines such as `value; // what it is` are made to print their value, for comparison. A comment in words starts with a
// lower-case word and a space.
const STATED = /^(?!console|const|for|await)(\S.*?); \/\/ (.*)$/gm;
const WORDS = /^(\d+ )?[a-z]+ [a-z]/;

for (const [number, code] of examples.entries()) {
  const skip = /\b(state|lease|store):/.test(code) && process.env.POLYFLAKE_BACKEND === "wasm";
  test(`example ${number + 1} of ${examples.length}`, { skip }, async () => {
    const store = code.includes(STORE) ? (await redis()).address : "";
    const here = code.replace("/var/lib/app", temporary).replace(STORE, store);
    const printing = here.replace(STATED, "console.log($1); // $2");
    const run = promisify(execFile)(process.execPath, ["--input-type=module", "--eval", printing], {
      cwd: folder,
    });
    const { stdout, stderr } = await run;
    assert.equal(stderr, "");
    const said = [...printing.matchAll(/^ *console\.log\(.*?\); \/\/ (.*)$/gm)].map(([, comment]) => comment);
    const printed = stdout.trimEnd().split("\n");
    if (said.length > 0) assert.equal(printed.length, said.length, stdout);
    for (const [line, comment] of said.entries()) {
      if (!WORDS.test(comment) && !/"\d{19}"/.test(comment) && comment !== "a Date")
        assert.equal(printed[line], comment);
    }
  });
}

test("there are examples", () => assert.ok(examples.length >= 8));
