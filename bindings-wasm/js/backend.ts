/**
 * The core's interface for the package's classes: the WebAssembly module in this folder, or the native addon in
 * bindings-node. Numbers are passed as decimal text, which the core parses. A call that fails throws the error that
 * {@link MakeError} creates.
 */
export interface Backend {
  /** Whether a wait is cut off when the request that started it ends. */
  readonly hasRequests?: boolean;
  /**
   * Returns an identifier of this copy's cursors, and the warning about other copies, if any. Exists if other copies
   * can share the cursors.
   */
  copies?(): [library: string, warning: string | null];
  presets(): string[];
  layout(text: string): LayoutParts;
  /** `fields`: each field's name followed by its width. */
  layoutOf(fields: string[], epochMs: string, tickMs: string): LayoutParts;
  /** Parses an ID of this layout. */
  idOf(layout: string, id: string): bigint;
  /**
   * Checks every ID, and writes one value for each: 64-bit values into `wide`, others into `narrow`. The array that is
   * written to is as long as `ids`, and the other is empty. `field`: the name of the node field, for that column.
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
  /** Writes an ID of 0 to 2^64 - 1 as text. `format`: the format's position in `formats`. */
  idText(id: bigint, format: number): string;
  parseId(text: string, format: string): bigint;
  resetState(path: string): void;
  /** Checks the `n` of a batch. */
  batchSize(n: string): number;
  /** `options`: each option's name followed by its text, except `node` and a clock that is a function. */
  snowflake(options: string[], node: NodeTexts | undefined, clock: Reading | undefined): BackendSnowflake;
  /** Like `snowflake`, but for options with a lease, and waits for the lease. Exists if the backend has a network. */
  open?(options: string[], node: NodeTexts | undefined): Promise<BackendSnowflake>;
  /** `options`: each option's name followed by its text. Waits for the store. Exists if the backend has a network. */
  openCounter?(name: string, options: string[]): Promise<BackendCounter>;
  /** Like `openCounter`. */
  openSequences?(name: string, options: string[]): Promise<BackendSequences>;
  /** Missing in browsers, whose users must not have the keys. */
  publicIds?(keys: string[], prefix: string): BackendPublicIds;
  /** Generates a key. */
  generatePublicKey?(number: string): string;
}

export interface BackendPublicIds {
  readonly keyNumbers: number[];
  /** `id`: 0 to 2^64 - 1. */
  encode(id: bigint): string;
  /** Like `encode`, but the ID may be invalid. */
  encodeText(id: string): string;
  decode(text: string): bigint;
}

export interface BackendSnowflake {
  readonly layout: string;
  /** The current node, which a lease may change. */
  node(): number;
  nextId(): bigint;
  /** Returns the next ID as text. `format`: the format's position in {@link Backend.formats}. */
  nextIdText(format: number): string;
  tryNextId(): bigint;
  fill(ids: BigUint64Array): void;
  nextIds(n: number): BigUint64Array;
  /**
   * Writes IDs to the front of `ids`, an array that nothing else refers to, without waiting. Returns how many it wrote,
   * at least one. If no ID is available yet, returns the negated number of ms to wait before polling again, with an
   * array at least as long, or NaN if `disk` must be awaited first. `waitedMs`: how long the caller has waited since it
   * last received an ID; -1 if it has not waited.
   */
  poll(ids: BigUint64Array, waitedMs: number): number;
  /** Does the disk work on another thread, after a `poll` that returned NaN. */
  disk?(): Promise<void>;
  /**
   * Fills `n` elements of `ids`, from index `from` on, on another thread. Nothing else refers to `ids`. Exists if the
   * backend has threads.
   */
  fillOnThread?(ids: BigUint64Array, from: number, n: number): Promise<void>;
  stats(): Stats;
  lease?(): Omit<LeaseInfo, "bound"> | null;
  /** Does not wait for a leased node to be given back. */
  close(): void;
  /**
   * Call this once, after `close`. Calls `done` when the node has been given back, or cannot be. Returns whether it
   * will call `done`.
   */
  whenGivenBack?(done: () => void): boolean;
}

export interface BackendCounter {
  readonly name: string;
  /** Returns a number in hand, or throws. */
  nextId(): bigint;
  /** Returns a number in hand, or null. */
  take(): bigint | null;
  /** Returns numbers in hand, or throws. */
  nextIds(n: number): BigUint64Array;
  fill(numbers: BigUint64Array): void;
  stats(): CounterStats;
  // These wait for the store on another thread.
  fillLater(n: number, done: Done<BigUint64Array>): void;
  nextBlock(n: string, done: Done<bigint>): void;
  peek(done: Done<bigint>): void;
  raise(number: string, done: Done<void>): void;
  remove(done: Done<boolean>): void;
  /** Closes at once. Calls `done` when the numbers in hand have been given back, or cannot be. */
  close(done: (() => void) | undefined): void;
}

/** A key is a string, a safe integer or a bigint. */
export interface BackendSequences {
  readonly name: string;
  /** Returns a number at once, or throws. */
  nextId(key: string | number | bigint): bigint;
  /** Returns a number at once, or null. Throws if the key is invalid. */
  take(key: string | number | bigint): bigint | null;
  /** Returns a number for each key at once, or throws. */
  nextIds(keys: (string | number | bigint)[]): BigUint64Array;
  /** Waits for the store on another thread. Throws if a key is invalid. */
  nextIdsLater(keys: (string | number | bigint)[], done: Done<BigUint64Array>): void;
  stats(): SequencesStats;
  /** Closes at once. Calls `done` when the lease has been given back, or cannot be. */
  close(done: (() => void) | undefined): void;
}

/** Called with an error, or with the result. */
export type Done<T> = (error: Error | undefined, value: T) => void;

/** The values that `decodeAll` writes for each ID, or `""` for none. */
export type Column = "timestampsMs" | "ticks" | "nodes" | "sequences" | "field" | "";

/** A whole node, or each node field's name followed by its value. */
export type NodeTexts = string | string[];

/** The caller's clock, which returns Unix ms that fit into 64 bits, or undefined if it failed. */
export type Reading = () => bigint | undefined;

/** Creates the core's error with this permanent number and name. */
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
  /** How many ms the last tick used is ahead of the clock; 0 if it is not ahead. */
  readonly leadMs: number;
  /** The start of the last ID's tick, in Unix ms; `null` before the first ID. */
  readonly lastIssuedMs: bigint | null;
  /** How often the lease was lost: it expired, or another process held its node. */
  readonly leaseLosses: number;
}

/** For monitoring, from {@link Counter.stats}. Covers all Counters with that name in this process. */
export interface CounterStats {
  /** How many numbers are in hand. */
  readonly inHand: number;
  /** How many numbers the next segment has. */
  readonly step: number;
  /** How often the store handed out numbers. */
  readonly segments: number;
  /** How many numbers were skipped to keep each block consecutive and numbers increasing. */
  readonly skipped: number;
  /** How often a call found no number in hand and waited or gave up. */
  readonly waits: number;
}

/** For monitoring, from {@link Sequences.stats}. Covers all Sequences with that name in this process. */
export interface SequencesStats {
  /** How many keys are in memory. */
  readonly keys: number;
  /** How many keys were evicted to make room for others. */
  readonly evicted: number;
  /** How often bounds were moved in the store. */
  readonly moves: number;
  /** How often a call waited or gave up. */
  readonly waits: number;
  /** For how many ms numbers can be issued without renewing the lease; 0 if another process has it. */
  readonly timeLeftMs: number;
}

/** A lease, from {@link Snowflake.lease}. */
export interface LeaseInfo {
  /** The leased node, or the last one if none is leased now. */
  readonly node: number;
  /** The time until which IDs may be issued without a reply from the store, in Unix ms; 0 if no node is leased now. */
  readonly boundMs: bigint;
  /** `boundMs` as a Date. */
  readonly bound: Date;
  /** How many ms are left until `boundMs`. */
  readonly leftMs: number;
  /** The store's address, without secrets. */
  readonly store: string;
  /**
   * `held`; `unreachable` if the store did not answer the last request (IDs are issued up to the bound); `lost` if the
   * bound has passed; `closed` if the Snowflake is closed.
   */
  readonly state: "held" | "unreachable" | "lost" | "closed";
}
