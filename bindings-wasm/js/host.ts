// The WebAssembly module's imports from JavaScript.
import { copyInto, lengthOf } from "./arrays.js";
import type { Field, LayoutParts, MakeError, Reading, Stats } from "./backend.js";

/** The wall clock in Unix ms: the real one, even if a test replaces `Date` later. */
export const wallMs: () => number = Date.now;

/**
 * Real time in ms since some fixed moment, even if a test replaces `performance` later. In workerd it does not advance
 * between events, and neither does the wall clock.
 */
export const monotonicMs: () => number = performance.now.bind(performance);

export function readClock(clock: Reading): bigint | undefined {
  return clock();
}

/** The arguments for creating an error. The error itself is created where the call returns, near the caller. */
export type Failure = Parameters<MakeError>;

/** Why the current call failed, if it did. */
export let failure: Failure | undefined;

export function failed(...why: Failure): void {
  failure = why;
}

export function clearFailure(): void {
  failure = undefined;
}

/**
 * Copies as many of the `ids` as fit into `target`, starting at index `at`. `target` may have shrunk while a clock was
 * read.
 */
export function store<A extends BigUint64Array | Uint32Array>(target: A, at: number, ids: A): void {
  const room = lengthOf(target) - at;
  if (room > 0) copyInto(target, ids.subarray(0, room), at);
}

/**
 * The assumed duration of one clock reading, in ms. A clock that is coarse (browsers round to as much as 100 ms) or
 * does not advance (workerd's, between events) is assumed to have advanced by this much with every reading.
 */
const READING_MS = 0.0001;
/** How much of a pause to spend awake, in ms, because sleeps overrun. Shorter sleeps are not worthwhile. */
const SPIN_MS = 0.1;
/** How long to spin at a time, in ms: the clock that a call waits for may advance at any moment. */
const SPIN_STEP_MS = 0.02;

let lastMs = 0;
let movedMs = 0;
let unmovedMs = 0;

/**
 * Real time since some fixed moment. It advances even if the clocks do not, so that every wait ends. A replaced clock
 * may also run backwards, or return something other than a number.
 */
export function elapsedMs(): number {
  const nowMs = monotonicMs();
  const sinceMs = nowMs - lastMs;
  lastMs = nowMs;
  if (sinceMs > 0 && sinceMs < Number.POSITIVE_INFINITY) {
    movedMs += sinceMs;
    unmovedMs = 0;
  } else {
    unmovedMs += READING_MS;
  }
  return movedMs + unmovedMs;
}

/**
 * How far the wall clock is ahead of the monotonic one, including the fraction of a ms that `Date.now` drops. Reading
 * both clocks gives it to within a ms, and spinning until `Date.now` changes gives it exactly. Initially, that change
 * is assumed to be due.
 */
let aheadMs = Number.POSITIVE_INFINITY;

/** The wall clock with its fraction of a ms. Used for waits only: no ID's time comes from it. */
function exactWallMs(): number {
  // Read the monotonic clock first: if there is a pause in between, the change is expected too early rather than too
  // late.
  const nowMs = monotonicMs();
  const leastMs = wallMs() - nowMs;
  aheadMs = Math.min(Math.max(aheadMs, leastMs), leastMs + 1);
  return nowMs + aheadMs;
}

/**
 * Estimates how long the clock, which has just returned `nowMs`, will take to reach `targetMs`. The estimate may be too
 * short.
 */
export function untilMs(nowMs: number, targetMs: number, isBuiltin: boolean): number {
  const wholeMs = targetMs - nowMs;
  // With a caller's clock, the first of these ms may be nearly over. The steady clock may be ahead of the wall clock.
  return Math.max(isBuiltin ? Math.min(wholeMs, targetMs - exactWallMs()) : wholeMs - 1, SPIN_MS);
}

/**
 * Sleeps for about `ms`, except for the last stretch. Within that stretch, or if the thread may not sleep, spins for
 * one step.
 */
export function rest(ms: number): void {
  const asleepMs = ms - SPIN_MS;
  if (asleepMs > SPIN_MS && sleep(asleepMs)) {
    if (!(monotonicMs() > lastMs)) unmovedMs += asleepMs;
    // If `Date.now` changed earlier than expected, the next change is expected earlier.
    exactWallMs();
    return;
  }
  const endMs = elapsedMs() + Math.min(ms, SPIN_STEP_MS);
  while (elapsedMs() < endMs);
}

let sleeper: Int32Array | undefined | null;

/** Puts the thread to sleep if that is allowed, which it is not on a page's main thread. */
function sleep(ms: number): boolean {
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

export function addField(
  parts: { fields: Field[] },
  name: string,
  bits: number,
  shift: number,
  mask: bigint,
): void {
  parts.fields.push({ name, bits, shift, mask });
}

export function stats(waits: number, rollbacks: number, leadMs: number, lastIssuedMs?: bigint): Stats {
  return { waits, rollbacks, leadMs, lastIssuedMs: lastIssuedMs ?? null, leaseLosses: 0 };
}
