// The loops that measure calls: the same in Node, in its worker threads and on a page.

const BURSTS = 15;
/** Few enough that no generator with ten or more sequence bits uses up a millisecond. */
const BURST = 1000;

/**
 * Measures ns per ID, in bursts that start at the beginning of a millisecond. `call` is the code for one call on `it`,
 * which returns `ids` IDs. The code is compiled into a loop, which keeps the results, so that the call is direct.
 */
export function rounds(it, call, { ids = 1, calls = Math.floor(BURST / ids) } = {}) {
  const burst = new Function(
    "it",
    "kept",
    `return function burst(calls) {
      for (let i = 0; i < calls; i++) kept[i] = ${call};
    }`,
  )(it, new Array(calls).fill(0));
  return () => {
    let ms = 0;
    for (let done = 0; done < BURSTS; done++) {
      const now = Date.now();
      while (Date.now() === now);
      const start = performance.now();
      burst(calls);
      ms += performance.now() - start;
    }
    return [(ms * 1e6) / (BURSTS * calls * ids)];
  };
}

/**
 * Returns a loop that fills `ids[from]` to `ids[to - 1]` as fast as possible, and retries if a call throws because no
 * ID is available yet. `bigint` is the code for a call that returns one ID, or `fill` is the code for one that fills
 * the array `part`.
 */
export function load(it, { bigint, fill }) {
  const step = fill ? `const part = ids.subarray(i, to); ${fill}; i = to;` : `ids[i] = ${bigint}; i++;`;
  return new Function(
    "it",
    `return function load(ids, from, to) {
      let thrown = 0;
      for (let i = from; i < to; ) {
        try {
          ${step}
        } catch (error) {
          if (++thrown > 1e6) throw error;
        }
      }
    }`,
  )(it);
}

/** Returns IDs taken as fast as possible, with a reading of the wall clock after each chunk. */
export function blocks(loop, count, chunk) {
  const words = new BigUint64Array(Math.floor(count / chunk) * (chunk + 1));
  // `Date` has only ms resolution, and `performance.now()` is not the wall clock: `origin` is their difference at the
  // start of a ms.
  const now = Date.now();
  while (Date.now() === now);
  const origin = Date.now() - performance.now();
  for (let at = 0; at < words.length; at += chunk + 1) {
    loop(words, at, at + chunk);
    const us = Math.max(Date.now() * 1000, Math.floor(1000 * (origin + performance.now())));
    words[at + chunk] = BigInt(us);
  }
  return words;
}

/** The least work that a WebAssembly module must do for an ID. */
export const WASM_FLOOR = "a wasm function that calls Date.now() and returns a bigint";

export function smallWasm() {
  const hex = [
    "0061736d01000000",
    "0109026000017e6000017c", // types: () -> i64, () -> f64
    "0207010165016e0001", // imports: e.n () -> f64
    "03020100",
    "070501016300 01", // exports: c
    "0a08010600 1000 fc06 0b", // c: i64.trunc_sat_f64_s(call n)
  ];
  const bytes = hex.join("").replaceAll(" ", "").match(/../g);
  const module = new WebAssembly.Module(Uint8Array.from(bytes, (byte) => Number.parseInt(byte, 16)));
  return new WebAssembly.Instance(module, { e: { n: Date.now } }).exports;
}
