// Public IDs in the WebAssembly module. Separate from wasm.ts, since the browser module has no public IDs.
import * as glue from "polyflake/glue";
import type { Backend } from "./backend.js";
import * as host from "./host.js";
import { checked } from "./wasm.js";

const open = checked((keys: string[], prefix: string) => {
  const made = new glue.WasmPublicIds(keys, prefix);
  return { made, keyNumbers: host.failure ? [] : [...made.keyNumbers] };
});

export const publicIds = {
  publicIds(keys, prefix) {
    const { made, keyNumbers } = open(keys, prefix);
    return {
      keyNumbers,
      encode: checked((id) => made.encode(id)),
      encodeText: checked((id) => made.encodeText(id)),
      decode: checked((text) => made.decode(text)),
    };
  },
  generatePublicKey: checked((number) => glue.publicKey(number, crypto.getRandomValues(new Uint8Array(16)))),
} satisfies Pick<Backend, "publicIds" | "generatePublicKey">;
