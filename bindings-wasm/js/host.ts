// What the WebAssembly module asks of JavaScript.

import { coreError, type PolyflakeError } from "../../bindings-node/js/errors.js";
import type { LayoutParts, Reading, StatsParts } from "./backend.js";

/** The wall clock in Unix ms: the real one, also where a test replaces `Date` later. */
export const wallMs: () => number = Date.now;

/**
 * Real time in ms since some moment, also where a test replaces `performance` later. In workerd it stands still between
 * events, as the wall clock does there.
 */
export const monotonicMs: () => number = performance.now.bind(performance);

export function readClock(clock: Reading): bigint | undefined {
  return clock();
}

/** The arguments of a refusal's error, which is made where the call ends, near the caller. */
export type Refusal = Parameters<typeof coreError>;

/** Why the call that runs is refused. */
export let failure: Refusal | undefined;

export function failed(...refusal: Refusal): void {
  failure = refusal;
}

export function dropFailure(): void {
  failure = undefined;
}

export function takeFailure(refusal: Refusal): PolyflakeError {
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

/**
 * What a reading of the clock takes at least, in ms. A clock that is coarse (browsers round to as much as 100 ms), or
 * stands still (workerd's, between events), is taken to have moved on by this with every reading.
 */
const READING_MS = 0.0001;
/** The stretch of a pause that is not slept, in ms: timers end late. Sleep for less does not pay. */
const SPIN_MS = 0.1;
/** How long to spin at a time, in ms: the clock that a call waits for may turn any moment. */
const SPIN_STEP_MS = 0.02;

let lastMs = 0;
let unmovedMs = 0;

/** Real time since some moment, which moves on even where the clocks stand still: no wait is endless. */
export function elapsedMs(): number {
  const nowMs = monotonicMs();
  unmovedMs = nowMs === lastMs ? unmovedMs + READING_MS : 0;
  lastMs = nowMs;
  return nowMs + unmovedMs;
}

/**
 * By how much the wall clock is ahead of the monotonic one, with the fraction of a ms that `Date.now` drops. Each
 * reading of both bounds it to a ms, so that spinning until `Date.now` turns finds it. At first the turn counts as due.
 */
let aheadMs = Number.POSITIVE_INFINITY;

/** The wall clock with its fraction of a ms, for waits alone: no ID's time comes from it. */
function exactWallMs(): number {
  // The monotonic clock first: after a pause between the two, the turn is expected too early, and not too late.
  const nowMs = monotonicMs();
  const leastMs = wallMs() - nowMs;
  aheadMs = Math.min(Math.max(aheadMs, leastMs), leastMs + 1);
  return nowMs + aheadMs;
}

/** About how long until the clock, which gave `nowMs`, gives `targetMs`. It may be too short. */
export function untilMs(nowMs: number, targetMs: number, isBuiltin: boolean): number {
  const wholeMs = targetMs - nowMs;
  // Of a caller's clock, the first of these ms may be all but over. The steady clock may be ahead of the wall clock.
  return Math.max(isBuiltin ? Math.min(wholeMs, targetMs - exactWallMs()) : wholeMs - 1, SPIN_MS);
}

/** Lets about `ms` go by asleep, but for the last stretch; that, or where the thread may not sleep, a step of it. */
export function rest(ms: number): void {
  const asleepMs = ms - SPIN_MS;
  if (asleepMs > SPIN_MS && sleep(asleepMs)) {
    if (monotonicMs() === lastMs) unmovedMs += asleepMs;
    // If `Date.now` has turned earlier than expected, the next turn is expected earlier.
    exactWallMs();
    return;
  }
  const endMs = elapsedMs() + Math.min(ms, SPIN_STEP_MS);
  while (elapsedMs() < endMs);
}

let sleeper: Int32Array | undefined | null;

/** Puts the thread to sleep, if it may: a page's main thread may not. */
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
