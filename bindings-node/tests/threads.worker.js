// The worker threads of threads.test.js: they fill shared arrays with IDs, and count them.
import { parentPort, workerData } from "node:worker_threads";
import { PolyflakeError, Snowflake } from "polyflake";

const { options, ids, count, task } = workerData;

/** Tries again if a busy machine kept the thread from running for longer than maxWaitMs. */
function patient(call) {
  for (;;) {
    try {
      return call();
    } catch (error) {
      if (!(error instanceof PolyflakeError) || error.code !== "SEQUENCE_EXHAUSTED") throw error;
    }
  }
}

function add(issued) {
  const at = Atomics.load(count, 0);
  const room = issued.subarray(0, ids.length - at);
  ids.set(room, at);
  Atomics.store(count, 0, at + room.length);
}

const snowflake = new Snowflake(options);
const one = new BigUint64Array(1);
const single = () => {
  one[0] = patient(() => snowflake.nextId());
  add(one);
};

const TASKS = {
  /** Takes single IDs, batches and fills in turn. */
  mixed() {
    const array = new BigUint64Array(37);
    for (let round = 0; count[0] < ids.length; round += 1) {
      if (round % 3 === 0) single();
      else if (round % 3 === 1) add(patient(() => snowflake.nextIds(100)));
      else {
        patient(() => snowflake.fill(array));
        add(array);
      }
    }
  },
  /** Never finishes on its own. */
  endless() {
    for (;;) {
      const issued = patient(() => snowflake.nextIds(50));
      if (count[0] < ids.length) add(issued);
      single();
    }
  },
  /** Waits, blocking or not, for a tick that never comes. */
  waiting() {
    Atomics.store(count, 0, 1);
    snowflake.nextId();
  },
  waitingAsync() {
    const waiting = [snowflake.nextIdAsync(), snowflake.nextIdsAsync(5)];
    Atomics.store(count, 0, 1);
    return Promise.all(waiting);
  },
  waitingAsyncOnPool() {
    const waiting = snowflake.nextIdsAsync(5000);
    Atomics.store(count, 0, 1);
    return waiting;
  },
  /** Endlessly requests more IDs than are available. */
  greedy() {
    for (;;) {
      patient(() => snowflake.nextIds(1000));
      Atomics.store(count, 0, 1);
    }
  },
};

await TASKS[task]();
parentPort.postMessage("done");
