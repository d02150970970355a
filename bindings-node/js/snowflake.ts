import type { Generator } from "../../bindings-wasm/js/backend.js";
import { core } from "../../bindings-wasm/js/backend.js";
import type { Integer, Node } from "./convert.js";
import { integer, nodeTexts, path as pathOf, reading, text, wrongType } from "./convert.js";
import type { Decoded } from "./layout.js";
import { Layout } from "./layout.js";
import type { Format } from "./text.js";
import { formatId } from "./text.js";

// Waiting is real: fake timers that a test puts in their place later would let it hang.
const { setTimeout } = globalThis;
const monotonicMs = performance.now.bind(performance);
/** What a pause takes at least. */
const SHORTEST_PAUSE_MS = 0.1;

/** What a {@link Snowflake} is made from. */
export interface SnowflakeOptions {
  /** A preset's name, a layout's text, or a {@link Layout}. Default: `"twitter"`. */
  layout?: string | Layout | undefined;
  /**
   * A whole number for all node bits, or an object with one for each node field. Required, unless the layout has
   * no node field. No other process, browser tab or worker may use the same node at the same time; the worker
   * threads of one Node process may.
   */
  node?: Node | undefined;
  /**
   * How many ms the clock may step back and IDs still be issued, 0 to 4294967295. Default: 1000. A step back by
   * more is refused with `CLOCK_MOVED_BACKWARDS` until the clock has caught up.
   */
  maxBackwardMs?: Integer | undefined;
  /** How many ms IDs may run ahead of the clock to serve a burst, 0 to 4294967295. Default: 0. */
  maxAheadMs?: Integer | undefined;
  /**
   * The longest that `nextId` waits, and a batch between two of its runs, in ms, 0 to 4294967295. Default: a
   * tick + 1000.
   */
  maxWaitMs?: Integer | undefined;
  /**
   * The first sequence number of a fresh tick: `"spread"` (the default; `id % n` shards evenly) or `"zero"`.
   */
  sequenceStart?: "spread" | "zero" | undefined;
  /**
   * `"system"` (the wall clock, the default), `"steady"` (the wall clock without its steps back), or a function
   * that returns Unix ms, such as `() => Date.now()`, which follows fake timers. A Snowflake on a function is on
   * its own: it shares no cursor.
   */
  clock?: "system" | "steady" | (() => number | bigint) | undefined;
  /**
   * The path of a file through which all processes of this host share the node: `cluster` and PM2 workers, cron jobs,
   * restarts. It is made where there is none: that takes a second, in which the thread is blocked, and a clock of the
   * caller's must move on by more than that before there are IDs. In Node's native build alone.
   */
  state?: string | undefined;
}

/** What an operator may want to graph, from {@link Snowflake.stats}: counted since the cursor was made. */
export interface Stats {
  /** How often a call found no free slot and waited or gave up. */
  readonly waits: number;
  /** How many steps back of the clock were seen, tolerated or refused. */
  readonly rollbacks: number;
  /** By how many ms the last tick taken lies ahead of the clock; 0 where it does not. */
  readonly leadMs: number;
  /** The start of the last ID's tick, in Unix ms; `null` before the first ID. */
  readonly lastIssuedMs: bigint | null;
}

/**
 * A generator of unique, time-ordered 64-bit IDs, and an iterator of them that never ends.
 *
 * JSON has no bigint, and a Number loses digits past 2^53: send IDs as strings ({@link Snowflake.nextIdString}),
 * or use the layout `js-safe`, whose IDs fit a Number ({@link Snowflake.nextIdNumber}).
 *
 * On a built-in clock, the Snowflakes of a process share one cursor, so that none repeats another's IDs, if they have the
 * same epoch and tick, the same places and widths of timestamp and sequence, and the same node bits: those of its worker
 * threads too, in the native build. Layouts that split the bits differently are separate systems, whose IDs may be equal.
 * One with a clock of the caller's has a cursor of its own.
 *
 * @throws {PolyflakeError} `INVALID_LAYOUT`, `UNKNOWN_LAYOUT`, `INVALID_NODE` or `INVALID_OPTION` (also where
 * `maxAheadMs` or `maxBackwardMs` differ from those this process already uses for the same layout and node).
 *
 * @example
 * ```js
 * import { Snowflake } from "polyflake";
 *
 * const ids = new Snowflake({ node: { datacenter: 1, worker: 7 } });
 * const id = ids.nextId(); // a bigint
 * console.log(ids.decode(id).fields.worker); // 7
 * ```
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: what disposes of it is defined below the class.
export class Snowflake implements IterableIterator<bigint, never, undefined> {
  readonly #generator: Generator;
  readonly #nextId: () => bigint;
  #layout: Layout | undefined;

  constructor(options: SnowflakeOptions) {
    this.#generator = generator(options);
    this.#nextId = this.#generator.nextId;
  }

  /**
   * The next ID. Waits where the tick's sequence is used up, at most `maxWaitMs`, blocking the thread
   * ({@link Snowflake.nextIdAsync} does not).
   *
   * @throws {PolyflakeError} `SEQUENCE_EXHAUSTED` or `CLOCK_MOVED_BACKWARDS` where `maxWaitMs` was not enough (a
   * step back past `maxBackwardMs` does not wait), `TIME_OUT_OF_RANGE`, `CLOCK_FAILED`, or `FORKED`.
   */
  nextId(): bigint {
    return this.#nextId();
  }

  /**
   * The next ID, or at once the error of {@link Snowflake.nextId} where there is none yet.
   *
   * @throws {PolyflakeError} as {@link Snowflake.nextId} does.
   */
  tryNextId(): bigint {
    return this.#generator.tryNextId();
  }

  /**
   * The next ID; where it must wait, it leaves the event loop free.
   *
   * @throws {PolyflakeError} (it rejects) as {@link Snowflake.nextId} does.
   */
  async nextIdAsync(): Promise<bigint> {
    const ids = new BigUint64Array(1);
    await this.#fillAsync(ids);
    return ids[0] as bigint;
  }

  /**
   * The next ID as text; `format` is `decimal` by default.
   *
   * @throws {PolyflakeError} as {@link Snowflake.nextId} does, or `INVALID_OPTION` for another format.
   */
  nextIdString(format?: Format): string {
    return formatId(this.#nextId(), format);
  }

  /**
   * The next ID as a Number, for layouts of at most 53 bits (`js-safe`).
   *
   * @throws {RangeError} where the layout is wider.
   * @throws {PolyflakeError} as {@link Snowflake.nextId} does.
   */
  nextIdNumber(): number {
    const { totalBits } = this.layout;
    if (!Number.isSafeInteger(2 ** totalBits - 1)) {
      throw new RangeError(
        `the layout has ${totalBits} bits, and a Number holds 53: use nextId or nextIdString, or the layout js-safe`,
      );
    }
    return Number(this.#nextId());
  }

  /**
   * The next `n` IDs, 1 to 16777216 of them. An error part-way loses IDs and never repeats one.
   *
   * @throws {PolyflakeError} as {@link Snowflake.nextId} does, or `INVALID_OPTION` for another `n`.
   */
  nextIds(n: Integer): BigUint64Array {
    return this.#generator.nextIds(batchSize(n));
  }

  /**
   * The next `n` IDs, 1 to 16777216 of them, made and waited for off the event loop: on a thread of libuv's pool
   * in Node (whose end the process waits for), between timers elsewhere and with a clock of the caller's.
   *
   * @throws {PolyflakeError} (it rejects) as {@link Snowflake.nextIds} does.
   */
  async nextIdsAsync(n: Integer): Promise<BigUint64Array> {
    const size = batchSize(n);
    if (this.#generator.nextIdsOnThread) {
      return this.#generator.nextIdsOnThread(size);
    }
    const ids = new BigUint64Array(size);
    await this.#fillAsync(ids);
    return ids;
  }

  /**
   * Fills an array with IDs. An error part-way loses IDs and never repeats one.
   *
   * @throws {PolyflakeError} as {@link Snowflake.nextId} does.
   */
  fill(ids: BigUint64Array): void {
    // Not `instanceof`: it does not know the arrays of another realm, such as Jest's.
    if (!ArrayBuffer.isView(ids) || ids[Symbol.toStringTag] !== "BigUint64Array") {
      throw wrongType(ids, "what fill takes", "a BigUint64Array");
    }
    this.#generator.fill(ids);
  }

  /**
   * Takes an ID apart by this Snowflake's layout. `id`: a bigint, a decimal string, or a Number that is a safe
   * integer.
   *
   * @throws {PolyflakeError} `INVALID_ID`.
   */
  decode(id: Integer): Decoded {
    return this.layout.decode(id);
  }

  /** The layout. */
  get layout(): Layout {
    this.#layout ??= new Layout(this.#generator.layout);
    return this.#layout;
  }

  /** All node fields joined, from the highest to the lowest. */
  get node(): number {
    return this.#generator.node;
  }

  /**
   * Waits, lead and rollbacks, for graphs. Reads the clock once.
   *
   * @throws {PolyflakeError} `CLOCK_FAILED` or `FORKED`.
   */
  get stats(): Stats {
    const { waits, rollbacks, leadMs, lastIssuedMs } = this.#generator.stats();
    return Object.freeze({ waits, rollbacks, leadMs, lastIssuedMs: lastIssuedMs ?? null });
  }

  /**
   * Ends this Snowflake: from here on it refuses with `CLOSED`. Others on the same node or state file go on. A `using`
   * declaration closes it at the end of its block.
   */
  close(): void {
    this.#generator.close();
  }

  /** An iterator's step: the next ID, as {@link Snowflake.nextId} gives it; never done. */
  next(): IteratorYieldResult<bigint> {
    return { value: this.#nextId(), done: false };
  }

  [Symbol.iterator](): this {
    return this;
  }

  /** @internal */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `Snowflake { layout: '${this.layout}', node: ${this.node} }`;
  }

  async #fillAsync(ids: BigUint64Array): Promise<void> {
    let from = 0;
    let since: number | undefined;
    let pauses = 0;
    for (;;) {
      // A clock that stands still must not let the wait go on for ever. Some runtimes' timers are early.
      const waitedMs =
        since === undefined ? undefined : Math.max(monotonicMs() - since, pauses * SHORTEST_PAUSE_MS);
      const [filled, pauseMs, work] = this.#generator.fillSome(ids, from, waitedMs);
      if (filled === ids.length) return;
      if (filled > from || since === undefined) {
        since = monotonicMs();
        pauses = 0;
      }
      from = filled;
      await (work ?? new Promise((resume) => setTimeout(resume, pauseMs)));
      pauses += 1;
    }
  }
}

// Programs ask for batches of one size over and over.
let lastChecked: Integer | undefined;
let lastSize = 0;

declare global {
  // For users whose `lib` is older than `esnext.disposable`, as @types/node declares it.
  interface SymbolConstructor {
    readonly dispose: unique symbol;
  }
}

export interface Snowflake {
  /** {@link Snowflake.close}, at the end of a `using` declaration's block. */
  [Symbol.dispose](): void;
}

// Runtimes before `using` have no such symbol; TypeScript's and others' helpers then look for this one.
const dispose: typeof Symbol.dispose =
  Symbol.dispose ?? (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);

Object.defineProperty(Snowflake.prototype, dispose, {
  configurable: true,
  writable: true,
  value: Snowflake.prototype.close,
});

/**
 * Sets a state file's cursor back to the system clock, where it stands ahead of it: the way out when a clock that was
 * wrong has moved a cursor far into the future. Stop the processes that use the file first. The risk: IDs that were
 * issued ahead of the clock are issued again when the clock gets there. In Node's native build alone.
 *
 * @throws {PolyflakeError} `STATE_FILE`, also where there is none.
 */
export function resetState(path: string): void {
  core().resetState(pathOf(path, "path"));
}

function batchSize(n: Integer): number {
  if (n !== lastChecked) {
    lastSize = core().batchSize(integer(n, "n"));
    lastChecked = n;
  }
  return lastSize;
}

function generator(options: SnowflakeOptions): Generator {
  if (typeof options !== "object" || options === null) {
    throw wrongType(options, "Snowflake's options", "an object, such as { node: 7 }");
  }
  const { layout, node, maxBackwardMs, maxAheadMs, maxWaitMs, sequenceStart, clock, state, ...unknown } =
    options;
  // The core refuses them, whatever their values are.
  const texts = Object.keys(unknown).flatMap((name) => [name, ""]);
  if (layout !== undefined) {
    const name = layout instanceof Layout ? String(layout) : text(layout, "layout", "a string or a Layout");
    texts.push("layout", name);
  }
  for (const [name, value] of Object.entries({ maxBackwardMs, maxAheadMs, maxWaitMs })) {
    if (value !== undefined) texts.push(name, integer(value, name));
  }
  if (sequenceStart !== undefined) {
    texts.push("sequenceStart", text(sequenceStart, "sequenceStart", '"spread" or "zero"'));
  }
  if (clock !== undefined && typeof clock !== "function") {
    texts.push("clock", text(clock, "clock", '"system", "steady" or a function'));
  }
  if (state !== undefined) texts.push("state", pathOf(state, "state"));
  const nodes = node === undefined ? undefined : nodeTexts(node);
  return core().snowflake(texts, nodes, typeof clock === "function" ? reading(clock) : undefined);
}
