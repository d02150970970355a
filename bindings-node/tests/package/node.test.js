// The installed package in Node: imported and required, with and without the native addon.
import assert from "node:assert/strict";
import path from "node:path";
import { before, describe, test } from "node:test";
import { project, run } from "./project.js";

const node = (cwd, script, env = {}) =>
  run(process.execPath, [path.join("node", script)], { cwd, env: { ...process.env, ...env } });

for (const native of [true, false]) {
  describe(native ? "with the platform package" : "without the platform package", () => {
    let cwd;
    before(async () => {
      cwd = await project({ native });
    });

    for (const script of ["esm.mjs", "cjs.cjs", "both.mjs", "decode.mjs"]) {
      test(script, async () => {
        const { stdout } = await node(cwd, script);
        assert.equal(stdout, "ok\n");
      });
    }

    test("one warning if there is no native addon, otherwise none", async () => {
      const warnings = JSON.parse((await node(cwd, "warnings.mjs")).stdout);
      if (native) {
        assert.deepEqual(warnings, []);
      } else {
        assert.equal(warnings.length, 1);
        assert.equal(warnings[0].code, "POLYFLAKE_WASM");
        assert.match(warnings[0].message, /@polyflake\/linux-x64-gnu/);
      }
    });

    test("no warning if WebAssembly is requested", async () => {
      const { stdout } = await node(cwd, "warnings.mjs", { POLYFLAKE_BACKEND: "wasm" });
      assert.deepEqual(JSON.parse(stdout), []);
    });

    test("a worker thread without the native addon cannot use a built-in clock", async () => {
      const { stdout } = await node(cwd, "thread.mjs", { POLYFLAKE_BACKEND: "wasm" });
      assert.deepEqual(JSON.parse(stdout), {
        error: "INVALID_OPTION",
        layout: "timestamp:41|datacenter:5|worker:5|sequence:12@1288834974657/1ms",
        own: "1541815603606036480",
      });
    });
  });
}
