import type { BackendSequences, SequencesStats } from "../../bindings-wasm/js/backend.js";
import type { Integer } from "./convert.js";
import { integer, text, wellFormed, wrongType } from "./convert.js";
import { core } from "./core.js";
import { asyncDispose, dispose } from "./dispose.js";
import { noNetwork, optionTexts, Together } from "./stores.js";

/**
 * A key of {@link Sequences}: a string, or an integer from -2^63 to 2^64 - 1, as a bigint or a Number that is a safe
 * integer. `5` and `5n` are the same key, but `"5"` is a different one.
 */
export type SequenceKey = string | number | bigint;

/** The options of {@link Sequences}. */
export interface SequencesOptions {
  /**
   * The address of the store that keeps the sections' bounds, such as `"postgres://host/chat"` or
   * `"redis://host/0"`. While this process holds the lease, other processes' errors show its `label`
   * (`"postgres://host/chat?label=10.0.0.7:8080"`). Required.
   */
  store: string;
  /**
   * The number of sections: 1 to 16384. The keys in a section share a bound in the store. The number cannot be changed
   * later. Default: 1024.
   */
  sections?: Integer | undefined;
  /**
   * The size of a step: 1 to 1000000000 numbers. A bound is moved to two steps above its section's highest number.
   * With a larger step, the store is asked less often, but more numbers are skipped if a process exits without calling
   * {@link Sequences.close}. Default: 10000.
   */
  step?: Integer | undefined;
  /** How many keys are kept in memory: 1 to 1000000000. Each takes at most 40 bytes. Default: 1000000. */
  maxKeys?: Integer | undefined;
  /** The longest time that a call waits for the store, in ms: 0 to 4294967295. Default: 10000. */
  maxWaitMs?: Integer | undefined;
}

/** Converts each option except the store to text. The core checks the text. */
const TEXT_OF = { sections: integer, step: integer, maxKeys: integer, maxWaitMs: integer };

/** The argument that {@link Sequences.open} passes to the constructor. */
class Opened {
  readonly inner: BackendSequences;

  constructor(inner: BackendSequences) {
    this.inner = inner;
  }
}

let open: (inner: BackendSequences) => Sequences;
/** Implements `Symbol.dispose`, a symbol that some runtimes lack. */
let closeOnly: (this: Sequences) => void;

/**
 * A separate count for each of many keys: 1, 2, 3 and so on for `"alice"`, and the same for `"bob"`. Use it to number
 * the messages in an inbox or the versions of a document.
 *
 * - A key's numbers increase, and no number is issued twice, by any process, as long as the store does not lose writes
 *   that it has acknowledged.
 * - A key skips numbers if it is used again after being evicted from memory, and so do new keys after an eviction.
 *   After a process exits without calling {@link Sequences.close}, all keys in a section continue above the section's
 *   bound, which is at most two steps above its highest number.
 * - Only the process that holds the lease issues numbers. In other processes, calls throw `LEASE_UNAVAILABLE`, with a
 *   message that contains the holder's label in backticks.
 *
 * All Sequences in a process with the same store and name share their keys, even across worker threads. `cluster` and
 * PM2 workers are separate processes, and only one of them has the lease. Sequences work only in Node's native build.
 *
 * No call blocks the event loop. {@link Sequences.nextId} and {@link Sequences.nextIds} return numbers at once or
 * throw. The other methods wait for the store and return promises.
 *
 * @example
 * ```js
 * import { Sequences } from "polyflake";
 *
 * await using inbox = await Sequences.open("inbox", { store: "sqlite:///var/lib/app/chat.db" });
 * console.log(await inbox.nextIdAsync("alice")); // 1n
 * console.log(await inbox.nextIdsAsync(["alice", "bob"])); // BigUint64Array(2) [ 2n, 1n ]
 * ```
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: its Symbol.dispose is defined below the class.
export class Sequences {
  readonly #inner: BackendSequences;
  readonly #together: Together<SequenceKey[]>;
  /** Resolves when the lease has been given back. */
  #givenBack: Promise<void> | undefined;

  private constructor(opened: Opened) {
    if (!(opened instanceof Opened)) {
      throw new TypeError("a constructor cannot wait for a store: use await Sequences.open(name, options)");
    }
    const { inner } = opened;
    this.#inner = inner;
    this.#together = new Together((lists, done) =>
      inner.nextIdsLater(lists.length === 1 ? (lists[0] as SequenceKey[]) : lists.flat(), done),
    );
  }

  static {
    open = (inner) => new Sequences(new Opened(inner));
    closeOnly = function (this: Sequences): void {
      this.#inner.close(undefined);
    };
  }

  /**
   * Opens the sequences with this name (1 to 100 characters). Creates them if the store does not have them, and waits
   * for the lease without blocking the event loop, for at most the address's `wait` (by default its `ttl` plus 5
   * seconds). The events of the sequences are published on the channel `polyflake:lease` of `node:diagnostics_channel`,
   * each as a {@link LeaseEvent} without a node.
   *
   * @throws {PolyflakeError} (the promise rejects) `INVALID_OPTION` if an option is invalid, if the sequences were
   * created with a different number of sections, if this process already uses them with other options, or outside
   * Node's native build; `LEASE_UNAVAILABLE` if another process, which the message names, has the lease, or if the
   * store cannot be reached.
   *
   * @example
   * ```js
   * import { Sequences } from "polyflake";
   *
   * const versions = await Sequences.open("versions", { store: "sqlite:///var/lib/app/docs.db", maxKeys: 20_000_000 });
   * console.log(await versions.nextIdAsync(4711)); // 1n
   * await versions.close();
   * ```
   */
  static async open(name: string, options: SequencesOptions): Promise<Sequences> {
    const texts = optionTexts(options, "Sequences", storeTexts, TEXT_OF);
    const sequencesName = text(name, "the sequences' name");
    const { openSequences } = core();
    if (openSequences === undefined) throw noNetwork("the sequences'");
    return open(await openSequences(sequencesName, texts));
  }

  /**
   * Returns the key's next number. This never waits for the store, because a wait would block the event loop until the
   * store replies. {@link Sequences.nextIdAsync} waits instead.
   *
   * @throws {PolyflakeError} `LEASE_UNAVAILABLE` if another process, which the message names, now issues the
   * numbers; `LEASE_LOST` if the lease could not be renewed; `COUNTER_UNAVAILABLE` if the key's section has reached its
   * bound and the store has not moved the bound yet; `INVALID_OPTION` for an integer outside 64 bits; `CLOSED`.
   */
  nextId(key: SequenceKey): bigint {
    return this.#inner.nextId(keyOf(key));
  }

  /**
   * The same as {@link Sequences.nextId}, for consistency with {@link Snowflake.tryNextId}.
   *
   * @throws {PolyflakeError} as {@link Sequences.nextId} does.
   */
  tryNextId(key: SequenceKey): bigint {
    return this.nextId(key);
  }

  /**
   * Resolves to the key's next number. If no number is available at once, this waits for the store without blocking the
   * event loop, for at most `maxWaitMs` (at most twice that if another call is already waiting).
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Sequences.nextId} does, if no number has become available
   * by then, or at once if waiting cannot help.
   */
  async nextIdAsync(key: SequenceKey): Promise<bigint> {
    const given = keyOf(key);
    return this.#inner.take(given) ?? ((await this.#together.later([given], 1))[0] as bigint);
  }

  /**
   * Returns one number per key, in the order of the keys. A key that occurs twice receives two numbers. This never
   * waits for the store.
   *
   * @throws {PolyflakeError} as {@link Sequences.nextId} does. In that case, any of the keys may skip numbers, which
   * are never issued again.
   */
  nextIds(keys: Iterable<SequenceKey>): BigUint64Array {
    return this.#inner.nextIds(keysOf(keys));
  }

  /**
   * Resolves to one number per key, in the order of the keys, without blocking the event loop. The call may wait for up
   * to `maxWaitMs` for each key whose section has reached its bound.
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Sequences.nextIdAsync} does. In that case, any of the keys
   * may skip numbers, which are never issued again.
   */
  async nextIdsAsync(keys: Iterable<SequenceKey>): Promise<BigUint64Array> {
    const given = keysOf(keys);
    // A key outside 64 bits would make all calls that wait together fail. The core throws its error here instead.
    for (const key of given) if (!fits(key)) this.#inner.nextId(key);
    return this.#together.later(given, given.length);
  }

  /** The name of the sequences. */
  get name(): string {
    return this.#inner.name;
  }

  /**
   * How many keys are in memory, how often bounds were moved in the store, and more, for monitoring.
   *
   * @throws {PolyflakeError} `CLOSED`.
   */
  get stats(): SequencesStats {
    return Object.freeze(this.#inner.stats());
  }

  /**
   * Closes these Sequences. From then on, their calls throw `CLOSED`, including those that are waiting. Closing the
   * last Sequences with that name in this process stores each section's highest number, above which its keys then
   * continue, and gives the lease back. The promise resolves when that is done, or after a few seconds if the store
   * does not answer. An `await using` declaration does the same; `using` does not wait.
   */
  async close(): Promise<void> {
    this.#givenBack ??= new Promise((resolve) => this.#inner.close(resolve));
    await this.#givenBack;
  }

  /** @internal */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `Sequences { name: ${JSON.stringify(this.name)} }`;
  }
}

export interface Sequences {
  /** Calls {@link Sequences.close} at the end of a block with a `using` declaration, without waiting. */
  [Symbol.dispose](): void;
  /** Calls {@link Sequences.close} at the end of a block with an `await using` declaration, and waits. */
  [Symbol.asyncDispose](): Promise<void>;
}

const methods = [
  [dispose, closeOnly],
  [asyncDispose, Sequences.prototype.close],
] as const;
for (const [symbol, value] of methods) {
  Object.defineProperty(Sequences.prototype, symbol, { configurable: true, writable: true, value });
}

function storeTexts({ store }: SequencesOptions): string[] {
  return store === undefined ? [] : [text(store, "store")];
}

function keyOf(key: SequenceKey): SequenceKey {
  switch (typeof key) {
    case "string":
      return wellFormed(key, "a key", "a string");
    case "number":
      if (!Number.isSafeInteger(key)) integer(key, "a key");
      return key;
    case "bigint": {
      // Passing a Number to the core is faster than passing a bigint.
      const number = Number(key);
      return Number.isSafeInteger(number) ? number : key;
    }
    default:
      throw wrongType(key, "a key", "a string, a safe integer Number or a bigint");
  }
}

function keysOf(keys: Iterable<SequenceKey>): SequenceKey[] {
  if (typeof keys !== "object" || keys === null || !(Symbol.iterator in keys)) {
    throw wrongType(keys, "the argument", "an array of keys, or another iterable object of them");
  }
  return Array.from(keys, keyOf);
}

/** Returns whether a key fits into 64 bits, signed or unsigned. */
function fits(key: SequenceKey): boolean {
  return typeof key !== "bigint" || BigInt.asIntN(64, key) === key || BigInt.asUintN(64, key) === key;
}
