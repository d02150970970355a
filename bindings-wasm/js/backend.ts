/**
 * What a core offers to the package's classes: the WebAssembly module of this folder, or the native addon of
 * bindings-node. Numbers go in as decimal text, which the core parses. Every call throws what {@link MakeError} makes.
 */
export interface Backend {
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
  /** The text of an ID of 0 to 2^64 - 1. `format`: its place among `formats`. */
  idText(id: bigint, format: number): string;
  parseId(text: string, format: string): bigint;
  resetState(path: string): void;
  /** The `n` of a batch. */
  batchSize(n: string): number;
  /** `options`: each option's name followed by its text, except `node` and a clock that is a function. */
  snowflake(options: string[], node: NodeTexts | undefined, clock: Reading | undefined): BackendSnowflake;
  /** As `snowflake` for options with a lease, which it waits for; where the backend has a network. */
  open?(options: string[], node: NodeTexts | undefined): Promise<BackendSnowflake>;
}

export interface BackendSnowflake {
  readonly layout: string;
  /** The present one: a lease may bring another. */
  node(): number;
  nextId(): bigint;
  /** The text of the next ID. `format`: its place among {@link Backend.formats}. */
  nextIdText(format: number): string;
  tryNextId(): bigint;
  fill(ids: BigUint64Array): void;
  nextIds(n: number): BigUint64Array;
  /**
   * Fills `ids` from index `from` without waiting. Returns how many are filled, and what to wait for before the next
   * call: a pause in ms, or disk work on another thread. `waitedMs`: how long the caller
   * has waited since it last got an ID.
   */
  fillSome(
    ids: BigUint64Array,
    from: number,
    waitedMs: number | undefined,
  ): [filled: number, pauseMs: number, work?: Promise<void> | null];
  /** A whole batch on another thread, where the backend has threads. */
  nextIdsOnThread?(n: number): Promise<BigUint64Array>;
  stats(): Stats;
  lease?(): Omit<LeaseInfo, "bound"> | null;
  /** Does not wait until a leased node is given back. */
  close(): void;
  /** After `close`, once: calls `done` when the node was given back, or cannot be. Returns whether it will. */
  whenGivenBack?(done: () => void): boolean;
}

/** What of each ID `decodeAll` writes; `""`: nothing. */
export type Column = "timestampsMs" | "ticks" | "nodes" | "sequences" | "field" | "";

/** A whole node, or each node field's name followed by its value. */
export type NodeTexts = string | string[];

/** The caller's clock: Unix ms that fit 64 bits, or undefined if it failed. */
export type Reading = () => bigint | undefined;

/** Makes the error of the core with this permanent number and name. */
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

/** A lease, from {@link Snowflake.lease}. */
export interface LeaseInfo {
  /** The node that it has, or had last. */
  readonly node: number;
  /** Up to when it may issue without hearing from the store, in Unix ms; 0 if it has no node now. */
  readonly boundMs: bigint;
  /** `boundMs` as a Date. */
  readonly bound: Date;
  /** How many ms that is from now. */
  readonly leftMs: number;
  /** The store's address, without secrets. */
  readonly store: string;
  /**
   * `held`; `unreachable` if the store did not answer when it was last asked (issuing goes on up to the bound); `lost`
   * if the bound has passed; `closed` if the Snowflake is.
   */
  readonly state: "held" | "unreachable" | "lost" | "closed";
}
