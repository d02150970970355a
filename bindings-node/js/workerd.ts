// The entry for workerd, which takes WebAssembly only as an imported module.
import module from "./polyflake.wasm";
import { connect } from "./backend.js";
import { wasmBackend } from "./wasm.js";

export * from "./api.js";

connect(() => wasmBackend(module));
