// The entry for Node: the native addon, or the WebAssembly module where none loads.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { isMainThread } from "node:worker_threads";
import { type Backend, connect } from "../../bindings-wasm/js/backend.js";
import { wasmBackend } from "../../bindings-wasm/js/wasm.js";
import { type Addon, nativeBackend } from "./native.js";

export * from "./api.js";

/** The ends of the platform packages' names, by napi-rs's convention. */
const ABIS: Partial<Record<NodeJS.Platform, string[]>> = { linux: ["-gnu", "-musl"], win32: ["-msvc"] };

connect(() => {
  if (process.env.POLYFLAKE_BACKEND === "wasm") return fallback("POLYFLAKE_BACKEND is set to wasm");
  const failures: string[] = [];
  for (const abi of ABIS[process.platform] ?? [""]) {
    const name = `@polyflake/${process.platform}-${process.arch}${abi}`;
    try {
      return nativeBackend(createRequire(__filename)(name) as Addon);
    } catch (error) {
      failures.push((error as Error).message.replace(/\n.*/s, ""));
    }
  }
  const why = `no native build of polyflake could be loaded (${failures.join("; ")})`;
  if (isMainThread) {
    process.emitWarning(`${why}; its WebAssembly build, which is slower, takes its place`, {
      code: "POLYFLAKE_WASM",
    });
  }
  return fallback(why);
});

function fallback(why: string): Backend {
  const wasm = new WebAssembly.Module(readFileSync(join(__dirname, "polyflake.wasm")));
  if (isMainThread) return wasmBackend(wasm);
  return wasmBackend(
    wasm,
    `${why}, and the WebAssembly build does not share its cursor with the process's other threads, so that IDs could ` +
      "repeat: make IDs on the main thread, or give each thread a clock and a node of its own",
  );
}
