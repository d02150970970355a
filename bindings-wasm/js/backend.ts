/**
 * The core's interface for the package's classes: the WebAssembly module in this folder, or the native addon in
 * bindings-node. Numbers go in as decimal text, which the core parses. Every call throws the error that {@link
 * MakeError} makes.
 */
export interface Backend {
  /** Whether a wait ends with the request that it began in. */
  readonly hasRequests?: boolean;
  /** Identifies this copy's cursors, if others can have them too, and the warning about other copies. */
  copies?(): [library: string, warning: string | null];
  presets(): string[];
  layout(text: string): LayoutParts;
  /** `fields`: each field's name followed by its width. */
  layoutOf(fields: string[], epochMs: string, tickMs: string): LayoutParts;
  /** An ID of this layout. */
  idOf(layout: string, id: string): bigint;
  /**
   * Checks every ID, and writes one value of each: 64-bit ones into `wide`, others into `narrow`. That array is as long
   * as `ids`, and the other is empty. `field`: the name of the node field, for that column.
   */
  decodeAll(
    layout: string,
    ids: BigUint64Array,
    column: Column,
    field: string,
    wide: BigUint64Array,
    narrow: Uint32Array,
  ): void;
  compose(layout: string, timeMs: string, node: NodeTexts, sequence: string): bigint;
  minId(layout: string, timeMs: string): bigint;
  maxId(layout: string, timeMs: string): bigint;
  /** The formats' names. */
  formats(): string[];
  formatId(id: string, format: string): string;
  /** The text of an ID of 0 to 2^64 - 1. `format`: its position among `formats`. */
  idText(id: bigint, format: number): string;
  parseId(text: string, format: string): bigint;
  resetState(path: string): void;
  /** The `n` of a batch. */
  batchSize(n: string): number;
  /** `options`: each option's name followed by its text, except `node` and a clock that is a function. */
  snowflake(options: string[], node: NodeTexts | undefined, clock: Reading | undefined): BackendSnowflake;
  /** As `snowflake`, but for options with a lease, and waits for it. Exists if the backend has a network. */
  open?(options: string[], node: NodeTexts | undefined): Promise<BackendSnowflake>;
  /** `options`: each option's name followed by its text. Waits for the store. Exists if the backend has a network. */
  openCounter?(name: string, options: string[]): Promise<BackendCounter>;
  /** As `openCounter`. */
  openSequences?(name: string, options: string[]): Promise<BackendSequences>;
  /** Not in browsers, whose users must not have the keys. */
  publicIds?(keys: string[], prefix: string): BackendPublicIds;
  /** A new key. */
  generatePublicKey?(number: string): string;
}

export interface BackendPublicIds {
  readonly keyNumbers: number[];
  /** `id`: of 0 to 2^64 - 1. */
  encode(id: bigint): string;
  /** As `encode`, but the ID may be invalid. */
  encodeText(id: string): string;
  decode(text: string): bigint;
}

export interface BackendSnowflake {
  readonly layout: string;
  /** The present node: a lease may change it. */
  node(): number;
  nextId(): bigint;
  /** The text of the next ID. `format`: its position among {@link Backend.formats}. */
  nextIdText(format: number): string;
  tryNextId(): bigint;
  fill(ids: BigUint64Array): void;
  nextIds(n: number): BigUint64Array;
  /**
   * Writes IDs to the front of `ids`, an array that nobody else can reach, without waiting. Returns how many: one or
   * more. If there are none: minus the ms after which to poll again, with an array that is not shorter; or NaN if
   * `disk` must be awaited first. `waitedMs`: how long the caller has waited since it last got an ID; -1 if it has not.
   */
  poll(ids: BigUint64Array, waitedMs: number): number;
  /** After a `poll`, work on another thread. */
  disk?(): Promise<void>;
  /**
   * Fills `n` of `ids` from index `from` on another thread, if the backend has threads. Nobody else can reach `ids`.
   */
  fillOnThread?(ids: BigUint64Array, from: number, n: number): Promise<void>;
  stats(): Stats;
  lease?(): Omit<LeaseInfo, "bound"> | null;
  /** Does not wait until a leased node is given back. */
  close(): void;
  /** After `close`, once: calls `done` when the node is given back, or cannot be. Returns whether it will. */
  whenGivenBack?(done: () => void): boolean;
}

export interface BackendCounter {
  readonly name: string;
  /** A number in hand, or throws. */
  nextId(): bigint;
  /** A number in hand, or null. */
  take(): bigint | null;
  /** Numbers in hand, or throws. */
  nextIds(n: number): BigUint64Array;
  fill(numbers: BigUint64Array): void;
  stats(): CounterStats;
  // These wait for the store on another thread.
  fillLater(n: number, done: Done<BigUint64Array>): void;
  nextBlock(n: string, done: Done<bigint>): void;
  peek(done: Done<bigint>): void;
  raise(number: string, done: Done<void>): void;
  remove(done: Done<boolean>): void;
  /** Closes at once. Calls `done` when the numbers in hand are given back, or cannot be. */
  close(done: (() => void) | undefined): void;
}

/** A key is a string, a safe integer or a bigint. */
export interface BackendSequences {
  readonly name: string;
  /** A number at once, or throws. */
  nextId(key: string | number | bigint): bigint;
  /** A number at once, or null. Throws if the key is invalid. */
  take(key: string | number | bigint): bigint | null;
  /** A number for each key at once, or throws. */
  nextIds(keys: (string | number | bigint)[]): BigUint64Array;
  /** Waits for the store on another thread. Throws if a key is invalid. */
  nextIdsLater(keys: (string | number | bigint)[], done: Done<BigUint64Array>): void;
  stats(): SequencesStats;
  /** Closes at once. Calls `done` when the lease is given back, or cannot be. */
  close(done: (() => void) | undefined): void;
}

/** Called with an error, or with the result. */
export type Done<T> = (error: Error | undefined, value: T) => void;

/** The values that `decodeAll` writes for each ID; `""`: none. */
export type Column = "timestampsMs" | "ticks" | "nodes" | "sequences" | "field" | "";

/** A whole node, or each node field's name followed by its value. */
export type NodeTexts = string | string[];

/** The caller's clock: Unix ms that fit 64 bits, or undefined if it failed. */
export type Reading = () => bigint | undefined;

/** Makes the core's error with this permanent number and name. */
export type MakeError = (
  number: number,
  name: string,
  message: string,
  behindMs?: number,
  retryAfterMs?: number,
  options?: ErrorOptions,
) => Error;

export interface LayoutParts {
  text: string;
  epochMs: bigint;
  tickMs: bigint;
  endsAtMs: bigint;
  idsPerTick: number;
  nodes: number;
  totalBits: number;
  nodeBits: number;
  fields: Field[];
}

/** A field of a layout. */
export interface Field {
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
export interface Stats {
  /** How often a call found no free slot, and waited or gave up. */
  readonly waits: number;
  /** How many times the clock was seen to step back, tolerated or not. */
  readonly rollbacks: number;
  /** How many ms the last tick taken is ahead of the clock; 0 if it is not. */
  readonly leadMs: number;
  /** The start of the last ID's tick, in Unix ms; `null` before the first ID. */
  readonly lastIssuedMs: bigint | null;
  /** How often the lease was lost: it ran out, or another process had its node. */
  readonly leaseLosses: number;
}

/** For monitoring, from {@link Counter.stats}. All Counters with that name in this process count together. */
export interface CounterStats {
  /** How many numbers are in hand. */
  readonly inHand: number;
  /** How many numbers the next segment has. */
  readonly step: number;
  /** How often the store gave numbers. */
  readonly segments: number;
  /** How many numbers were skipped, so that a block is one run and numbers keep increasing. */
  readonly skipped: number;
  /** How often a call found no number in hand and waited or gave up. */
  readonly waits: number;
}

/** For monitoring, from {@link Sequences.stats}. All Sequences with that name in this process count together. */
export interface SequencesStats {
  /** How many keys are in memory. */
  readonly keys: number;
  /** How many keys were evicted to make room for others. */
  readonly evicted: number;
  /** How often bounds were moved in the store. */
  readonly moves: number;
  /** How often a call waited or gave up. */
  readonly waits: number;
  /** How many ms numbers can be issued without renewing the lease; 0 if another process has it. */
  readonly timeLeftMs: number;
}

/** A lease, from {@link Snowflake.lease}. */
export interface LeaseInfo {
  /** The node that it has, or last had. */
  readonly node: number;
  /** Up to when it may issue IDs without a reply from the store, in Unix ms; 0 if it has no node now. */
  readonly boundMs: bigint;
  /** `boundMs` as a Date. */
  readonly bound: Date;
  /** How many ms that is from now. */
  readonly leftMs: number;
  /** The store's address, without secrets. */
  readonly store: string;
  /**
   * `held`; `unreachable` if the store did not answer the last request (IDs are issued up to the bound); `lost` if the
   * bound has passed; `closed` if the Snowflake is.
   */
  readonly state: "held" | "unreachable" | "lost" | "closed";
}
