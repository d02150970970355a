// The entry point for workerd, which accepts WebAssembly only as an imported module.
import { wasmBackend } from "../../bindings-wasm/js/wasm.js";
import { connect } from "./core.js";
import { coreError } from "./errors.js";
import module from "./polyflake.wasm";

export * from "./api.js";

connect(() => ({ ...wasmBackend(module, coreError), hasRequests: true }));
