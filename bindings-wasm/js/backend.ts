/**
 * What the native addon and the WebAssembly module both give; everything else is the classes'. Numbers go in as
 * decimal texts, which the core parses; a refusal comes out as a thrown `PolyflakeError`.
 */
export interface Backend {
  /** `native` or `wasm`. */
  readonly name: "native" | "wasm";
  presets(): string[];
  layout(text: string): LayoutParts;
  /** `fields`: each field's name and its width, one after the other. */
  layoutOf(fields: string[], epochMs: string, tickMs: string): LayoutParts;
  /** Writes into `values`: the ID, its Unix ms, ticks, node and sequence, then each node field's value. */
  decode(layout: string, id: string, values: BigUint64Array): void;
  compose(layout: string, timeMs: string, node: NodeTexts, sequence: string): bigint;
  minId(layout: string, timeMs: string): bigint;
  maxId(layout: string, timeMs: string): bigint;
  formatId(id: string, format: string): string;
  parseId(text: string, format: string): bigint;
  resetState(path: string): void;
  /** The `n` of a batch. */
  batchSize(n: string): number;
  /** `options`: each option's name and its text, one after the other, but for `node` and a clock of the caller's. */
  snowflake(options: string[], node: NodeTexts | undefined, clock: Reading | undefined): Generator;
}

/** A whole node, or each node field's name and its value, one after the other. */
export type NodeTexts = string | string[];

/** A caller's clock: Unix ms that fit 64 bits, or nothing where it failed. */
export type Reading = () => bigint | undefined;

export interface LayoutParts {
  text: string;
  epochMs: bigint;
  tickMs: bigint;
  endsAtMs: bigint;
  idsPerTick: number;
  nodes: number;
  totalBits: number;
  nodeBits: number;
  fields: FieldParts[];
}

export interface FieldParts {
  name: string;
  bits: number;
  shift: number;
  mask: bigint;
}

export interface StatsParts {
  waits: number;
  rollbacks: number;
  leadMs: number;
  lastIssuedMs: bigint | undefined;
}

export interface Generator {
  readonly layout: string;
  readonly node: number;
  nextId(): bigint;
  tryNextId(): bigint;
  fill(ids: BigUint64Array): void;
  nextIds(n: number): BigUint64Array;
  /**
   * Fills `ids` from index `from` on, without waiting: gives how far it came, and after how many ms to go on
   * (0 where all are there), or after which work on the disk, done on another thread. `waitedMs`: how long the call
   * has waited since it last took an ID, if it has.
   */
  fillSome(
    ids: BigUint64Array,
    from: number,
    waitedMs: number | undefined,
  ): [filled: number, pauseMs: number, work?: Promise<void> | null];
  /** `fillSome` to its end on a thread of its own, where there are threads. */
  nextIdsOnThread?(n: number): Promise<BigUint64Array>;
  stats(): StatsParts;
  close(): void;
}

let connected: Backend | undefined;
let open: () => Backend = () => {
  throw new Error("no entry of the package has connected the core");
};

/** Says where the core comes from; it is opened when it is first used. */
export function connect(opener: () => Backend): void {
  open = opener;
}

export function core(): Backend {
  connected ??= open();
  return connected;
}
