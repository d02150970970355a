// Programs that take one ID per run.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

const PROGRAM = `
  const { Snowflake } = require("polyflake");
  const ids = new Snowflake({ layout: "timestamp:41|worker:10|sequence:12@1767225600000/1ms", node: 7 });
  console.log(ids.decode(ids.nextId()).sequence % 16);
`;

test("the first IDs of such programs are spread", async () => {
  const run = promisify(execFile);
  const residues = new Set();
  for (let n = 0; n < 24; n++) {
    const { stdout } = await run(process.execPath, ["-e", PROGRAM], { cwd: import.meta.dirname });
    residues.add(stdout);
  }
  // 24 random values cover five of the 16 residues or fewer in less than one run in 100 million.
  assert.ok(residues.size >= 6, [...residues].join());
});
