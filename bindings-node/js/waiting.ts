// Calls that wait without blocking the event loop.
import type { BackendSnowflake, Reading } from "../../bindings-wasm/js/backend.js";

// Waits use real time. With fake timers, which a test may install later, they would hang.
const { setTimeout, setImmediate = setTimeout, queueMicrotask } = globalThis;
const monotonicMs = performance.now.bind(performance);
/** The shortest pause. */
const SHORTEST_PAUSE_MS = 0.1;
/** The longest pause. The clock may be set forward during a pause, and timers have an upper limit. */
const LONGEST_PAUSE_MS = 1000;
/** The maximum number of IDs that one poll requests. */
export const MOST_AT_ONCE = 4096;
/** The number of polls after which the event loop gets a turn. */
const POLLS_AT_ONCE = 128;

/** A call that waits for an ID, or for an array of them. */
interface Call {
  /** The array to fill, and how much of it is filled; undefined for a single ID. */
  readonly ids: BigUint64Array | undefined;
  filled: number;
  readonly cameMs: number;
  readonly resolve: (got: never) => void;
  readonly reject: (error: unknown) => void;
  next: Call | undefined;
}

/**
 * A Snowflake's waiting calls. They receive IDs in the order in which they arrived, and a batch that has received some
 * IDs goes to the back of the queue. Together, the calls take up one place in the core's queue of waiting threads.
 *
 * A call fails once `maxWaitMs` has passed both since the call arrived and since any of the calls last received an ID.
 */
export class Waiting {
  readonly #inner: BackendSnowflake;
  /**
   * Keeps the clock alive, because the core holds only a weak reference to it, and the Snowflake may be
   * garbage-collected while its calls wait.
   */
  readonly clock: Reading | undefined;
  #first: Call | undefined;
  #last: Call | undefined;
  /** The total number of IDs that the calls still need. */
  #wanted = 0;
  /** The array that the core writes to. */
  #got = new BigUint64Array(1);
  /** Whether a poll is in progress. A clock may make calls during the poll. */
  #isPolling = false;
  /** Ends the current pause. */
  #resume: (() => void) | undefined;
  /** Whether there has been a pause since the core last issued an ID. */
  #hasPaused = false;
  /** When the core last issued an ID. */
  #gotMs = 0;
  #nowMs = 0;

  constructor(inner: BackendSnowflake, clock: Reading | undefined) {
    this.#inner = inner;
    this.clock = clock;
  }

  nextId(): Promise<bigint> {
    return this.#call(undefined);
  }

  fill(ids: BigUint64Array): Promise<BigUint64Array> {
    return this.#call(ids);
  }

  /** Polls again at once, because the Snowflake was closed. */
  lookAgain(): void {
    this.#resume?.();
  }

  #call<T>(ids: BigUint64Array | undefined): Promise<T> {
    // If the stack overflows, the exception thrown in here rejects the promise.
    return new Promise((resolve, reject) => {
      this.#push({ ids, filled: 0, cameMs: this.#elapsedMs(), resolve, reject, next: undefined });
      this.#serve();
    });
  }

  /** Polls the core until there is something to wait for. */
  #serve(): void {
    if (this.#resume !== undefined) return;
    if (this.#isPolling) {
      // Either a clock is making this call, or Ctrl+C in Node's REPL or a node:vm timeout cut the poll short, in which
      // case no `finally` runs.
      queueMicrotask(() => {
        this.#isPolling = false;
        this.#serve();
      });
      return;
    }
    this.#isPolling = true;
    try {
      for (let polls = 0; this.#first !== undefined; polls += 1) {
        if (polls === POLLS_AT_ONCE) {
          this.#pause((resume) => setImmediate(resume));
          return;
        }
        if (this.#poll(this.#first)) return;
      }
    } finally {
      this.#isPolling = false;
    }
  }

  /** Polls the core once. Returns whether there is something to wait for. */
  #poll(first: Call): boolean {
    try {
      const asked = Math.min(this.#wanted, MOST_AT_ONCE);
      if (this.#got.length < asked) this.#got = new BigUint64Array(MOST_AT_ONCE);
      const ids = this.#got.length === asked ? this.#got : this.#got.subarray(0, asked);
      // The core counts each wait once, at the poll that passes -1.
      const waitedMs = this.#hasPaused ? this.#elapsedMs() - Math.max(first.cameMs, this.#gotMs) : -1;
      const polled = this.#inner.poll(ids, waitedMs);
      if (polled > 0) {
        this.#hasPaused = false;
        this.#handOut(polled);
        return false;
      }
      this.#hasPaused = true;
      if (Number.isNaN(polled)) this.#waitForDisk();
      else this.#pause((resume) => setTimeout(resume, Math.min(-polled, LONGEST_PAUSE_MS)));
      return true;
    } catch (error) {
      // Only the first call fails, as if no others were waiting. The next call then polls on its own behalf.
      if (this.#first === first) this.#shift(first).reject(error);
      return false;
    }
  }

  #handOut(count: number): void {
    let at = 0;
    while (at < count && this.#first !== undefined) {
      const call = this.#shift(this.#first);
      if (call.ids === undefined) {
        call.resolve(this.#got[at] as never);
        at += 1;
        continue;
      }
      const end = Math.min(count, at + call.ids.length - call.filled);
      call.ids.set(this.#got.subarray(at, end), call.filled);
      call.filled += end - at;
      at = end;
      if (call.filled === call.ids.length) call.resolve(call.ids as never);
      else this.#push(call);
    }
    if (this.#first !== undefined) this.#gotMs = this.#elapsedMs();
  }

  #waitForDisk(): void {
    const last = this.#last;
    const work = this.#inner.disk?.();
    this.#pause((resume) => {
      work?.then(resume, (error) => {
        // Reject all of them at once. Otherwise each in turn would wait for the failing disk.
        while (this.#resume === resume && this.#first !== undefined) {
          const call = this.#shift(this.#first);
          call.reject(error);
          if (call === last) break;
        }
        resume();
      });
    });
  }

  #pause(until: (resume: () => void) => void): void {
    const resume = () => {
      if (this.#resume !== resume) return;
      this.#resume = undefined;
      // Some clocks do not advance, and some runtimes' timers fire early.
      this.#nowMs += SHORTEST_PAUSE_MS;
      this.#serve();
    };
    this.#resume = resume;
    until(resume);
  }

  /** Returns the real time since some fixed moment. */
  #elapsedMs(): number {
    const nowMs = monotonicMs();
    // A replaced clock may return something other than a number.
    if (nowMs > this.#nowMs && nowMs < Number.POSITIVE_INFINITY) this.#nowMs = nowMs;
    return this.#nowMs;
  }

  #push(call: Call): void {
    call.next = undefined;
    if (this.#last === undefined) this.#first = call;
    else this.#last.next = call;
    this.#last = call;
    this.#wanted += call.ids === undefined ? 1 : call.ids.length - call.filled;
  }

  #shift(first: Call): Call {
    this.#first = first.next;
    if (this.#first === undefined) this.#last = undefined;
    this.#wanted -= first.ids === undefined ? 1 : first.ids.length - first.filled;
    return first;
  }
}

/** A batch that is filled on another thread. */
interface Batch {
  /** Nothing else refers to this array. */
  readonly ids: BigUint64Array;
  filled: number;
  readonly resolve: (ids: BigUint64Array) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A Snowflake's batches that are filled on another thread. They take turns on one thread: a batch that has received a
 * share of its IDs goes to the back of the queue.
 */
export class ThreadBatches {
  readonly #fillOnThread: NonNullable<BackendSnowflake["fillOnThread"]>;
  readonly #share: number;
  readonly #waiting: Batch[] = [];
  #isServing = false;

  constructor(fillOnThread: NonNullable<BackendSnowflake["fillOnThread"]>, share: number) {
    this.#fillOnThread = fillOnThread;
    this.#share = share;
  }

  fill(ids: BigUint64Array): Promise<BigUint64Array> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ids, filled: 0, resolve, reject });
      if (!this.#isServing) void this.#serve();
    });
  }

  async #serve(): Promise<void> {
    this.#isServing = true;
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const present = this.#waiting.length;
      try {
        const end = Math.min(first.filled + this.#share, first.ids.length);
        await this.#fillOnThread(first.ids, first.filled, end - first.filled);
        first.filled = end;
        this.#waiting.shift();
        if (end === first.ids.length) first.resolve(first.ids);
        else this.#waiting.push(first);
      } catch (error) {
        // All batches that were waiting fail too; otherwise each in turn would wait just as long.
        for (const { reject } of this.#waiting.splice(0, present)) reject(error);
      }
    }
    this.#isServing = false;
  }
}
