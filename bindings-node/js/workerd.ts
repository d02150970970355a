// The entry point for workerd, which accepts WebAssembly only as an imported module.
import { publicIds } from "../../bindings-wasm/js/public-ids.js";
import { wasmBackend } from "../../bindings-wasm/js/wasm.js";
import { connect } from "./core.js";
import { coreError } from "./errors.js";
import module from "./polyflake.wasm";

export * from "./api.js";
export { PublicIds } from "./public-ids.js";

connect(() => ({ ...wasmBackend(module, coreError), ...publicIds, hasRequests: true }));
