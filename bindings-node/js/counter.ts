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
   * stores share the numbers out, so that one store may be down: numbers are then unique, but not ordered. Every
   * process must name them in the same order. Required.
   */
  store: string | readonly string[];
  /** The first number, if the store has no such counter yet: 1 to 2^63 - 1. Default: 1. */
  start?: Integer | undefined;
  /**
   * How many numbers the store hands out at a time: 1 to 1000000000, or `"auto"` (the default): 100 at first, then
   * enough to last ten minutes, at most 1000000. With 1, the store is asked for each number, and numbers increase
   * across all processes.
   */
  step?: Integer | "auto" | undefined;
  /** The longest a call waits for the store, in ms: 0 to 4294967295. Default: 10000. */
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
/** The key of the method `Symbol.dispose`, which some runtimes lack. */
let closeOnly: (this: Counter) => void;

/**
 * Numbers that count up, each issued once: 1, 2, 3 and so on, for order numbers or as a table's keys. A store hands
 * them out in segments, so that most numbers need no round trip.
 *
 * - No number is issued twice, by any process, as long as the store does not lose a write it has acknowledged.
 * - With one store, each number is greater than every number that this process got before the call began.
 * - A process that ends without {@link Counter.close} leaves a gap: the numbers it had in hand, at most two segments,
 *   and those of its calls in progress.
 *
 * All Counters in a process with the same store and name share the numbers in hand, including across worker threads.
 * `cluster` and PM2 workers are processes: each has its own numbers in hand. Only in Node's native build.
 *
 * No call blocks the event loop. {@link Counter.nextId}, {@link Counter.nextIds} and {@link Counter.fill} return
 * numbers in hand, or throw; the others wait for the store, and return promises.
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
  /** The waiting calls, by how many numbers each asks for. */
  readonly #together: Together<number>;
  /** Resolves when the numbers in hand were given back. */
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
   * Opens the counter with that name (1 to 100 characters). Creates it if the store has none, and waits until there are
   * numbers in hand, without blocking the event loop. Its events are published on the channel `polyflake:lease` of
   * `node:diagnostics_channel`, each as a {@link LeaseEvent} without a node.
   *
   * @throws {PolyflakeError} (the promise rejects) `INVALID_OPTION`, including if this process uses the counter with
   * another `start` or `step`, and outside Node's native build; `COUNTER_UNAVAILABLE` if the store cannot be reached
   * within `maxWaitMs`, or refuses.
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
   * The next number, if one is in hand. It never waits, because a wait would block the event loop for as long as the
   * store takes. With a `step` of 1, no number is ever in hand; after a burst larger than the numbers in hand, there
   * are none until the store replies. {@link Counter.nextIdAsync} waits.
   *
   * @throws {PolyflakeError} `COUNTER_UNAVAILABLE` if none is in hand (meanwhile, the store is asked for more), or
   * `CLOSED`.
   */
  nextId(): bigint {
    return this.#nextId();
  }

  /**
   * The same as {@link Counter.nextId}, as a Snowflake has it.
   *
   * @throws {PolyflakeError} as {@link Counter.nextId} does.
   */
  tryNextId(): bigint {
    return this.#nextId();
  }

  /**
   * The next number. If none is in hand, waits for the store without blocking the event loop, for at most `maxWaitMs`
   * (at most twice that if another call is already waiting).
   *
   * @throws {PolyflakeError} (the promise rejects) `COUNTER_UNAVAILABLE` if the store gives none by then; at once if
   * waiting does not help: the store refuses, somebody removed the counter, or the counter has reached 2^63 - 1. Or
   * `CLOSED`.
   */
  async nextIdAsync(): Promise<bigint> {
    return this.#inner.take() ?? ((await this.#together.later(1, 1))[0] as bigint);
  }

  /**
   * The next `n` numbers, 1 to 16777216, if that many are in hand ({@link Counter.stats}). They increase, and may have
   * gaps between them.
   *
   * @throws {PolyflakeError} as {@link Counter.nextId} does: then none of them are lost, unless a worker thread takes
   * some at the same time. `INVALID_OPTION` for any other `n`.
   */
  nextIds(n: Integer): BigUint64Array {
    return this.#inner.nextIds(batchSize(n));
  }

  /**
   * The next `n` numbers, 1 to 16777216, without blocking the event loop. They increase, and may have gaps between
   * them. It may wait for `maxWaitMs` each time it makes no progress. An error loses the numbers taken so far; they are
   * never issued again.
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Counter.nextIdAsync} does, or `INVALID_OPTION` for any
   * other `n`.
   */
  async nextIdsAsync(n: Integer): Promise<BigUint64Array> {
    const size = batchSize(n);
    return this.#together.later(size, size);
  }

  /**
   * Fills an array with numbers, if that many are in hand.
   *
   * @throws {PolyflakeError} as {@link Counter.nextIds} does.
   */
  fill(ids: BigUint64Array): void {
    this.#inner.fill(idArray(ids, "the argument of fill"));
  }

  /**
   * Resolves to the first of `n` consecutive numbers, 1 to 16777216; the last is `n` - 1 more. If fewer than `n` are
   * left in hand, it skips them and asks the store. So it returns a promise, which {@link Counter.nextId} does not.
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Counter.nextIdAsync} does, or `INVALID_OPTION` for any
   * other `n`, and with several stores, whose numbers are not consecutive.
   */
  async nextBlock(n: Integer): Promise<bigint> {
    const size = integer(n, "n");
    return promised((done) => this.#inner.nextBlock(size, done));
  }

  /**
   * The highest number that the store has handed out, in segments, to any process; 0 before the first. Queries the
   * store.
   *
   * @throws {PolyflakeError} (the promise rejects) `COUNTER_UNAVAILABLE` if the store cannot be reached within
   * `maxWaitMs`, or has no such counter. Or `CLOSED`.
   */
  async peek(): Promise<bigint> {
    return promised((done) => this.#inner.peek(done));
  }

  /**
   * Moves the counter above `number` (1 to 2^63 - 1): the store gives no segment below it any more. This process gives
   * up its numbers in hand; other processes use theirs up. It changes nothing if the counter is already higher.
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Counter.peek} does, or `INVALID_OPTION` for any other
   * number.
   */
  async raise(number: Integer): Promise<void> {
    const to = integer(number, "number");
    await promised<void>((done) => this.#inner.raise(to, done));
  }

  /**
   * Deletes the counter from the store. The next open begins at its start again, and numbers repeat. From then on, this
   * process's Counters with that name issue none. Resolves to whether the counter existed.
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
   * How many numbers are in hand and how often the store was asked, for monitoring.
   *
   * @throws {PolyflakeError} `CLOSED`.
   */
  get stats(): CounterStats {
    return Object.freeze(this.#inner.stats());
  }

  /**
   * Closes this Counter: from now on its calls throw `CLOSED`, even those that wait. The last one with a name in this
   * process gives its numbers in hand back, so that no gap is left. The promise resolves when that is done, or after a
   * few seconds if the store does not answer. An `await using` declaration does the same; `using` does not wait for it.
   */
  async close(): Promise<void> {
    this.#givenBack ??= new Promise((resolve) => this.#inner.close(resolve));
    await this.#givenBack;
  }

  /** The iterator's next step: a number as from {@link Counter.nextId}. It never ends, but may throw. */
  next(): IteratorYieldResult<bigint> {
    return { value: this.#nextId(), done: false };
  }

  /** Returns the counter itself, so that `for` takes its numbers by {@link Counter.next}. */
  [Symbol.iterator](): this {
    return this;
  }

  /** For `for await`: numbers as from {@link Counter.nextIdAsync}. */
  async *[Symbol.asyncIterator](): AsyncGenerator<bigint, never, undefined> {
    for (;;) yield await this.nextIdAsync();
  }

  /** @internal */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `Counter { name: ${JSON.stringify(this.name)} }`;
  }
}

export interface Counter {
  /** As {@link Counter.close}, at the end of the block of a `using` declaration, without waiting. */
  [Symbol.dispose](): void;
  /** {@link Counter.close}, at the end of the block of an `await using` declaration. */
  [Symbol.asyncDispose](): Promise<void>;
}

const methods = [
  [dispose, closeOnly],
  [asyncDispose, Counter.prototype.close],
] as const;
for (const [symbol, value] of methods) {
  Object.defineProperty(Counter.prototype, symbol, { configurable: true, writable: true, value });
}

/** The arguments that a call passes to its last argument. */
function promised<T>(call: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, value) => (error ? reject(error) : resolve(value)));
  });
}

function storeTexts({ store }: CounterOptions): string[] {
  const stores = Array.isArray(store) ? store : store === undefined ? [] : [store];
  return stores.map((address) => text(address, "store", "a string, or an array of strings"));
}
