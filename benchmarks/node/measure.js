// The loops that measure calls: the same in Node, in its worker threads and on a page.

const BURSTS = 15;
/** Few enough that no generator with ten or more sequence bits uses up a millisecond. */
const BURST = 1000;

/**
 * Something to measure. `call` is the code of one call of `it`, which returns `ids` IDs. Each subject gets its own
 * compiled loop, so that the call in it is direct; the loop keeps the results.
 */
export function timed(name, it, call, { ids = 1, calls = Math.floor(BURST / ids), async = false } = {}) {
  // The name makes each text different: V8 shares compiled functions, and what it learned, between equal texts.
  const burst = new Function(
    "it",
    "kept",
    `return ${async ? "async " : ""}function burst(calls) { // ${name}
      for (let i = 0; i < calls; i++) kept[i] = ${call};
    }`,
  )(it, new Array(calls).fill(0));
  return { name, burst, ids, calls, async, rounds: [] };
}

/** Waits for the wall clock's next millisecond. */
function turn() {
  const now = Date.now();
  while (Date.now() === now);
}

/** ns per ID, in bursts that begin with a millisecond. */
async function round({ burst, calls, ids, async }) {
  let ms = 0;
  for (let done = 0; done < BURSTS; done++) {
    turn();
    const start = performance.now();
    if (async) await burst(calls);
    else burst(calls);
    ms += performance.now() - start;
  }
  return (ms * 1e6) / (BURSTS * calls * ids);
}

/** Calls `measure` with every subject in every round, in an order that changes from round to round. */
export async function interleave(subjects, rounds, measure) {
  for (let n = 0; n < rounds; n++) {
    const first = n % subjects.length;
    const order = [...subjects.slice(first), ...subjects.slice(0, first)];
    for (const subject of n % 2 ? order.reverse() : order) await measure(subject);
  }
}

/** Adds the figures of all rounds to each subject's `rounds`, after some rounds to warm up. */
export async function time(subjects, rounds) {
  await interleave(subjects, 4, round);
  await interleave(subjects, rounds, async (subject) => subject.rounds.push(await round(subject)));
}

/**
 * A loop that fills `ids[from]` to `ids[to - 1]` as fast as possible, and retries if a call throws because there is no
 * ID yet. `bigint` is the code of a call that returns one ID, or `fill` the code of one that fills the array `part`.
 */
export function load(name, it, { bigint, fill }) {
  const step = fill ? `const part = ids.subarray(i, to); ${fill}; i = to;` : `ids[i] = ${bigint}; i++;`;
  return new Function(
    "it",
    `return function load(ids, from, to) { // ${name}
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

/** A run under full load, for this many ms at a capacity of `perMs`, after a few ticks to warm up. */
export function loadSize(perMs, ms, chunk) {
  const inChunks = (ids) => Math.round(ids / chunk) * chunk;
  const first = inChunks(4 * perMs);
  return { chunk, first, last: first + inChunks(ms * perMs) };
}

/**
 * Takes IDs as fast as possible, `chunk` at a time, until all threads together have taken `last` of them, counted in
 * `total`; `ids` has room for as many. Returns how many this thread took, the wall clock after each chunk, and the
 * results of `meter` when `total` was `first` and when it was `last`. Those are whole ticks apart, so that it does not
 * matter where in a tick the run began.
 */
export function fullLoad(loop, { ids, total, chunk, first, last }, meter) {
  const clockMs = [];
  let taken = 0;
  let begin;
  let end;
  for (;;) {
    loop(ids, taken, taken + chunk);
    taken += chunk;
    clockMs.push(Date.now());
    const all = Atomics.add(total, 0, chunk) + chunk;
    if (all === first) begin = meter();
    if (all === last) end = meter();
    if (all >= last) return { taken, clockMs, begin, end };
  }
}

/** How many IDs were repeated, and by how many ms the time in them was at most ahead of the wall clock. */
export function check(threads, chunk, timeMs) {
  const all = new BigUint64Array(threads.reduce((sum, { taken }) => sum + taken, 0));
  let at = 0;
  let aheadMs = 0;
  for (const { ids, taken, clockMs } of threads) {
    all.set(ids.subarray(0, taken), at);
    at += taken;
    for (const [n, ms] of clockMs.entries()) {
      aheadMs = Math.max(aheadMs, timeMs(ids[(n + 1) * chunk - 1]) - ms);
    }
  }
  all.sort();
  let repeated = 0;
  for (let i = 1; i < all.length; i++) if (all[i] === all[i - 1]) repeated++;
  return { repeated, ids: all.length, ahead_ms: aheadMs };
}

/** Checks at least 200,000 IDs under full load on this thread. */
export function checkLoad(loop, { chunk, timeMs }) {
  const last = Math.ceil(200_000 / chunk) * chunk;
  const ids = new BigUint64Array(last);
  const run = fullLoad(loop, { ids, total: new Int32Array(1), chunk, first: chunk, last }, () => 0);
  return check([{ ...run, ids }], chunk, timeMs);
}
