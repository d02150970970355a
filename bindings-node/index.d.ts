// Made from js/ by ./build.

/** A whole number: a bigint, a Number that is a safe integer, or a text of decimal digits. */
type Integer = bigint | number | string;
/** An instant: a Date, or Unix ms. */
type Instant = Date | bigint | number;
/** A node: a whole number for all node bits, or one for each node field. */
type Node = Integer | Readonly<Record<string, Integer>>;

/** What a {@link PolyflakeError} is about: permanent names, the same in every language. */
type PolyflakeErrorCode = "INVALID_LAYOUT" | "UNKNOWN_LAYOUT" | "INVALID_NODE" | "INVALID_OPTION" | "INVALID_ID" | "TIME_OUT_OF_RANGE" | "CLOCK_MOVED_BACKWARDS" | "SEQUENCE_EXHAUSTED" | "FORKED" | "CLOCK_FAILED" | "STATE_FILE" | "LEASE_UNAVAILABLE" | "LEASE_LOST" | "CLOSED" | "INTERNAL";
/**
 * A refusal. `code` says which; the message names the value and what would fit.
 *
 * A value of the wrong *type* (a boolean, an object, a Number that is no safe integer) is a `TypeError` instead.
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
 *   console.log(error.message); // invalid_node: node is 1024; it takes a whole number from 0 to 1023
 * }
 * ```
 */
declare class PolyflakeError extends Error {
    readonly name: string;
    /** Which refusal it is. */
    readonly code: PolyflakeErrorCode;
    /** The permanent number of `code`, the same in every language. */
    readonly number: number;
    /** With `CLOCK_MOVED_BACKWARDS`: by how many ms the clock stands behind the last ID issued. */
    readonly behindMs?: number;
    /**
     * With `CLOCK_MOVED_BACKWARDS` and `SEQUENCE_EXHAUSTED`: after how many ms of the clock the next ID can come.
     */
    readonly retryAfterMs?: number;
}

/** A layout's parts, the highest field first. */
interface LayoutFields {
    /** Each field's name and its width in bits: pairs, or an object in that order. */
    fields: Iterable<readonly [name: string, bits: Integer]> | Readonly<Record<string, Integer>>;
    /** The instant of tick 0, in Unix ms, 0 to 2^63 - 1. */
    epochMs: Integer;
    /** How long a tick lasts, in whole ms. Default: 1. */
    tickMs?: Integer | undefined;
}
/**
 * What the bits of an ID mean: fields from the highest bit down, the epoch, and the tick.
 *
 * `new Layout("twitter")` is a preset (see {@link Layout.presets}),
 * `new Layout("timestamp:41|worker:10|sequence:12@1288834974657/1ms")` a text (the epoch in Unix ms, the tick as
 * Nms or Ns), and `new Layout({ fields: { timestamp: 41, worker: 10, sequence: 12 }, epochMs: 1288834974657 })`
 * the same from its parts. `String(layout)` gives the text, and so does `JSON.stringify`.
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
    /** The presets' names, such as `twitter`, the default. */
    static get presets(): readonly string[];
    constructor(layout: string | Layout | LayoutFields);
    /**
     * Takes an ID apart. `id`: a bigint, a decimal string, or a Number that is a safe integer.
     *
     * @throws {PolyflakeError} `INVALID_ID` for what is no ID of this layout.
     */
    decode(id: Integer): Decoded;
    /**
     * The ID of an instant (a Date, or Unix ms), rounded down to its tick, of a node and a sequence number: for
     * moving rows into an ID space, and for tests. Nothing keeps it from repeating an ID that was issued. `node`:
     * as in {@link SnowflakeOptions.node}; `null` where the layout has no node field.
     *
     * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, `INVALID_NODE`, or `INVALID_OPTION` for the sequence.
     */
    compose(time: Instant, node: Node | null, sequence: Integer): bigint;
    /**
     * The lowest ID at or after an instant (a Date, or Unix ms): the lower end of a range of time.
     *
     * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, or `INVALID_LAYOUT` where a node field stands above the
     * timestamp.
     */
    minId(time: Instant): bigint;
    /**
     * The highest ID at or before an instant (a Date, or Unix ms): the upper end of a range of time.
     *
     * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, or `INVALID_LAYOUT` where a node field stands above the
     * timestamp.
     */
    maxId(time: Instant): bigint;
    /** Every field, from the highest bit down. */
    get fields(): readonly Field[];
    /** The instant of tick 0, in Unix ms. */
    get epochMs(): bigint;
    /** The instant of tick 0; `null` past the year 275760, where Date ends. */
    get epoch(): Date | null;
    /** How long a tick lasts, in ms. */
    get tickMs(): bigint;
    /** The layout's last instant, in Unix ms. */
    get endsAtMs(): bigint;
    /** The layout's last instant; `null` past the year 275760, where Date ends. */
    get endsAt(): Date | null;
    /** How many IDs one node can issue in a tick. */
    get idsPerTick(): number;
    /** How many nodes the layout tells apart. */
    get nodes(): number;
    /** The width of all fields together. */
    get totalBits(): number;
    /** The width of all node fields together. */
    get nodeBits(): number;
    /** The width of the timestamp. */
    get timestampBits(): number;
    /** How many bits stand below the timestamp. */
    get timestampShift(): number;
    /** The width of the sequence. */
    get sequenceBits(): number;
    /** How many bits stand below the sequence. */
    get sequenceShift(): number;
    /** Whether both give every ID the same meaning: the same fields, epoch and tick. */
    equals(other: Layout): boolean;
    /** The layout's text, which `new Layout` reads. */
    toString(): string;
    /** The layout's text. */
    toJSON(): string;
}
/** A field of a layout. */
interface Field {
    /** `timestamp`, `sequence`, or a node field's own name. */
    readonly name: string;
    /** The field's width. */
    readonly bits: number;
    /** How many bits stand below the field. */
    readonly shift: number;
    /** The field's bits, in their place in the ID. */
    readonly mask: bigint;
}
/** An ID taken apart, from {@link Layout.decode} or {@link Snowflake.decode}. `JSON.stringify` gives its IDs and instants as strings. */
declare class Decoded {
    #private;
    /** The ID. */
    readonly id: bigint;
    /** The start of the ID's tick, in Unix ms. */
    readonly timestampMs: bigint;
    /** How many ticks after the epoch. */
    readonly ticks: bigint;
    /** All node fields joined, from the highest to the lowest. */
    readonly node: number;
    /** The node fields' names and values, from the highest down. */
    readonly fields: Readonly<Record<string, number>>;
    /** The number within the tick. */
    readonly sequence: number;
    /** The start of the ID's tick; `null` past the year 275760, where Date ends. */
    get time(): Date | null;
    /** The layout it was taken apart by. */
    get layout(): Layout;
    /** Whether both are the same ID of the same layout. */
    equals(other: Decoded): boolean;
    /** JSON has no bigint: the ID and what else may pass 2^53 become decimal strings. */
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
 * @throws {PolyflakeError} `INVALID_ID`, or `INVALID_OPTION` for another format.
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
 * Reads an ID from text; `format` is `decimal` by default. `base32` and `hex` read upper and lower case, and
 * `base32` also I and L as 1 and O as 0.
 *
 * @throws {PolyflakeError} `INVALID_ID`, which names the position of the character that does not fit, or
 * `INVALID_OPTION` for another format.
 *
 * @example
 * ```js
 * import { parseId } from "polyflake";
 *
 * console.log(parseId("1ASD13XH1F800", "base32")); // 1541815603606036480n
 * ```
 */
declare function parseId(text_: string, format?: Format): bigint;

/** What a {@link Snowflake} is made from. */
interface SnowflakeOptions {
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
interface Stats {
    /** How often a call found no free slot and waited or gave up. */
    readonly waits: number;
    /** How many steps back of the clock were seen, tolerated or refused. */
    readonly rollbacks: number;
    /** By how many ms the last tick taken lies ahead of the clock; 0 where it does not. */
    readonly leadMs: number;
    /** The start of the last ID's tick, in Unix ms; `null` before the first ID. */
    readonly lastIssuedMs: bigint | null;
}
declare global {
    interface SymbolConstructor {
        readonly dispose: unique symbol;
    }
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
declare class Snowflake implements IterableIterator<bigint, never, undefined> {
    #private;
    constructor(options: SnowflakeOptions);
    /**
     * The next ID. Waits where the tick's sequence is used up, at most `maxWaitMs`, blocking the thread
     * ({@link Snowflake.nextIdAsync} does not).
     *
     * @throws {PolyflakeError} `SEQUENCE_EXHAUSTED` or `CLOCK_MOVED_BACKWARDS` where `maxWaitMs` was not enough (a
     * step back past `maxBackwardMs` does not wait), `TIME_OUT_OF_RANGE`, `CLOCK_FAILED`, or `FORKED`.
     */
    nextId(): bigint;
    /**
     * The next ID, or at once the error of {@link Snowflake.nextId} where there is none yet.
     *
     * @throws {PolyflakeError} as {@link Snowflake.nextId} does.
     */
    tryNextId(): bigint;
    /**
     * The next ID; where it must wait, it leaves the event loop free.
     *
     * @throws {PolyflakeError} (it rejects) as {@link Snowflake.nextId} does.
     */
    nextIdAsync(): Promise<bigint>;
    /**
     * The next ID as text; `format` is `decimal` by default.
     *
     * @throws {PolyflakeError} as {@link Snowflake.nextId} does, or `INVALID_OPTION` for another format.
     */
    nextIdString(format?: Format): string;
    /**
     * The next ID as a Number, for layouts of at most 53 bits (`js-safe`).
     *
     * @throws {RangeError} where the layout is wider.
     * @throws {PolyflakeError} as {@link Snowflake.nextId} does.
     */
    nextIdNumber(): number;
    /**
     * The next `n` IDs, 1 to 16777216 of them. An error part-way loses IDs and never repeats one.
     *
     * @throws {PolyflakeError} as {@link Snowflake.nextId} does, or `INVALID_OPTION` for another `n`.
     */
    nextIds(n: Integer): BigUint64Array;
    /**
     * The next `n` IDs, 1 to 16777216 of them, made and waited for off the event loop: on a thread of libuv's pool
     * in Node (whose end the process waits for), between timers elsewhere and with a clock of the caller's.
     *
     * @throws {PolyflakeError} (it rejects) as {@link Snowflake.nextIds} does.
     */
    nextIdsAsync(n: Integer): Promise<BigUint64Array>;
    /**
     * Fills an array with IDs. An error part-way loses IDs and never repeats one.
     *
     * @throws {PolyflakeError} as {@link Snowflake.nextId} does.
     */
    fill(ids: BigUint64Array): void;
    /**
     * Takes an ID apart by this Snowflake's layout. `id`: a bigint, a decimal string, or a Number that is a safe
     * integer.
     *
     * @throws {PolyflakeError} `INVALID_ID`.
     */
    decode(id: Integer): Decoded;
    /** The layout. */
    get layout(): Layout;
    /** All node fields joined, from the highest to the lowest. */
    get node(): number;
    /**
     * Waits, lead and rollbacks, for graphs. Reads the clock once.
     *
     * @throws {PolyflakeError} `CLOCK_FAILED` or `FORKED`.
     */
    get stats(): Stats;
    /**
     * Ends this Snowflake: from here on it refuses with `CLOSED`. Others on the same node or state file go on. A `using`
     * declaration closes it at the end of its block.
     */
    close(): void;
    /** An iterator's step: the next ID, as {@link Snowflake.nextId} gives it; never done. */
    next(): IteratorYieldResult<bigint>;
    [Symbol.iterator](): this;
}
interface Snowflake {
    /** {@link Snowflake.close}, at the end of a `using` declaration's block. */
    [Symbol.dispose](): void;
}
/**
 * Sets a state file's cursor back to the system clock, where it stands ahead of it: the way out when a clock that was
 * wrong has moved a cursor far into the future. Stop the processes that use the file first. The risk: IDs that were
 * issued ahead of the clock are issued again when the clock gets there. In Node's native build alone.
 *
 * @throws {PolyflakeError} `STATE_FILE`, also where there is none.
 */
declare function resetState(path: string): void;

export { Decoded, Layout, PolyflakeError, Snowflake, formatId, parseId, resetState };
export type { Field, Format, Instant, Integer, LayoutFields, Node, PolyflakeErrorCode, SnowflakeOptions, Stats };
