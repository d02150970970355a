// The loops that time calls: the same in Node, in its worker threads and on a page.

const BURSTS = 15;
/** No generator of ten or more sequence bits uses up a millisecond with so many. */
const BURST = 1000;

/**
 * Something to time. `call` is the text of one call of `it`, which gives `ids` IDs; every subject gets a loop that is
 * compiled for it alone, so that the call in it is direct, and that keeps what it is given.
 */
export function timed(name, it, call, { ids = 1, calls = Math.floor(BURST / ids), async = false } = {}) {
  // The name makes every text its own: V8 keeps one compiled function, and what it learnt, for equal texts.
  const burst = new Function(
    "it",
    "kept",
    `return ${async ? "async " : ""}function burst(calls) { // ${name}
      for (let i = 0; i < calls; i++) kept[i] = ${call};
    }`,
  )(it, new Array(calls).fill(0));
  return { name, burst, ids, calls, async, rounds: [] };
}

/** Waits for the turn of the wall clock's millisecond. */
function turn() {
  const now = Date.now();
  while (Date.now() === now);
}

/** ns an ID, of bursts that begin with a millisecond. */
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

/** Calls `measure` with every subject in every round, by turns; in an order that differs from round to round. */
export async function interleave(subjects, rounds, measure) {
  for (let n = 0; n < rounds; n++) {
    const first = n % subjects.length;
    const order = [...subjects.slice(first), ...subjects.slice(0, first)];
    for (const subject of n % 2 ? order.reverse() : order) await measure(subject);
  }
}

/** Adds the rounds' figures to each subject's `rounds`, after some that warm up. */
export async function time(subjects, rounds) {
  await interleave(subjects, 4, round);
  await interleave(subjects, rounds, async (subject) => subject.rounds.push(await round(subject)));
}

/**
 * A loop that fills `ids[from]` to `ids[to - 1]` as fast as it goes, calling again where a call throws since there is
 * no ID yet. `bigint` is the text of a call that gives one ID; or `fill`, of one that fills the array `part`.
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

/** The run of a full load for so many ms at a capacity of `perMs`, after a few ticks that get it going. */
export function loadSize(perMs, ms, chunk) {
  const inChunks = (ids) => Math.round(ids / chunk) * chunk;
  const first = inChunks(4 * perMs);
  return { chunk, first, last: first + inChunks(ms * perMs) };
}

/**
 * Full load, `chunk` IDs at a time, until `total` counts `last` of them, in all threads together; `ids` has room for
 * as many. Gives how many this thread took, what the wall clock read after each chunk, and what `meter` gave when
 * `total` was `first` and when it was `last`: whole ticks apart, so that it does not matter where in a tick it began.
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

/** How many IDs were seen before, and by how many ms the time in them ran ahead of the wall clock at most. */
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

/** What `check` finds in at least 200,000 IDs under full load on this thread. */
export function checkLoad(loop, { chunk, timeMs }) {
  const last = Math.ceil(200_000 / chunk) * chunk;
  const ids = new BigUint64Array(last);
  const run = fullLoad(loop, { ids, total: new Int32Array(1), chunk, first: chunk, last }, () => 0);
  return check([{ ...run, ids }], chunk, timeMs);
}
