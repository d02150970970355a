import type { Backend } from "../../bindings-wasm/js/backend.js";
import { type Integer, integer } from "./convert.js";
import { lookForCopies } from "./copies.js";

let backend: Backend | undefined;
let open: () => Backend = () => {
  throw new Error("no entry point of the package has set a backend");
};
let path: string | undefined;
let warn: (message: string) => void = (message) => globalThis.console?.warn(message);

/**
 * Sets the function that opens the core on first use. An entry point passes `from` if it knows its path, and `warnBy`
 * if it has a better way to warn.
 */
export function connect(opener: () => Backend, from?: string, warnBy = warn): void {
  open = opener;
  path = from;
  warn = warnBy;
}

/** Returns the core: the native addon or the WebAssembly module. */
export function core(): Backend {
  backend ??= open();
  return backend;
}

/**
 * Warns if another copy of this package has its own cursors. Call this for each Snowflake that shares its cursor with
 * others in the process.
 */
export function sharesCursor(): void {
  lookForCopies(core(), path, warn);
}

// Programs often ask for batches of the same size.
let lastChecked: Integer | undefined;
let lastSize = 0;

/** Checks the `n` of a batch, and converts it to a Number. */
export function batchSize(n: Integer): number {
  if (n !== lastChecked) {
    lastSize = core().batchSize(integer(n, "n"));
    lastChecked = n;
  }
  return lastSize;
}
