// Made from js/ by build.sh.

/** A field of a layout. */
interface Field {
    /** `timestamp`, `sequence`, or the name of a node field. */
    readonly name: string;
    /** The field's width. */
    readonly bits: number;
    /** The number of bits below the field. */
    readonly shift: number;
    /** The field's bits, at their position in the ID. */
    readonly mask: bigint;
}
/** Counters for monitoring, from {@link Snowflake.stats}. They start when the cursor is created. */
interface Stats {
    /** How often a call found no free slot, and waited or gave up. */
    readonly waits: number;
    /** How many times the clock was seen to step back, tolerated or not. */
    readonly rollbacks: number;
    /** How many ms the last tick taken is ahead of the clock; 0 if it is not. */
    readonly leadMs: number;
    /** The start of the last ID's tick, in Unix ms; `null` before the first ID. */
    readonly lastIssuedMs: bigint | null;
}

/** A whole number: a bigint, a Number that is a safe integer, or a string of decimal digits. */
type Integer = bigint | number | string;
/** An instant: a Date, or Unix ms. */
type Instant = Date | bigint | number;
/** A node: a whole number for all node bits, or one for each node field. */
type Node = Integer | Readonly<Record<string, Integer>>;

/** What a {@link PolyflakeError} is about: permanent names, the same in every language. */
type PolyflakeErrorCode = "INVALID_LAYOUT" | "UNKNOWN_LAYOUT" | "INVALID_NODE" | "INVALID_OPTION" | "INVALID_ID" | "TIME_OUT_OF_RANGE" | "CLOCK_MOVED_BACKWARDS" | "SEQUENCE_EXHAUSTED" | "FORKED" | "CLOCK_FAILED" | "STATE_FILE" | "LEASE_UNAVAILABLE" | "LEASE_LOST" | "CLOSED" | "INTERNAL";
/**
 * Thrown by every call that fails. `code` says why, and the message names the value and what would fit.
 *
 * A value of the wrong *type* (a boolean, an object, a Number that is not a safe integer) is a `TypeError` instead.
 *
 * @example
 * ```js
 * import { PolyflakeError, Snowflake } from "polyflake";
 *
 * try {
 *   new Snowflake({ node: 1024 });
 * } catch (error) {
 *   if (!(error instanceof PolyflakeError)) throw error;
 *   console.log(error.code); // INVALID_NODE
 *   console.log(error.number); // 3
 * }
 * ```
 */
declare class PolyflakeError extends Error {
    readonly name: string;
    /** The error's permanent name. */
    readonly code: PolyflakeErrorCode;
    /** The error's permanent number, the same in every language. */
    readonly number: number;
    /** With `CLOCK_MOVED_BACKWARDS`: how many ms the clock is behind the last ID issued. */
    readonly behindMs?: number;
    /** With `CLOCK_MOVED_BACKWARDS` and `SEQUENCE_EXHAUSTED`: in how many ms of the clock the next ID can come. */
    readonly retryAfterMs?: number;
}

/** A layout as an object. */
interface LayoutFields {
    /** Each field's name and width in bits, the highest field first: an object, or pairs. */
    fields: Iterable<readonly [name: string, bits: Integer]> | Readonly<Record<string, Integer>>;
    /** The instant of tick 0, in Unix ms, 0 to 2^63 - 1. */
    epochMs: Integer;
    /** The length of a tick, in whole ms. Default: 1. */
    tickMs?: Integer | undefined;
}
/**
 * What the bits of an ID mean: fields from the highest bit down, the epoch, and the tick.
 *
 * Takes a preset's name, such as `"twitter"` (see {@link Layout.presets}); a text, such as
 * `"timestamp:41|worker:10|sequence:12@1288834974657/1ms"` (the epoch in Unix ms, the tick as Nms or Ns); or an
 * object, such as `{ fields: { timestamp: 41, worker: 10, sequence: 12 }, epochMs: 1288834974657 }`. `String(layout)`
 * and `JSON.stringify` give the text.
 *
 * @throws {PolyflakeError} `INVALID_LAYOUT` or `UNKNOWN_LAYOUT`.
 *
 * @example
 * ```js
 * import { Layout } from "polyflake";
 *
 * const decoded = new Layout("discord").decode("175928847299117063");
 * console.log(decoded.fields.worker); // 1
 * console.log(decoded.time.toISOString()); // 2016-04-30T11:18:25.796Z
 * ```
 */
declare class Layout {
    #private;
    /** The names of the presets. The default is `twitter`. */
    static get presets(): readonly string[];
    constructor(layout: string | Layout | LayoutFields);
    /**
     * Decodes an ID: a bigint, a decimal string, or a Number that is a safe integer.
     *
     * @throws {PolyflakeError} `INVALID_ID` if it is not an ID of this layout.
     */
    decode(id: Integer): Decoded;
    /**
     * Composes the ID of an instant (a Date, or Unix ms, rounded down to the tick), a node and a sequence number, for
     * imports and tests. It may equal an ID that was issued. `node`: as in {@link SnowflakeOptions.node}, or `null` if
     * the layout has no node field.
     *
     * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, `INVALID_NODE`, or `INVALID_OPTION` for the sequence.
     */
    compose(time: Instant, node: Node | null, sequence: Integer): bigint;
    /**
     * The lowest ID at or after an instant (a Date, or Unix ms): the lower bound of a time range.
     *
     * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, or `INVALID_LAYOUT` if a node field is above the
     * timestamp.
     */
    minId(time: Instant): bigint;
    /**
     * The highest ID at or before an instant (a Date, or Unix ms): the upper bound of a time range.
     *
     * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, or `INVALID_LAYOUT` if a node field is above the
     * timestamp.
     */
    maxId(time: Instant): bigint;
    /** All fields, the highest first. */
    get fields(): readonly Field[];
    /** The instant of tick 0, in Unix ms. */
    get epochMs(): bigint;
    /** The instant of tick 0; `null` past the year 275760, where Date ends. */
    get epoch(): Date | null;
    /** The length of a tick, in ms. */
    get tickMs(): bigint;
    /** The layout's last instant, in Unix ms. */
    get endsAtMs(): bigint;
    /** The layout's last instant; `null` past the year 275760, where Date ends. */
    get endsAt(): Date | null;
    /** The number of IDs that one node can issue in a tick. */
    get idsPerTick(): number;
    /** The number of nodes. */
    get nodes(): number;
    /** The total width of all fields. */
    get totalBits(): number;
    /** The total width of the node fields. */
    get nodeBits(): number;
    /** The width of the timestamp. */
    get timestampBits(): number;
    /** The number of bits below the timestamp. */
    get timestampShift(): number;
    /** The width of the sequence. */
    get sequenceBits(): number;
    /** The number of bits below the sequence. */
    get sequenceShift(): number;
    /** Whether both have the same fields, epoch and tick. */
    equals(other: Layout): boolean;
    /** The layout's text, which `new Layout` parses. */
    toString(): string;
    /** The layout's text. */
    toJSON(): string;
}
/** A decoded ID, from {@link Layout.decode} or {@link Snowflake.decode}. */
declare class Decoded {
    #private;
    /** The ID. */
    readonly id: bigint;
    /** The start of the ID's tick, in Unix ms. */
    readonly timestampMs: bigint;
    /** The number of ticks since the epoch. */
    readonly ticks: bigint;
    /** All node bits as one number. */
    readonly node: number;
    /** The name and value of each node field, the highest first. */
    readonly fields: Readonly<Record<string, number>>;
    /** The sequence number within the tick. */
    readonly sequence: number;
    /** The start of the ID's tick; `null` past the year 275760, where Date ends. */
    get time(): Date | null;
    /** The layout that decoded it. */
    get layout(): Layout;
    /** Whether both are the same ID, decoded by equal layouts. */
    equals(other: Decoded): boolean;
    /** JSON has no bigint: the ID, and what else may exceed 2^53, become decimal strings. */
    toJSON(): Record<string, unknown>;
}

/**
 * How an ID is written: `decimal`; `hex`; `base32` (Crockford, always 13 digits, sorts as the IDs do); `base36`;
 * `base58` (Bitcoin's alphabet); `base62` (0-9A-Za-z, always 11 digits, sorts as the IDs do).
 */
type Format = "decimal" | "hex" | "base32" | "base36" | "base58" | "base62";
/**
 * Writes an ID as text; `format` is `decimal` by default.
 *
 * @throws {PolyflakeError} `INVALID_ID`, or `INVALID_OPTION` for an unknown format.
 *
 * @example
 * ```js
 * import { formatId } from "polyflake";
 *
 * console.log(formatId(1541815603606036480n, "base62")); // 1ptWyK4WgZU
 * ```
 */
declare function formatId(id: Integer, format?: Format): string;
/**
 * Reads an ID from text; `format` is `decimal` by default. `base32` and `hex` accept upper and lower case, and
 * `base32` also accepts I and L as 1 and O as 0.
 *
 * @throws {PolyflakeError} `INVALID_ID` with the position of the first wrong character, or `INVALID_OPTION` for an
 * unknown format.
 *
 * @example
 * ```js
 * import { parseId } from "polyflake";
 *
 * console.log(parseId("1ASD13XH1F800", "base32")); // 1541815603606036480n
 * ```
 */
declare function parseId(text_: string, format?: Format): bigint;

/** The options of a {@link Snowflake}. */
interface SnowflakeOptions {
    /** A preset's name, a layout's text, or a {@link Layout}. Default: `"twitter"`. */
    layout?: string | Layout | undefined;
    /**
     * A whole number for all node bits, or an object with one for each node field. Required, unless the layout has no
     * node field. No other process, browser tab or Web Worker may use the same node at the same time. The worker threads
     * of one Node process may.
     */
    node?: Node | undefined;
    /**
     * The largest step back of the clock, in ms, that does not stop IDs from being issued: 0 to 4294967295. Default:
     * 1000. After a larger one, calls throw `CLOCK_MOVED_BACKWARDS` until the clock has caught up.
     */
    maxBackwardMs?: Integer | undefined;
    /** How far IDs may run ahead of the clock to serve a burst, in ms: 0 to 4294967295. Default: 0. */
    maxAheadMs?: Integer | undefined;
    /**
     * The longest that `nextId` waits, in ms: 0 to 4294967295. A batch may wait that long each time it makes no progress.
     * Default: a tick + 1000.
     */
    maxWaitMs?: Integer | undefined;
    /**
     * The first sequence number of a new tick: `"spread"` (the default), so that `id % n` shards evenly, or `"zero"`.
     */
    sequenceStart?: "spread" | "zero" | undefined;
    /**
     * `"system"` (the wall clock, the default), `"steady"` (the wall clock without its steps back), or a function that
     * returns Unix ms, such as `() => Date.now()`, which follows fake timers. A Snowflake with a function has its own
     * cursor, which it shares with no other.
     */
    clock?: "system" | "steady" | (() => number | bigint) | undefined;
    /**
     * The path of a state file, through which all processes of this host share the node: `cluster` and PM2 workers, cron
     * jobs, restarts. It is created if missing, which blocks the thread for a second; a clock of your own must advance by
     * more than that before there are IDs. Only in Node's native build.
     */
    state?: string | undefined;
}
declare global {
    interface SymbolConstructor {
        readonly dispose: unique symbol;
    }
}
/**
 * A generator of unique, time-ordered 64-bit IDs, and an endless iterator of them.
 *
 * JSON has no bigint, and a Number loses digits past 2^53: send IDs as strings ({@link Snowflake.nextIdString}), or use
 * the layout `js-safe`, whose IDs fit a Number ({@link Snowflake.nextIdNumber}).
 *
 * On a built-in clock, the Snowflakes of a process share a cursor, and so never issue the same ID, if their layouts have
 * the same epoch, tick, and positions and widths of timestamp and sequence, and their node bits are equal. In the native
 * build this includes worker threads. Layouts that divide the bits differently are separate systems and may issue equal
 * IDs. A Snowflake with a clock function has its own cursor.
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
declare class Snowflake implements IterableIterator<bigint, never, undefined> {
    #private;
    constructor(options: SnowflakeOptions);
    /**
     * The next ID. If the tick's sequence is used up, waits for at most `maxWaitMs` and blocks the thread
     * ({@link Snowflake.nextIdAsync} does not).
     *
     * @throws {PolyflakeError} `SEQUENCE_EXHAUSTED` or `CLOCK_MOVED_BACKWARDS` if `maxWaitMs` was not enough (a step back
     * of more than `maxBackwardMs` is not waited for), `TIME_OUT_OF_RANGE`, `CLOCK_FAILED`, or `FORKED`.
     */
    nextId(): bigint;
    /**
     * The next ID, or at once the error of {@link Snowflake.nextId} if there is none yet.
     *
     * @throws {PolyflakeError} as {@link Snowflake.nextId} does.
     */
    tryNextId(): bigint;
    /**
     * The next ID. Waits without blocking the event loop.
     *
     * @throws {PolyflakeError} (the promise rejects) as {@link Snowflake.nextId} does.
     */
    nextIdAsync(): Promise<bigint>;
    /**
     * The next ID as text; `format` is `decimal` by default.
     *
     * @throws {PolyflakeError} as {@link Snowflake.nextId} does, or `INVALID_OPTION` for an unknown format.
     */
    nextIdString(format?: Format): string;
    /**
     * The next ID as a Number, for layouts of at most 53 bits (`js-safe`).
     *
     * @throws {RangeError} if the layout is wider.
     * @throws {PolyflakeError} as {@link Snowflake.nextId} does.
     */
    nextIdNumber(): number;
    /**
     * The next `n` IDs, 1 to 16777216. An error part-way loses the IDs taken so far; they are never issued again.
     *
     * @throws {PolyflakeError} as {@link Snowflake.nextId} does, or `INVALID_OPTION` for any other `n`.
     */
    nextIds(n: Integer): BigUint64Array;
    /**
     * The next `n` IDs, 1 to 16777216, without blocking the event loop: on a thread of libuv's pool in Node (the process
     * stays alive until it ends), between timers elsewhere and with a clock function.
     *
     * @throws {PolyflakeError} (the promise rejects) as {@link Snowflake.nextIds} does.
     */
    nextIdsAsync(n: Integer): Promise<BigUint64Array>;
    /**
     * Fills an array with IDs. An error part-way loses the IDs taken so far; they are never issued again.
     *
     * @throws {PolyflakeError} as {@link Snowflake.nextId} does.
     */
    fill(ids: BigUint64Array): void;
    /**
     * Decodes an ID by this Snowflake's layout: a bigint, a decimal string, or a Number that is a safe integer.
     *
     * @throws {PolyflakeError} `INVALID_ID`.
     */
    decode(id: Integer): Decoded;
    /** The layout. */
    get layout(): Layout;
    /** All node bits as one number. */
    get node(): number;
    /**
     * Waits, rollbacks and the lead, for monitoring. Reads the clock once.
     *
     * @throws {PolyflakeError} `CLOCK_FAILED` or `FORKED`.
     */
    get stats(): Stats;
    /**
     * Closes this Snowflake: from now on its calls throw `CLOSED`. Others on the same node or state file are not affected.
     * A `using` declaration closes it at the end of its block.
     */
    close(): void;
    /** The iterator's next step: an ID as from {@link Snowflake.nextId}. It never ends. */
    next(): IteratorYieldResult<bigint>;
    [Symbol.iterator](): this;
}
interface Snowflake {
    /** {@link Snowflake.close}, at the end of the block of a `using` declaration. */
    [Symbol.dispose](): void;
}
/**
 * Sets a state file's cursor back to the system clock if it is ahead of it: the remedy after a wrong clock has moved a
 * cursor far into the future. Stop the processes that use the file first. IDs that were issued ahead of the clock are
 * issued again when the clock gets there. Only in Node's native build.
 *
 * @throws {PolyflakeError} `STATE_FILE`, also if there is no such file.
 */
declare function resetState(path: string): void;

export { Decoded, Layout, PolyflakeError, Snowflake, formatId, parseId, resetState };
export type { Field, Format, Instant, Integer, LayoutFields, Node, PolyflakeErrorCode, SnowflakeOptions, Stats };
