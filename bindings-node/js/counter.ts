import type { BackendCounter, CounterStats, Done } from "../../bindings-wasm/js/backend.js";
import type { Integer } from "./convert.js";
import { idArray, integer, text } from "./convert.js";
import { batchSize, core } from "./core.js";
import { asyncDispose, dispose } from "./dispose.js";
import type { IdGenerator } from "./generator.js";
import { noNetwork, optionTexts, Together } from "./stores.js";

/** The options of a {@link Counter}. */
export interface CounterOptions {
  /**
   * The address of the store that hands out the numbers, such as `"redis://host/0"` or `"etcd://host:2379"`. Several
   * stores divide the numbers among themselves, so one of them can be down; the numbers are then unique but not
   * ordered. Every process must list the stores in the same order. Required.
   */
  store: string | readonly string[];
  /** The first number, if the store does not have the counter yet: 1 to 2^63 - 1. Default: 1. */
  start?: Integer | undefined;
  /**
   * How many numbers the store hands out at a time: 1 to 1000000000, or `"auto"` (the default), which starts with 100
   * and then takes enough to last ten minutes, at most 1000000. With 1, each number is requested from the store
   * separately, and numbers increase across all processes.
   */
  step?: Integer | "auto" | undefined;
  /** The longest time that a call waits for the store, in ms: 0 to 4294967295. Default: 10000. */
  maxWaitMs?: Integer | undefined;
}

/** Converts each option except the store to text. The core checks the text. */
const TEXT_OF = { start: integer, step: integer, maxWaitMs: integer };

/** The argument that {@link Counter.open} passes to the constructor. */
class Opened {
  readonly inner: BackendCounter;

  constructor(inner: BackendCounter) {
    this.inner = inner;
  }
}

let open: (inner: BackendCounter) => Counter;
/** The method `Symbol.dispose`. Some runtimes lack that symbol. */
let closeOnly: (this: Counter) => void;

/**
 * A counter that issues each number once: 1, 2, 3 and so on, for order numbers or a table's keys. A store hands out the
 * numbers in segments, so most numbers need no round trip.
 *
 * - No number is issued twice, by any process, as long as the store does not lose writes that it has acknowledged.
 * - With one store, each number is greater than every number that this process received before the call began.
 * - If a process exits without calling {@link Counter.close}, the numbers it had fetched but not returned are skipped:
 *   at most two segments, plus the numbers of any calls in progress.
 *
 * All Counters in a process with the same store and name share the numbers in hand, even across worker threads.
 * `cluster` and PM2 workers are separate processes, and each has its own numbers in hand. Counters work only in Node's
 * native build.
 *
 * No call blocks the event loop. {@link Counter.nextId}, {@link Counter.nextIds} and {@link Counter.fill} return
 * numbers in hand or throw. The other methods wait for the store and return promises.
 *
 * @example
 * ```js
 * import { Counter } from "polyflake";
 *
 * await using orders = await Counter.open("orders", { store: "redis://localhost/0" });
 * console.log(await orders.nextIdAsync()); // 1n
 * ```
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: its Symbol.dispose is defined below the class.
export class Counter implements IterableIterator<bigint, never, undefined>, IdGenerator {
  readonly #inner: BackendCounter;
  readonly #nextId: () => bigint;
  /** The waiting calls, each with the size of its request. */
  readonly #together: Together<number>;
  /** Resolves when the numbers in hand have been given back. */
  #givenBack: Promise<void> | undefined;

  private constructor(opened: Opened) {
    if (!(opened instanceof Opened)) {
      throw new TypeError("a constructor cannot wait for a store: use await Counter.open(name, options)");
    }
    const { inner } = opened;
    this.#inner = inner;
    this.#nextId = inner.nextId;
    this.#together = new Together((sizes, done) =>
      inner.fillLater(
        sizes.reduce((total, n) => total + n, 0),
        done,
      ),
    );
  }

  static {
    open = (inner) => new Counter(new Opened(inner));
    closeOnly = function (this: Counter): void {
      this.#inner.close(undefined);
    };
  }

  /**
   * Opens the counter with this name (1 to 100 characters). Creates the counter if the store does not have it, and
   * waits until there are numbers in hand, without blocking the event loop. The counter's events are published on the
   * channel `polyflake:lease` of `node:diagnostics_channel`, each as a {@link LeaseEvent} without a node.
   *
   * @throws {PolyflakeError} (the promise rejects) `INVALID_OPTION` if an option is invalid, if this process already
   * uses the counter with a different `start` or `step`, or outside Node's native build; `COUNTER_UNAVAILABLE` if the
   * store cannot be reached within `maxWaitMs`, or refuses to hand out numbers.
   *
   * @example
   * ```js
   * import { Counter } from "polyflake";
   *
   * const invoices = await Counter.open("invoices", { store: "redis://localhost/0", start: 1000, step: 1 });
   * console.log(await invoices.nextIdAsync()); // 1000n
   * await invoices.close();
   * ```
   */
  static async open(name: string, options: CounterOptions): Promise<Counter> {
    const texts = optionTexts(options, "Counter", storeTexts, TEXT_OF);
    const counterName = text(name, "the counter's name");
    const { openCounter } = core();
    if (openCounter === undefined) throw noNetwork("a counter's");
    return open(await openCounter(counterName, texts));
  }

  /**
   * Returns the next number if one is in hand. This never waits, because a wait would block the event loop until the
   * store replies. With a `step` of 1, no number is ever in hand; after a burst that uses up the numbers in hand, none
   * is available until the store replies. {@link Counter.nextIdAsync} waits instead.
   *
   * @throws {PolyflakeError} `COUNTER_UNAVAILABLE` if no number is in hand (the store is asked for more in the
   * background), or `CLOSED`.
   */
  nextId(): bigint {
    return this.#nextId();
  }

  /**
   * The same as {@link Counter.nextId}, for consistency with {@link Snowflake.tryNextId}.
   *
   * @throws {PolyflakeError} as {@link Counter.nextId} does.
   */
  tryNextId(): bigint {
    return this.#nextId();
  }

  /**
   * Resolves to the next number. If no number is in hand, this waits for the store without blocking the event loop, for
   * at most `maxWaitMs` (at most twice that if another call is already waiting).
   *
   * @throws {PolyflakeError} (the promise rejects) `COUNTER_UNAVAILABLE` if the store has not handed out a number by
   * then, or at once if waiting cannot help: the store refuses, the counter was removed, or it has reached 2^63 - 1. Or
   * `CLOSED`.
   */
  async nextIdAsync(): Promise<bigint> {
    return this.#inner.take() ?? ((await this.#together.later(1, 1))[0] as bigint);
  }

  /**
   * Returns the next `n` numbers, 1 to 16777216, if that many are in hand (see {@link Counter.stats}). They increase,
   * possibly with gaps.
   *
   * @throws {PolyflakeError} as {@link Counter.nextId} does; no numbers are lost in that case, unless a worker thread
   * takes some at the same time. `INVALID_OPTION` for any other `n`.
   */
  nextIds(n: Integer): BigUint64Array {
    return this.#inner.nextIds(batchSize(n));
  }

  /**
   * Resolves to the next `n` numbers, 1 to 16777216, without blocking the event loop. They increase, possibly with
   * gaps. The call may wait for up to `maxWaitMs` each time it makes no progress. If it fails, the numbers taken so far
   * are lost, and are never issued again.
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Counter.nextIdAsync} does, or `INVALID_OPTION` for any
   * other `n`.
   */
  async nextIdsAsync(n: Integer): Promise<BigUint64Array> {
    const size = batchSize(n);
    return this.#together.later(size, size);
  }

  /**
   * Fills an array with numbers if enough are in hand.
   *
   * @throws {PolyflakeError} as {@link Counter.nextIds} does.
   */
  fill(ids: BigUint64Array): void {
    this.#inner.fill(idArray(ids, "the argument of fill"));
  }

  /**
   * Resolves to the first of `n` consecutive numbers, 1 to 16777216; the last is `n` - 1 higher. If fewer than `n` are
   * left in hand, this skips them and asks the store for more. That is why it returns a promise, unlike
   * {@link Counter.nextId}.
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Counter.nextIdAsync} does, or `INVALID_OPTION` for any
   * other `n` and for a counter with several stores, whose numbers are not consecutive.
   */
  async nextBlock(n: Integer): Promise<bigint> {
    const size = integer(n, "n");
    return promised((done) => this.#inner.nextBlock(size, done));
  }

  /**
   * Resolves to the highest number in any segment that the store has handed out to any process, or 0 before the first
   * segment. Each call queries the store.
   *
   * @throws {PolyflakeError} (the promise rejects) `COUNTER_UNAVAILABLE` if the store cannot be reached within
   * `maxWaitMs`, or has no such counter. Or `CLOSED`.
   */
  async peek(): Promise<bigint> {
    return promised((done) => this.#inner.peek(done));
  }

  /**
   * Moves the counter above `number` (1 to 2^63 - 1), so that the store hands out only higher segments. This process
   * gives up its numbers in hand, but other processes use up theirs. Nothing changes if the counter is already higher.
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Counter.peek} does, or `INVALID_OPTION` for any other
   * number.
   */
  async raise(number: Integer): Promise<void> {
    const to = integer(number, "number");
    await promised<void>((done) => this.#inner.raise(to, done));
  }

  /**
   * Deletes the counter from the store, and resolves to whether it existed. From then on, this process's Counters with
   * that name issue no numbers. The next {@link Counter.open} begins at its `start` again, and numbers repeat.
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Counter.peek} does.
   */
  async remove(): Promise<boolean> {
    return promised((done) => this.#inner.remove(done));
  }

  /** The counter's name. */
  get name(): string {
    return this.#inner.name;
  }

  /**
   * How many numbers are in hand, how often the store handed out numbers, and more, for monitoring.
   *
   * @throws {PolyflakeError} `CLOSED`.
   */
  get stats(): CounterStats {
    return Object.freeze(this.#inner.stats());
  }

  /**
   * Closes this Counter. From then on, its calls throw `CLOSED`, including those that are waiting. Closing the last
   * Counter with that name in this process gives back the numbers in hand, unless another process has fetched numbers
   * since. The promise resolves when that is done, or after a few seconds if the store does not answer. An `await using`
   * declaration does the same; `using` does not wait.
   */
  async close(): Promise<void> {
    this.#givenBack ??= new Promise((resolve) => this.#inner.close(resolve));
    await this.#givenBack;
  }

  /**
   * Returns the next number, from {@link Counter.nextId}, as an iterator result. The iterator never ends, but may
   * throw.
   */
  next(): IteratorYieldResult<bigint> {
    return { value: this.#nextId(), done: false };
  }

  /** Returns the counter itself, so that `for` loops take numbers from {@link Counter.next}. */
  [Symbol.iterator](): this {
    return this;
  }

  /** Returns an iterator for `for await` loops, which takes numbers from {@link Counter.nextIdAsync}. */
  async *[Symbol.asyncIterator](): AsyncGenerator<bigint, never, undefined> {
    for (;;) yield await this.nextIdAsync();
  }

  /** @internal */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `Counter { name: ${JSON.stringify(this.name)} }`;
  }
}

export interface Counter {
  /** Calls {@link Counter.close} at the end of a block with a `using` declaration, without waiting. */
  [Symbol.dispose](): void;
  /** Calls {@link Counter.close} at the end of a block with an `await using` declaration, and waits. */
  [Symbol.asyncDispose](): Promise<void>;
}

const methods = [
  [dispose, closeOnly],
  [asyncDispose, Counter.prototype.close],
] as const;
for (const [symbol, value] of methods) {
  Object.defineProperty(Counter.prototype, symbol, { configurable: true, writable: true, value });
}

/** Returns a promise for the result that a call passes to its callback. */
function promised<T>(call: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, value) => (error ? reject(error) : resolve(value)));
  });
}

function storeTexts({ store }: CounterOptions): string[] {
  const stores = Array.isArray(store) ? store : store === undefined ? [] : [store];
  return stores.map((address) => text(address, "store", "a string, or an array of strings"));
}
