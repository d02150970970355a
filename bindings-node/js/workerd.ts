// The entry for workerd, which takes WebAssembly only as an imported module.

import { connect } from "../../bindings-wasm/js/backend.js";
import { wasmBackend } from "../../bindings-wasm/js/wasm.js";
import module from "./polyflake.wasm";

export * from "./api.js";

connect(() => wasmBackend(module));
