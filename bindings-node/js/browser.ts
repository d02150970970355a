// The entry point for every runtime except Node and workerd. Its code contains the WebAssembly module.
import version from "polyflake/version";
import base64 from "polyflake/wasm";
import { wasmBackend } from "../../bindings-wasm/js/wasm.js";
import * as own from "./api.js";
import { connect } from "./core.js";
import { coreError } from "./errors.js";

connect(() => {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return wasmBackend(new WebAssembly.Module(bytes), coreError);
});

// A page may load this file twice, with `import` and with `require`. Both copies then use the first copy's core, and so
// share its cursors.
const realm = globalThis as unknown as Record<symbol, typeof own | undefined>;
const key = Symbol.for(`polyflake@${version}`);
realm[key] ??= own;
export const {
  Counter,
  Decoded,
  DecodedAll,
  Layout,
  PolyflakeError,
  Sequences,
  Snowflake,
  formatId,
  parseId,
  resetState,
} = realm[key];
