// The entry point for Node. It uses the native addon, or the WebAssembly module if no addon loads.
import { channel } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { isMainThread } from "node:worker_threads";
import type { Backend } from "../../bindings-wasm/js/backend.js";
import { publicIds } from "../../bindings-wasm/js/public-ids.js";
import { wasmBackend } from "../../bindings-wasm/js/wasm.js";
import { connect } from "./core.js";
import { coreError } from "./errors.js";
import { type Addon, type LeaseEvent, nativeBackend } from "./native.js";

export * from "./api.js";
export { PublicIds } from "./public-ids.js";

/** Each message is a `LeaseEvent`. */
const leases = channel("polyflake:lease");

/** The suffixes of the platform packages' names, which follow napi-rs's convention. */
const ABIS: Partial<Record<NodeJS.Platform, string[]>> = { linux: ["-gnu", "-musl"], win32: ["-gnu"] };

connect(openBackend, __filename, (message) => process.emitWarning(message, { code: "POLYFLAKE_COPIES" }));

function openBackend(): Backend {
  if (process.env.POLYFLAKE_BACKEND === "wasm") return fallback("POLYFLAKE_BACKEND is set to wasm");
  const failures: string[] = [];
  for (const abi of ABIS[process.platform] ?? [""]) {
    const name = `@polyflake/${process.platform}-${process.arch}${abi}`;
    try {
      return nativeBackend(createRequire(__filename)(name) as Addon, tellOfLease);
    } catch (error) {
      failures.push((error as Error).message.replace(/\n.*/s, ""));
    }
  }
  const why = `no native build of polyflake could be loaded (${failures.join("; ")})`;
  if (isMainThread) {
    process.emitWarning(`${why}; using its WebAssembly build, which is slower`, { code: "POLYFLAKE_WASM" });
  }
  return fallback(why);
}

/**
 * Publishes an event. If nothing has subscribed, emits warnings as Node's own, so that a program that waits for half a
 * minute explains why.
 */
function tellOfLease(event: LeaseEvent) {
  if (leases.hasSubscribers) {
    leases.publish(event);
  } else if (event.isWarning) {
    process.emitWarning(event.message, { code: `POLYFLAKE_${event.kind.toUpperCase()}` });
  }
}

function fallback(why: string): Backend {
  const wasm = new WebAssembly.Module(readFileSync(join(__dirname, "polyflake.wasm")));
  const noSharing =
    `${why}, and the WebAssembly build does not share its cursor with the other threads of the process, so IDs could ` +
    "repeat: create IDs on the main thread, or give each thread its own clock and node";
  return { ...wasmBackend(wasm, coreError, isMainThread ? undefined : noSharing), ...publicIds };
}
