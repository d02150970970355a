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
   * addresses share the numbers out, so that one store may be down: numbers are unique then, but not ordered. Every
   * process must name them in the same order. Required.
   */
  store: string | readonly string[];
  /** The first number, where the store has no such counter yet: 1 to 2^63 - 1. Default: 1. */
  start?: Integer | undefined;
  /**
   * How many numbers the store hands out at a time: 1 to 1000000000, or `"auto"` (the default), which is 100 at first
   * and then what lasts ten minutes, at most 1000000. With 1, the store is asked for each number, and numbers increase
   * over all processes.
   */
  step?: Integer | "auto" | undefined;
  /** The longest that a call waits for the store, in ms: 0 to 4294967295. Default: 10000. */
  maxWaitMs?: Integer | undefined;
}

/** How each option but the store becomes text. The core checks the text. */
const TEXT_OF = { start: integer, step: integer, maxWaitMs: integer };

/** What {@link Counter.open} gives to the constructor. */
class Opened {
  readonly inner: BackendCounter;

  constructor(inner: BackendCounter) {
    this.inner = inner;
  }
}

let open: (inner: BackendCounter) => Counter;
/** The method `Symbol.dispose`, which some runtimes do not name. */
let closeOnly: (this: Counter) => void;

/**
 * Numbers that count up, each given once: 1, 2, 3 and so on, for order numbers or as the keys of a table. A store hands
 * them out in segments, so that most numbers cost no round trip.
 *
 * - No number is given twice, by whichever process, as long as the store loses no write that it acknowledged.
 * - Each number is greater than every number that this process got before the call began (with one store).
 * - A process that ends without {@link Counter.close} leaves a gap of at most the numbers that it had in hand: two
 *   segments.
 *
 * All Counters of a process with the same store and name share what is in hand, also in worker threads. `cluster` and
 * PM2 workers are processes: each has numbers of its own in hand. Only in Node's native build.
 *
 * No call blocks the event loop: {@link Counter.nextId}, {@link Counter.nextIds} and {@link Counter.fill} give what is
 * in hand, or throw; the others wait for the store, and return promises.
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
  /** The calls that wait, by how many numbers each asks for. */
  readonly #together: Together<number>;
  /** Resolves when what was in hand was given back. */
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
   * The counter of that name (1 to 100 characters). Makes it where the store has none, and waits until there are
   * numbers in hand, without blocking the event loop. What happens to it is told on the channel `polyflake:lease` of
   * `node:diagnostics_channel`, as a {@link LeaseEvent} without a node.
   *
   * @throws {PolyflakeError} (the promise rejects) `INVALID_OPTION`, also if this process uses the counter with another
   * `start` or `step`, and outside Node's native build; `COUNTER_UNAVAILABLE` if the store cannot be reached within
   * `maxWaitMs`, or refuses.
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
   * The next number, if one is in hand: it never waits, for a wait would block the event loop for as long as the store
   * takes. With a `step` of 1 none ever is in hand; after a burst that was larger than what is in hand, none is for as
   * long as the store takes. {@link Counter.nextIdAsync} waits.
   *
   * @throws {PolyflakeError} `COUNTER_UNAVAILABLE` if none is in hand (the store is asked for more meanwhile), or
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
   * (behind another call that waits already, at most twice that).
   *
   * @throws {PolyflakeError} (the promise rejects) `COUNTER_UNAVAILABLE` if the store gives none by then; at once where
   * waiting does not help: the store refuses, somebody removed the counter, or the counter has reached 2^63 - 1. Or `CLOSED`.
   */
  async nextIdAsync(): Promise<bigint> {
    return this.#inner.take() ?? ((await this.#together.later(1, 1))[0] as bigint);
  }

  /**
   * The next `n` numbers, 1 to 16777216, if that many are in hand ({@link Counter.stats}). They are increasing, and need
   * not follow each other.
   *
   * @throws {PolyflakeError} as {@link Counter.nextId} does: then none of them are lost, unless a worker thread takes
   * some at the same time. `INVALID_OPTION` for any other `n`.
   */
  nextIds(n: Integer): BigUint64Array {
    return this.#inner.nextIds(batchSize(n));
  }

  /**
   * The next `n` numbers, 1 to 16777216, without blocking the event loop. They are increasing, and need not follow each
   * other. It may wait for `maxWaitMs` each time it makes no progress. An error loses the numbers taken so far; they
   * are never given again.
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
   * A promise of the first of `n` numbers that follow each other, 1 to 16777216; the last is `n` - 1 more. If fewer than
   * `n` are left in hand, it skips them and asks the store, which is why it returns a promise and {@link Counter.nextId}
   * does not.
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Counter.nextIdAsync} does, or `INVALID_OPTION` for any
   * other `n`, and with several stores, whose numbers do not follow each other.
   */
  async nextBlock(n: Integer): Promise<bigint> {
    const size = integer(n, "n");
    return promised((done) => this.#inner.nextBlock(size, done));
  }

  /**
   * The highest number that the store has handed out, in segments, to any process; 0 before the first. Asks the store.
   *
   * @throws {PolyflakeError} (the promise rejects) `COUNTER_UNAVAILABLE` if the store cannot be reached within
   * `maxWaitMs`, or has no such counter. Or `CLOSED`.
   */
  async peek(): Promise<bigint> {
    return promised((done) => this.#inner.peek(done));
  }

  /**
   * Moves the counter above `number` (1 to 2^63 - 1): the store gives no segment below it any more, and this process
   * gives up what it has in hand; other processes use up theirs. It changes nothing where the counter is further already.
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Counter.peek} does, or `INVALID_OPTION` for any other
   * number.
   */
  async raise(number: Integer): Promise<void> {
    const to = integer(number, "number");
    await promised<void>((done) => this.#inner.raise(to, done));
  }

  /**
   * Deletes the counter from the store. The next open begins at its start again, and numbers repeat. This
   * process's Counters of that name give none from then on. Resolves to whether there was one.
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
   * What is in hand and how often the store was asked, for monitoring.
   *
   * @throws {PolyflakeError} `CLOSED`.
   */
  get stats(): CounterStats {
    return Object.freeze(this.#inner.stats());
  }

  /**
   * Closes this Counter: from now on its calls throw `CLOSED`, also those that wait. The last one of a name in this
   * process gives back what it has in hand, so that no gap is left; the promise resolves when that is done, or after a
   * few seconds if the store does not answer. An `await using` declaration does the same, and `using` does not wait for
   * it.
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

/** What a call passes to its last argument. */
function promised<T>(call: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, value) => (error ? reject(error) : resolve(value)));
  });
}

function storeTexts({ store }: CounterOptions): string[] {
  const stores = Array.isArray(store) ? store : store === undefined ? [] : [store];
  return stores.map((address) => text(address, "store", "a string, or an array of strings"));
}
