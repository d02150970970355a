import type { Backend } from "../../bindings-wasm/js/backend.js";

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
