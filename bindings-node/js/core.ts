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
 * Sets where the core comes from. It is opened on first use. `from` and `warnBy`: if the entry point has something
 * better.
 */
export function connect(opener: () => Backend, from?: string, warnBy = warn): void {
  open = opener;
  path = from;
  warn = warnBy;
}

/** The native addon or the WebAssembly module. */
export function core(): Backend {
  backend ??= open();
  return backend;
}

/** Call it for a Snowflake that shares its cursor with the others in the process. */
export function sharesCursor(): void {
  lookForCopies(core(), path, warn);
}

// Programs often ask for batches of the same size.
let lastChecked: Integer | undefined;
let lastSize = 0;

/** The `n` of a batch. */
export function batchSize(n: Integer): number {
  if (n !== lastChecked) {
    lastSize = core().batchSize(integer(n, "n"));
    lastChecked = n;
  }
  return lastSize;
}
