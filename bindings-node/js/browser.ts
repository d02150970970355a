// The entry for browsers, and for all that is neither Node nor workerd: the WebAssembly module is part of the code.

import version from "polyflake/version";
import base64 from "polyflake/wasm";
import { connect } from "../../bindings-wasm/js/backend.js";
import { wasmBackend } from "../../bindings-wasm/js/wasm.js";
import * as own from "./api.js";

connect(() => {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return wasmBackend(new WebAssembly.Module(bytes));
});

// A page may load both copies, one by `import` and one by `require`: the first one serves, so that cursors are shared.
const realm = globalThis as unknown as Record<symbol, typeof own | undefined>;
const key = Symbol.for(`polyflake@${version}`);
realm[key] ??= own;
export const { Decoded, Layout, PolyflakeError, Snowflake, formatId, parseId, resetState } = realm[key];
