// The least work that any such call must do.

import { timed } from "./measure.js";

export const clockFloors = () => [
  timed("Date.now()", Date, "it.now()"),
  timed("making a bigint: BigInt(number)", { number: Date.now() }, "BigInt(it.number + i)"),
  timed("Date.now() and making a bigint", Date, "BigInt(it.now())"),
];

export function wasmFloors() {
  const wasm = smallWasm();
  return [
    timed("an empty wasm function", wasm, "it.a()"),
    timed("a wasm function that returns a bigint", wasm, "it.b()"),
    timed("a wasm function that calls Date.now() and returns a bigint", wasm, "it.c()"),
  ];
}

function smallWasm() {
  const hex = [
    "0061736d01000000",
    "010c036000006000017e6000017c", // types: () -> (), () -> i64, () -> f64
    "0207010165016e0002", // imports: e.n () -> f64
    "030403000101",
    "070d03 016100 01 016200 02 016300 03", // exports: a, b, c
    "0a1803 02000b", // a: nothing
    "0c0042 808080808080808020 0b", // b: i64.const 2^61
    "06001000 fc06 0b", // c: i64.trunc_sat_f64_s(call n)
  ];
  const bytes = hex.join("").replaceAll(" ", "").match(/../g);
  const module = new WebAssembly.Module(Uint8Array.from(bytes, (byte) => Number.parseInt(byte, 16)));
  return new WebAssembly.Instance(module, { e: { n: Date.now } }).exports;
}
