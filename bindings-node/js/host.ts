// What the WebAssembly module asks of JavaScript.
import type { LayoutParts, Reading, StatsParts } from "./backend.js";
import { coreError, type PolyflakeError } from "./errors.js";

/** The wall clock in Unix ms: the real one, also where a test replaces `Date` later. */
export const wallMs: () => number = Date.now;

/** Real time in ms since some moment. In workerd it stands still between events, as the wall clock does there. */
export function monotonicMs(): number {
  return performance.now();
}

export function readClock(clock: Reading): bigint | undefined {
  return clock();
}

/** Why the call that runs is refused: the arguments of its error, which is made where the call ends, near the caller. */
export let failure: Parameters<typeof coreError> | undefined;

export function failed(...refusal: Parameters<typeof coreError>): void {
  failure = refusal;
}

export function takeFailure(refusal: Parameters<typeof coreError>): PolyflakeError {
  failure = undefined;
  return coreError(...refusal);
}

/** Copies `ids` to `target` from `at` on, as far as it still reaches: while a clock was read, it may have lost memory. */
export function store(target: BigUint64Array, at: number, ids: BigUint64Array): void {
  const room = target.byteLength / 8 - at;
  if (room > 0) target.set(ids.subarray(0, room), at);
}

/** For how many ms the last `fillSome` asks to pause; 0 where it came to its end. */
export let pauseMs = 0;

export function pause(ms: number): void {
  pauseMs = ms;
}

let sleeper: Int32Array | undefined | null;

/** Puts the thread to sleep, if it may: a page's main thread may not. */
export function sleep(ms: number): boolean {
  if (sleeper === undefined) {
    try {
      sleeper = new Int32Array(new SharedArrayBuffer(4));
      Atomics.wait(sleeper, 0, 0, 0);
    } catch {
      sleeper = null;
    }
  }
  if (sleeper === null) return false;
  Atomics.wait(sleeper, 0, 0, ms);
  return true;
}

export function layout(
  text: string,
  epochMs: bigint,
  tickMs: bigint,
  endsAtMs: bigint,
  idsPerTick: number,
  nodes: number,
  totalBits: number,
  nodeBits: number,
): LayoutParts {
  return { text, epochMs, tickMs, endsAtMs, idsPerTick, nodes, totalBits, nodeBits, fields: [] };
}

export function addField(parts: LayoutParts, name: string, bits: number, shift: number, mask: bigint): void {
  parts.fields.push({ name, bits, shift, mask });
}

export function stats(
  waits: number,
  rollbacks: number,
  leadMs: number,
  lastIssuedMs: bigint | undefined,
): StatsParts {
  return { waits, rollbacks, leadMs, lastIssuedMs };
}
