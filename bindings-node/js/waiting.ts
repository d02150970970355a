// Calls that wait without blocking the event loop.
import type { BackendSnowflake, Reading } from "../../bindings-wasm/js/backend.js";

// Waits are in real time: with fake timers that a test installs later, they would hang.
const { setTimeout, setImmediate = setTimeout, queueMicrotask } = globalThis;
const monotonicMs = performance.now.bind(performance);
/** The shortest time that a pause takes. */
const SHORTEST_PAUSE_MS = 0.1;
/** The clock may be set forward during a pause, and timers have a longest time. */
const LONGEST_PAUSE_MS = 1000;
/** The most IDs that a poll asks for. */
export const MOST_AT_ONCE = 4096;
/** After this many polls the event loop gets its turn. */
const POLLS_AT_ONCE = 128;

/** A call that waits for an ID, or for an array of them. */
interface Call {
  /** What to fill, and how much of it is filled; none for a single ID. */
  readonly ids: BigUint64Array | undefined;
  filled: number;
  readonly cameMs: number;
  readonly resolve: (got: never) => void;
  readonly reject: (error: unknown) => void;
  next: Call | undefined;
}

/**
 * The calls of a Snowflake that wait. They get IDs in the order in which they came; a batch that has got some goes behind
 * the others. All have one place together in the core's queue, where threads wait.
 *
 * A call fails once `maxWaitMs` has passed since it came, and since any of them last got an ID.
 */
export class Waiting {
  readonly #inner: BackendSnowflake;
  /** What the core's weak reference to the clock points to: the Snowflake may be garbage while its calls wait. */
  readonly clock: Reading | undefined;
  #first: Call | undefined;
  #last: Call | undefined;
  /** How many IDs all of them want. */
  #wanted = 0;
  /** Where the core writes. */
  #got = new BigUint64Array(1);
  /** Whether the core is asked now: a clock may make calls meanwhile. */
  #isPolling = false;
  /** Ends the present pause. */
  #resume: (() => void) | undefined;
  /** Whether there was a pause since the core last gave an ID. */
  #hasPaused = false;
  /** When the core last gave an ID. */
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

  /** The core looks again, at once: it was closed. */
  lookAgain(): void {
    this.#resume?.();
  }

  #call<T>(ids: BigUint64Array | undefined): Promise<T> {
    // What throws in here, where the stack is used up, rejects the promise.
    return new Promise((resolve, reject) => {
      this.#push({ ids, filled: 0, cameMs: this.#elapsedMs(), resolve, reject, next: undefined });
      this.#serve();
    });
  }

  /** Asks the core until there is something to wait for. */
  #serve(): void {
    if (this.#resume !== undefined) return;
    if (this.#isPolling) {
      // A clock makes calls; or the poll was ended from outside, by Ctrl+C in Node's REPL or a timeout of node:vm, which no
      // `finally` sees.
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

  /** Asks the core once. Returns whether there is something to wait for. */
  #poll(first: Call): boolean {
    try {
      const asked = Math.min(this.#wanted, MOST_AT_ONCE);
      if (this.#got.length < asked) this.#got = new BigUint64Array(MOST_AT_ONCE);
      const ids = this.#got.length === asked ? this.#got : this.#got.subarray(0, asked);
      // The core counts a call that waits at its first poll.
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
      // As if this call alone had asked. The next one asks for itself.
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
        // Not one after the other: each would wait for a disk that fails.
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
      // Some clocks do not advance, and some runtimes' timers are early.
      this.#nowMs += SHORTEST_PAUSE_MS;
      this.#serve();
    };
    this.#resume = resume;
    until(resume);
  }

  /** Real time since some moment. */
  #elapsedMs(): number {
    const nowMs = monotonicMs();
    // A clock that was replaced may be no number.
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
  /** Nobody else can reach it. */
  readonly ids: BigUint64Array;
  filled: number;
  readonly resolve: (ids: BigUint64Array) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The batches of a Snowflake that are filled on another thread. They occupy one at a time, in turns: one that has got a
 * share goes behind the others.
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
        // All that waited meanwhile, or each would wait for as long after the other.
        for (const { reject } of this.#waiting.splice(0, present)) reject(error);
      }
    }
    this.#isServing = false;
  }
}
