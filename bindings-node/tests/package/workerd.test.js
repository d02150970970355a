// The installed package in workerd, which accepts WebAssembly only as a module, and whose clock does not advance
// between events.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cp } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import { before, test } from "node:test";
import workerd from "workerd";
import { atEnd, project, run } from "./project.js";

let url;

before(async () => {
  const cwd = await project();
  // workerd does not resolve packages, so Node resolves them with its condition.
  const resolve = ["polyflake", "polyflake/decode", "polyflake/polyflake.wasm"].map(
    (name) => `import.meta.resolve("${name}")`,
  );
  const script = `console.log(JSON.stringify([${resolve}]))`;
  const { stdout } = await run(
    process.execPath,
    ["--conditions=workerd", "--input-type=module", "-e", script],
    { cwd },
  );
  const [entry, decode, module] = JSON.parse(stdout);
  assert.match(entry, /\/dist\/workerd\.mjs$/);
  await cp(new URL(entry), path.join(cwd, "workerd/polyflake.mjs"));
  await cp(new URL(decode), path.join(cwd, "workerd/decode.mjs"));
  await cp(new URL(module), path.join(cwd, "workerd/polyflake.wasm"));
  const port = await serve(path.join(cwd, "workerd"));
  url = `http://127.0.0.1:${port}/`;
});

/** Starts workerd on a free port, which it reports on file descriptor 3. */
async function serve(cwd) {
  const args = ["serve", "config.capnp", "--socket-addr=http=127.0.0.1:0", "--control-fd=3"];
  const server = spawn(workerd.default ?? workerd, args, {
    cwd,
    stdio: ["ignore", "inherit", "inherit", "pipe"],
  });
  atEnd(() => server.kill());
  for await (const line of createInterface(server.stdio[3])) {
    const { event, port } = JSON.parse(line);
    if (event === "listen") return port;
  }
  throw new Error("workerd ended before it listened");
}

test("IDs, and waits on a clock that does not advance", async () => {
  const response = await fetch(url);
  assert.equal(response.status, 200);
  const { waited, later, next, read, batch, batchLater, made, early } = await response.json();
  assert.equal(waited, "SEQUENCE_EXHAUSTED");
  assert.match(later, /^\d+$/);
  assert.ok(BigInt(next) > BigInt(later));
  assert.equal(read, 7);
  assert.equal(batch, "1000");
  assert.equal(batchLater, "10000");
  assert.equal(made, "made");
  assert.match(early, /^\d+$/);
});

test("a call waits on where another request ended that waited before it", async () => {
  const left = await fetch(`${url}leave`);
  assert.equal(await left.text(), "left");
  const stayed = await fetch(`${url}stay`, { signal: AbortSignal.timeout(60_000) });
  assert.match(await stayed.text(), /^\d+$/);
});

test("public IDs", async () => {
  assert.deepEqual(await (await fetch(`${url}public`)).json(), {
    text: "order_15ShV20Bxc6UJvKSQbDvo0J",
    id: "1541815603606036480",
    keyNumbers: [1, 7],
    refused: "INVALID_ID",
  });
});
