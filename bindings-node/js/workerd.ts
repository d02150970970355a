// The entry for workerd, which takes WebAssembly only as an imported module.

import { connect } from "./backend.js";
import module from "./polyflake.wasm";
import { wasmBackend } from "./wasm.js";

export * from "./api.js";

connect(() => wasmBackend(module));
