import type { Backend } from "../../bindings-wasm/js/backend.js";
import { type Integer, integer } from "./convert.js";

let backend: Backend | undefined;
let open: () => Backend = () => {
  throw new Error("no entry point of the package has set a backend");
};

/** Sets where the core comes from. It is opened on first use. */
export function connect(opener: () => Backend): void {
  open = opener;
}

/** The native addon or the WebAssembly module. */
export function core(): Backend {
  backend ??= open();
  return backend;
}

// Programs ask for batches of the same size over and over.
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
