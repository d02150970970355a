import type { BackendSnowflake, LeaseInfo, Reading, Stats } from "../../bindings-wasm/js/backend.js";
import type { Integer, Node } from "./convert.js";
import { idArray, integer, nodeTexts, path as pathOf, reading, text, wrongType } from "./convert.js";
import { batchSize, core, sharesCursor } from "./core.js";
import { asyncDispose, dispose } from "./dispose.js";
import { PolyflakeError } from "./errors.js";
import type { IdGenerator } from "./generator.js";
import { type Decoded, type DecodedAll, Layout } from "./layout.js";
import type { Format } from "./text.js";
import { formatId, formatNumber } from "./text.js";
import { MOST_AT_ONCE, ThreadBatches, Waiting } from "./waiting.js";

/** The options of a {@link Snowflake}. */
export interface SnowflakeOptions {
  /** A preset's name, a layout string, or a {@link Layout}. Default: `"twitter"`. */
  layout?: string | Layout | undefined;
  /**
   * A whole number for all node bits, or an object with a number for each node field. Required unless the layout has no
   * node field or `lease` is set. No other process, browser tab or Web Worker may use the same node at the same time.
   * The worker threads of one Node process may. In Node, `"ordinal"` takes the number at the end of the host name, and
   * `"ip"` the low bits of the host's private address.
   */
  node?: Node | undefined;
  /**
   * How far the clock may step back, in ms, without stopping IDs from being issued: 0 to 4294967295. Default: 1000.
   * After a larger step back, calls throw `CLOCK_MOVED_BACKWARDS` until the clock has caught up.
   */
  maxBackwardMs?: Integer | undefined;
  /** How far IDs may run ahead of the clock to serve a burst, in ms: 0 to 4294967295. Default: 0. */
  maxAheadMs?: Integer | undefined;
  /**
   * The longest time that `nextId` waits, in ms: 0 to 4294967295. A batch may wait that long each time it makes no
   * progress. Default: a tick plus 1000 ms.
   */
  maxWaitMs?: Integer | undefined;
  /**
   * The first sequence number of a new tick: `"spread"` (the default), so that `id % n` shards evenly, or `"zero"`.
   */
  sequenceStart?: "spread" | "zero" | undefined;
  /**
   * `"system"` (the wall clock, the default), `"steady"` (the wall clock without its steps back), or a function that
   * returns Unix ms, such as `() => Date.now()`, which follows fake timers. A Snowflake with a clock function does not
   * share its cursor with any other Snowflake.
   */
  clock?: "system" | "steady" | (() => number | bigint) | undefined;
  /**
   * The path of a state file, through which all processes on this host share the node: `cluster` and PM2 workers, cron
   * jobs, and restarted programs. A missing file is created, which blocks the thread for a second; a clock function
   * must advance by more than that before any IDs are issued. Only in Node's native build.
   */
  state?: string | undefined;
  /**
   * The address of a store that leases the node, so that no two processes have the same node at the same time:
   * `"redis://host/0"`, `rediss`, `postgres`, `mysql`, `etcd`, `zookeeper`, or `sqlite:///path` for one host. `node` is
   * then optional: if it sets only some of the fields, they narrow the choice, and if it is complete, that node is
   * leased. Only for {@link Snowflake.open} in Node's native build, with a built-in clock and without `state`.
   */
  lease?: string | undefined;
}

/** Converts each option to text. The core checks the text. */
const TEXT_OF: {
  [Name in Exclude<keyof SnowflakeOptions, "node">]-?: (value: never, name: string) => string;
} = {
  layout: (value: string | Layout, name) =>
    value instanceof Layout ? String(value) : text(value, name, "a string or a Layout"),
  maxBackwardMs: integer,
  maxAheadMs: integer,
  maxWaitMs: integer,
  sequenceStart: (value, name) => text(value, name, '"spread" or "zero"'),
  clock: (value, name) => text(value, name, '"system", "steady" or a function'),
  state: pathOf,
  lease: (value, name) => text(value, name, "a string, such as redis://host/0"),
};

/** The argument that {@link Snowflake.open} passes to the constructor. */
class Opened {
  readonly inner: BackendSnowflake;

  constructor(inner: BackendSnowflake) {
    this.inner = inner;
  }
}

/** How many ms' worth of IDs a batch may fill before it yields the thread to the next batch. */
const SHARE_MS = 50;

/** Implements `Symbol.asyncDispose`, a symbol that some runtimes lack. */
let closeAndWait: (this: Snowflake) => Promise<void>;

/**
 * A generator of unique, time-ordered 64-bit IDs, and an endless iterator over them.
 *
 * JSON has no bigint, and a Number loses digits past 2^53: send IDs as strings ({@link Snowflake.nextIdString}), or use
 * the layout `js-safe`, whose IDs fit a Number ({@link Snowflake.nextIdNumber}).
 *
 * With a built-in clock, the Snowflakes in a process share a cursor, and so never issue the same ID, if their layouts
 * have the same epoch, the same tick, and the same positions and widths of timestamp and sequence, and if their node
 * bits are equal. In the native build, this includes worker threads. Layouts that divide the bits differently are
 * separate systems and may issue equal IDs. A Snowflake with a clock function has its own cursor.
 *
 * @throws {PolyflakeError} `INVALID_LAYOUT`, `UNKNOWN_LAYOUT`, `INVALID_NODE` or `INVALID_OPTION` (also if `maxAheadMs`
 * or `maxBackwardMs` differ from those already used in this process for the same layout and node).
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
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: its Symbol.dispose is defined below the class.
export class Snowflake implements IterableIterator<bigint, never, undefined>, IdGenerator {
  readonly #inner: BackendSnowflake;
  readonly #nextId: () => bigint;
  /** Keeps the clock alive, because the core holds only a weak reference to it. */
  readonly #clock: Reading | undefined;
  readonly #isLeased: boolean = false;
  #waiting: Waiting | undefined;
  #threadBatches: ThreadBatches | undefined;
  #layout: Layout | undefined;
  /** Resolves when the leased node has been given back. */
  #givenBack: Promise<void> | undefined;

  constructor(options: SnowflakeOptions) {
    if (options instanceof Opened) {
      this.#inner = options.inner;
      this.#isLeased = true;
    } else {
      const { texts, node, clock } = converted(options);
      this.#clock = clock;
      this.#inner = core().snowflake(texts, node, this.#clock && weak(this.#clock));
      if (clock === undefined && options.state === undefined) sharesCursor();
    }
    this.#nextId = this.#inner.nextId;
  }

  /**
   * Opens a Snowflake with a node leased from the store that `lease` names. Waits for a free node without blocking the
   * event loop, for at most the address's `wait` (35 s by default). Without `lease`, this does the same as `new`.
   *
   * All Snowflakes in a process with the same address, layout and `node` share one lease, even across worker threads.
   * The lease's events are published on the channel `polyflake:lease` of `node:diagnostics_channel`, each as a {@link
   * LeaseEvent}.
   *
   * @throws {PolyflakeError} (the promise rejects) `LEASE_UNAVAILABLE` if no node is free or the store cannot be
   * reached, `INVALID_OPTION` if the address is invalid or is combined with `state` or a clock function, or any error
   * that `new` throws.
   *
   * @example
   * ```js
   * import { Snowflake } from "polyflake";
   *
   * await using ids = await Snowflake.open({ lease: "redis://localhost/0" });
   * console.log(ids.nextId());
   * ```
   */
  static async open(options: SnowflakeOptions): Promise<Snowflake> {
    const { open } = core();
    if (options?.lease === undefined || typeof options.clock === "function" || open === undefined) {
      return withoutLease(options);
    }
    const { texts, node } = converted(options);
    return new Snowflake(new Opened(await open(texts, node)) as never);
  }

  /**
   * Returns the next ID. If the tick's sequence is used up, this blocks the thread for at most `maxWaitMs` ({@link
   * Snowflake.nextIdAsync} does not).
   *
   * @throws {PolyflakeError} `SEQUENCE_EXHAUSTED`, `CLOCK_MOVED_BACKWARDS` or `LEASE_LOST` if `maxWaitMs` was not
   * enough (or at once, after a step back of more than `maxBackwardMs`), `TIME_OUT_OF_RANGE`, `CLOCK_FAILED`, or
   * `FORKED`.
   */
  nextId(): bigint {
    return this.#nextId();
  }

  /**
   * Returns the next ID without waiting. If none is available yet, throws the same error as {@link Snowflake.nextId},
   * but at once.
   *
   * @throws {PolyflakeError} as {@link Snowflake.nextId} does.
   */
  tryNextId(): bigint {
    return this.#inner.tryNextId();
  }

  /**
   * Resolves to the next ID, without blocking the event loop. Waiting calls receive IDs in the order in which they were
   * made. A call fails once `maxWaitMs` has passed without any of them receiving an ID.
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Snowflake.nextId} does.
   */
  nextIdAsync(): Promise<bigint> {
    return this.#calls().nextId();
  }

  /**
   * Returns the next ID as text; `format` is `decimal` by default.
   *
   * @throws {PolyflakeError} as {@link Snowflake.nextId} does, or `INVALID_OPTION` for an unknown format.
   */
  nextIdString(format: Format = "decimal"): string {
    if (format === "decimal") return String(this.#nextId());
    const number = formatNumber(format);
    // The core rejects the format, but only after it has issued an ID.
    return number === undefined ? formatId(this.#nextId(), format) : this.#inner.nextIdText(number);
  }

  /**
   * Returns the next ID as a Number, for layouts of at most 53 bits (`js-safe`).
   *
   * @throws {RangeError} if the layout is wider.
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
   * Returns the next `n` IDs, 1 to 16777216. If the call fails midway, the IDs taken so far are lost, and are never
   * issued again.
   *
   * @throws {PolyflakeError} as {@link Snowflake.nextId} does, or `INVALID_OPTION` for any other `n`.
   */
  nextIds(n: Integer): BigUint64Array {
    return this.#inner.nextIds(batchSize(n));
  }

  /**
   * Resolves to the next `n` IDs, 1 to 16777216, without blocking the event loop. In Node, batches of more than 4096
   * are filled on a thread from libuv's pool; a Snowflake's batches take turns on one such thread. Smaller batches, and
   * all batches elsewhere or with a clock function, are filled between timers, in the same queue as {@link
   * Snowflake.nextIdAsync}. The process stays alive until the batch is done.
   *
   * @throws {PolyflakeError} (the promise rejects) as {@link Snowflake.nextIds} does.
   */
  async nextIdsAsync(n: Integer): Promise<BigUint64Array> {
    const size = batchSize(n);
    const ids = new BigUint64Array(size);
    const { fillOnThread } = this.#inner;
    if (fillOnThread === undefined || (size <= MOST_AT_ONCE && !this.#isLeased))
      return this.#calls().fill(ids);
    this.#threadBatches ??= new ThreadBatches(fillOnThread, this.#share());
    return this.#threadBatches.fill(ids);
  }

  /**
   * Fills an array with IDs. If the call fails midway, the IDs taken so far are lost, and are never issued again.
   *
   * @throws {PolyflakeError} as {@link Snowflake.nextId} does.
   */
  fill(ids: BigUint64Array): void {
    this.#inner.fill(idArray(ids, "the argument of fill"));
  }

  /**
   * Decodes an ID (a bigint, a decimal string, or a Number that is a safe integer) with this Snowflake's layout.
   *
   * @throws {PolyflakeError} `INVALID_ID`.
   */
  decode(id: Integer): Decoded {
    return this.layout.decode(id);
  }

  /**
   * Decodes many IDs at once with this Snowflake's layout, as {@link Layout.decodeAll} does.
   *
   * @throws {PolyflakeError} `INVALID_ID`.
   */
  decodeAll(ids: BigUint64Array): DecodedAll {
    return this.layout.decodeAll(ids);
  }

  /** The layout. */
  get layout(): Layout {
    this.#layout ??= new Layout(this.#inner.layout);
    return this.#layout;
  }

  /**
   * All node bits as one number. If the lease is lost, the node may change; this is then the node of the last ID or of
   * the next one.
   */
  get node(): number {
    return this.#inner.node();
  }

  /**
   * The lease, if this Snowflake has one. Reads the clock once.
   *
   * @throws {PolyflakeError} `CLOCK_FAILED` or `FORKED`.
   */
  get lease(): LeaseInfo | undefined {
    const lease = this.#inner.lease?.();
    return lease ? Object.freeze({ ...lease, bound: new Date(Number(lease.boundMs)) }) : undefined;
  }

  /**
   * For monitoring: waits, rollbacks, how far IDs are ahead of the clock, and more. Reads the clock once.
   *
   * @throws {PolyflakeError} `CLOCK_FAILED` or `FORKED`.
   */
  get stats(): Stats {
    return Object.freeze(this.#inner.stats());
  }

  /**
   * Closes this Snowflake. From then on, its calls throw `CLOSED`. Other Snowflakes on the same node or state file are
   * not affected. A `using` declaration closes it at the end of its block.
   *
   * Closing the last Snowflake on a lease gives the node back in the background, and an `await using` declaration waits
   * for that. If the process exits first, or the store does not answer, the node becomes free when its lease expires.
   */
  close(): void {
    this.#inner.close();
    this.#waiting?.lookAgain();
  }

  /**
   * Returns the next ID, from {@link Snowflake.nextId}, as an iterator result. The iterator never ends, but may throw.
   */
  next(): IteratorYieldResult<bigint> {
    return { value: this.#nextId(), done: false };
  }

  /** Returns the Snowflake itself, so that `for` loops take IDs from {@link Snowflake.next}. */
  [Symbol.iterator](): this {
    return this;
  }

  /** @internal */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `Snowflake { layout: '${this.layout}', node: ${this.node} }`;
  }

  static {
    closeAndWait = async function (this: Snowflake): Promise<void> {
      this.close();
      const { whenGivenBack } = this.#inner;
      this.#givenBack ??= new Promise((resolve) => whenGivenBack?.(resolve) || resolve());
      await this.#givenBack;
    };
  }

  #calls(): Waiting {
    // In workerd, a timer is dropped with the request that started it, so calls from other requests must not wait for
    // it.
    if (core().hasRequests) return new Waiting(this.#inner, this.#clock);
    this.#waiting ??= new Waiting(this.#inner, this.#clock);
    return this.#waiting;
  }

  #share(): number {
    // All IDs in a batch must have the same node, but the lease may change the node between two shares.
    if (this.#isLeased) return Number.POSITIVE_INFINITY;
    const { idsPerTick, tickMs } = this.layout;
    return Math.max(idsPerTick * Math.ceil(SHARE_MS / Number(tickMs)), MOST_AT_ONCE);
  }
}

declare global {
  // For users whose `lib` is older than `esnext.disposable`. The declarations are those of @types/node.
  interface SymbolConstructor {
    readonly dispose: unique symbol;
    readonly asyncDispose: unique symbol;
  }
}

export interface Snowflake {
  /** Calls {@link Snowflake.close} at the end of a block with a `using` declaration. */
  [Symbol.dispose](): void;
  /**
   * Calls {@link Snowflake.close} at the end of a block with an `await using` declaration. Waits until a leased node is
   * given back, or for a few seconds if the store does not answer.
   */
  [Symbol.asyncDispose](): Promise<void>;
}

const methods = [
  [dispose, Snowflake.prototype.close],
  [asyncDispose, closeAndWait],
] as const;
for (const [symbol, value] of methods) {
  Object.defineProperty(Snowflake.prototype, symbol, { configurable: true, writable: true, value });
}

/**
 * Sets a state file's cursor back to the system clock if the cursor is ahead of the clock. Use this after a wrong clock
 * has moved a cursor far into the future. Stop the processes that use the file first. IDs that were issued ahead of the
 * clock are issued again once the clock catches up. Only in Node's native build.
 *
 * @throws {PolyflakeError} `STATE_FILE` if the file does not exist or cannot be used.
 */
export function resetState(path: string): void {
  core().resetState(pathOf(path, "path"));
}

function converted(options: SnowflakeOptions) {
  if (typeof options !== "object" || options === null) {
    throw wrongType(options, "Snowflake's options", "an object, such as { node: 7 }");
  }
  const { node, clock } = options;
  // The core rejects unknown names, whatever their values.
  const unknown = Object.keys(options).filter((name) => name !== "node" && !Object.hasOwn(TEXT_OF, name));
  const texts = unknown.flatMap((name) => [name, ""]);
  for (const [name, textOf] of Object.entries(TEXT_OF)) {
    const value = name === "clock" ? clock : options[name as keyof SnowflakeOptions];
    if (value !== undefined && !(name === "clock" && typeof value === "function"))
      texts.push(name, textOf(value as never, name));
  }
  return {
    texts,
    node: node === undefined ? undefined : nodeTexts(node),
    clock: typeof clock === "function" ? reading(clock) : undefined,
  };
}

/**
 * Creates a Snowflake as `new` does. If `lease` is present but undefined, throws an error about the lease, because one
 * about the node would be misleading.
 */
function withoutLease(options: SnowflakeOptions): Snowflake {
  try {
    return new Snowflake(options);
  } catch (error) {
    const { node, lease } = options ?? {};
    const isMissing = error instanceof PolyflakeError && error.code === "INVALID_NODE" && node === undefined;
    if (!isMissing || lease !== undefined || !("lease" in options)) throw error;
    throw new TypeError("lease is undefined; it takes the address of a store, such as redis://host/0");
  }
}

/**
 * Wraps a clock in a weak reference for the core to hold. A strong reference would keep a clock that refers to its
 * Snowflake alive forever, and the Snowflake with it.
 */
function weak(clock: Reading): Reading {
  const reference = new WeakRef(clock);
  return () => reference.deref()?.();
}
