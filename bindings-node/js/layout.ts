import { lengthOf } from "../../bindings-wasm/js/arrays.js";
import type { Column, Field, LayoutParts } from "../../bindings-wasm/js/backend.js";
import type { Instant, Integer, Node } from "./convert.js";
import { bigintOf, idArray, integer, nodeTexts, text, toDate, unixMs, wrongType } from "./convert.js";
import { core } from "./core.js";
import { HIGH, halves, isNode, LOW, Reader, whole } from "./reader.js";

// A layout decodes IDs, and a decoded ID refers to its layout, so these classes share a file.

/** A layout as an object. */
export interface LayoutFields {
  /** Each field's name and width in bits, highest field first, as an object or as pairs. */
  fields: Iterable<readonly [name: string, bits: Integer]> | Readonly<Record<string, Integer>>;
  /** The instant of tick 0, in Unix ms, 0 to 2^63 - 1. */
  epochMs: Integer;
  /** The length of a tick, in whole ms. Default: 1. */
  tickMs?: Integer | undefined;
}

/**
 * The meaning of an ID's bits: fields from the highest bit down, the epoch, and the tick.
 *
 * The constructor takes a preset's name, such as `"twitter"` (see {@link Layout.presets}); a layout string, such as
 * `"timestamp:41|worker:10|sequence:12@1288834974657/1ms"` (the epoch in Unix ms, the tick as Nms or Ns); or an object,
 * such as `{ fields: { timestamp: 41, worker: 10, sequence: 12 }, epochMs: 1288834974657 }`. `String(layout)` and
 * `JSON.stringify` return the layout string.
 *
 * @throws {PolyflakeError} `INVALID_LAYOUT` or `UNKNOWN_LAYOUT`.
 *
 * @example
 * ```js
 * import { Layout } from "polyflake";
 *
 * const decoded = new Layout("discord").decode("175928847299117063");
 * console.log(decoded.fields.worker); // 1
 * console.log(decoded.time?.toISOString()); // 2016-04-30T11:18:25.796Z
 * ```
 */
export class Layout {
  readonly #parts: LayoutParts;
  readonly #reader: Reader;
  #fields: readonly Field[] | undefined;

  /** The names of the presets. The default is `twitter`. */
  static get presets(): readonly string[] {
    return Object.freeze(core().presets());
  }

  constructor(layout: string | Layout | LayoutFields) {
    this.#parts = layout instanceof Layout ? layout.#parts : parts(layout);
    this.#reader = layout instanceof Layout ? layout.#reader : new Reader(this.#parts);
  }

  /**
   * Decodes an ID: a bigint, a decimal string, or a Number that is a safe integer.
   *
   * @throws {PolyflakeError} `INVALID_ID` if it is not an ID of this layout.
   */
  decode(id: Integer): Decoded {
    const given = bigintOf(id);
    const fits = given !== undefined && given >= 0n && given <= this.#reader.maxId;
    return new Decoded(this, this.#reader, fits ? given : core().idOf(this.#parts.text, integer(id, "id")));
  }

  /**
   * Decodes many IDs at once, at a few ns each. The result reads `ids` again for each of its columns.
   *
   * @throws {PolyflakeError} `INVALID_ID` if any of them is not an ID of this layout. The message names the first.
   *
   * @example
   * ```js
   * import { Layout } from "polyflake";
   *
   * const ids = BigUint64Array.from(["175928847299117063", "175928847299117064"], BigInt);
   * const decoded = new Layout("discord").decodeAll(ids);
   * console.log(new Date(Number(decoded.timestampsMs[0])).toISOString()); // 2016-04-30T11:18:25.796Z
   * console.log(decoded.sequences); // Uint32Array(2) [ 7, 8 ]
   * console.log(decoded.field("worker")); // Uint32Array(2) [ 1, 1 ]
   * ```
   */
  decodeAll(ids: BigUint64Array): DecodedAll {
    return new DecodedAll(this, idArray(ids, "the argument of decodeAll"));
  }

  /**
   * Composes the ID for an instant (a Date, or Unix ms, rounded down to the tick), a node and a sequence number, for
   * imports and tests. The ID may equal one that has already been issued. `node` is as in {@link
   * SnowflakeOptions.node}, or `null` if the layout has no node field.
   *
   * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, `INVALID_NODE`, or `INVALID_OPTION` for the sequence.
   */
  compose(time: Instant, node: Node | null, sequence: Integer): bigint {
    const nodes = node === null ? [] : nodeTexts(node);
    const sequences = integer(sequence, "sequence");
    return core().compose(this.#parts.text, unixMs(time), nodes, sequences);
  }

  /**
   * Returns the lowest ID at or after an instant (a Date, or Unix ms), for the lower bound of a time range.
   *
   * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, or `INVALID_LAYOUT` if a node field is above the timestamp.
   */
  minId(time: Instant): bigint {
    return core().minId(this.#parts.text, unixMs(time));
  }

  /**
   * Returns the highest ID at or before an instant (a Date, or Unix ms), for the upper bound of a time range.
   *
   * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, or `INVALID_LAYOUT` if a node field is above the timestamp.
   */
  maxId(time: Instant): bigint {
    return core().maxId(this.#parts.text, unixMs(time));
  }

  /** All fields, highest first. */
  get fields(): readonly Field[] {
    this.#fields ??= Object.freeze(this.#parts.fields.map((field) => Object.freeze(field)));
    return this.#fields;
  }

  /** The instant of tick 0, in Unix ms. */
  get epochMs(): bigint {
    return this.#parts.epochMs;
  }

  /** The instant of tick 0; `null` past the year 275760, the end of Date's range. */
  get epoch(): Date | null {
    return toDate(this.#parts.epochMs);
  }

  /** The length of a tick, in ms. */
  get tickMs(): bigint {
    return this.#parts.tickMs;
  }

  /** The layout's last instant, in Unix ms. */
  get endsAtMs(): bigint {
    return this.#parts.endsAtMs;
  }

  /** The layout's last instant; `null` past the year 275760, the end of Date's range. */
  get endsAt(): Date | null {
    return toDate(this.#parts.endsAtMs);
  }

  /** The number of IDs that one node can issue in a tick. */
  get idsPerTick(): number {
    return this.#parts.idsPerTick;
  }

  /** The number of nodes. */
  get nodes(): number {
    return this.#parts.nodes;
  }

  /** The total width of all fields. */
  get totalBits(): number {
    return this.#parts.totalBits;
  }

  /** The total width of the node fields. */
  get nodeBits(): number {
    return this.#parts.nodeBits;
  }

  /** The width of the timestamp. */
  get timestampBits(): number {
    return this.#field("timestamp").bits;
  }

  /** The number of bits below the timestamp. */
  get timestampShift(): number {
    return this.#field("timestamp").shift;
  }

  /** The width of the sequence. */
  get sequenceBits(): number {
    return this.#field("sequence").bits;
  }

  /** The number of bits below the sequence. */
  get sequenceShift(): number {
    return this.#field("sequence").shift;
  }

  /** Returns whether both layouts have the same fields, epoch and tick. */
  equals(other: Layout): boolean {
    return other instanceof Layout && other.#parts.text === this.#parts.text;
  }

  /** Returns the layout string, which `new Layout` accepts. */
  toString(): string {
    return this.#parts.text;
  }

  /** Returns the layout string. */
  toJSON(): string {
    return this.#parts.text;
  }

  /** @internal */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `Layout('${this.#parts.text}')`;
  }

  #field(name: "timestamp" | "sequence"): Field {
    return this.#parts.fields.find((field) => field.name === name) as Field;
  }
}

function parts(layout: string | LayoutFields): LayoutParts {
  if (typeof layout === "string") return core().layout(layout);
  if (typeof layout !== "object" || layout === null || Array.isArray(layout)) {
    throw wrongType(layout, "layout", "a string, a Layout or an object with fields and epochMs");
  }
  if (!("fields" in layout))
    throw new TypeError("layout has no fields; as an object it takes fields, epochMs and tickMs");
  const { fields, epochMs, tickMs = 1, ...unknown } = layout;
  for (const name of Object.keys(unknown)) {
    throw new TypeError(`a layout has no property ${name}; it has fields, epochMs and tickMs`);
  }
  if (typeof fields !== "object" || fields === null) {
    throw wrongType(fields, "fields", "an object of name to width, or pairs of them");
  }
  const pairs = Symbol.iterator in fields ? [...fields] : Object.entries(fields);
  const texts = pairs.flatMap((pair) => {
    if (!Array.isArray(pair) || pair.length !== 2) {
      throw wrongType(pair, "a field", "a pair of a name and a width");
    }
    const [name, bits] = pair;
    return [text(name, "a field's name"), integer(bits, `the width of field ${name}`)];
  });
  const epoch = integer(epochMs, "epochMs");
  return core().layoutOf(texts, epoch, integer(tickMs, "tickMs"));
}

// For `toEqual` and `deepEqual` in tests, which do not call getters and would otherwise find nothing to compare.
const ID = Symbol("id");
const LAYOUT = Symbol("layout");

/**
 * A decoded ID, from {@link Layout.decode} or {@link Snowflake.decode}. Its getters read their values from the ID;
 * `toJSON` returns all of them.
 */
export class Decoded {
  readonly #id: bigint;
  readonly #high: number;
  readonly #low: number;
  readonly #layout: Layout;
  readonly #reader: Reader;
  /** @internal */
  readonly [ID]: bigint;
  /** @internal */
  readonly [LAYOUT]: string;

  /** @internal */
  constructor(layout: Layout, reader: Reader, id: bigint) {
    whole[0] = id;
    this.#id = id;
    this.#high = halves[HIGH] as number;
    this.#low = halves[LOW] as number;
    this.#layout = layout;
    this.#reader = reader;
    this[ID] = id;
    this[LAYOUT] = reader.text;
  }

  /** The ID. */
  get id(): bigint {
    return this.#id;
  }

  /** The start of the ID's tick, in Unix ms. */
  get timestampMs(): bigint {
    return this.#reader.timestampMs(this.#id, this.#high, this.#low);
  }

  /** The start of the ID's tick; `null` past the year 275760, the end of Date's range. */
  get time(): Date | null {
    return this.#reader.time(this.#id, this.#high, this.#low);
  }

  /** The number of ticks since the epoch. */
  get ticks(): bigint {
    return this.#reader.ticks(this.#id, this.#high, this.#low);
  }

  /** All node bits as one number. */
  get node(): number {
    return this.#reader.node(this.#high, this.#low);
  }

  /** The name and value of each node field, highest field first. */
  get fields(): Readonly<Record<string, number>> {
    return this.#reader.fields(this.#high, this.#low);
  }

  /** The sequence number within the tick. */
  get sequence(): number {
    return this.#reader.sequence.of(this.#high, this.#low);
  }

  /** The layout that decoded the ID. */
  get layout(): Layout {
    return this.#layout;
  }

  /** Returns whether both hold the same ID, decoded by equal layouts. */
  equals(other: Decoded): boolean {
    return other instanceof Decoded && other.id === this.id && other.layout.equals(this.layout);
  }

  /**
   * Returns the values for JSON. JSON has no bigint, so the ID and other values that may exceed 2^53 become decimal
   * strings.
   */
  toJSON(): Record<string, unknown> {
    const { id, timestampMs, ticks, node, fields, sequence } = this;
    return {
      id: String(id),
      time: this.time,
      timestampMs: String(timestampMs),
      ticks: String(ticks),
      node,
      fields,
      sequence,
    };
  }

  /** @internal */
  [Symbol.for("nodejs.util.inspect.custom")](): object {
    const { id, timestampMs, ticks, node, fields, sequence } = this;
    return new Shown({ id, timestampMs, ticks, node, fields, sequence });
  }
}

/** The object that Node displays in place of a `Decoded`: the same values, under the same class name. */
const Shown = class Decoded {
  constructor(values: object) {
    Object.assign(this, values);
  }
};

const NO_WIDE = new BigUint64Array(0);
const NO_NARROW = new Uint32Array(0);

/**
 * Many IDs, decoded by {@link Layout.decodeAll} into columns with one value per ID, in the same order. A column is
 * created on first access, and is the same array from then on.
 *
 * The IDs are not copied, so leave their array unchanged until you have read the columns that you need.
 */
export class DecodedAll {
  readonly #ids: BigUint64Array;
  readonly #layout: Layout;
  #timestampsMs: BigUint64Array | undefined;
  #ticks: BigUint64Array | undefined;
  #nodes: Uint32Array | undefined;
  #sequences: Uint32Array | undefined;
  readonly #fields = new Map<string, Uint32Array>();

  /** @internal */
  constructor(layout: Layout, ids: BigUint64Array) {
    this.#layout = layout;
    this.#ids = ids;
    this.#decode("", "", NO_WIDE, NO_NARROW);
  }

  /** The array of IDs that was passed in. */
  get ids(): BigUint64Array {
    return this.#ids;
  }

  /** The layout that decoded the IDs. */
  get layout(): Layout {
    return this.#layout;
  }

  /** The start of each ID's tick, in Unix ms. */
  get timestampsMs(): BigUint64Array {
    this.#timestampsMs ??= this.#wide("timestampsMs");
    return this.#timestampsMs;
  }

  /** For each ID, the number of ticks since the epoch. */
  get ticks(): BigUint64Array {
    this.#ticks ??= this.#wide("ticks");
    return this.#ticks;
  }

  /** All node bits of each ID as one number. */
  get nodes(): Uint32Array {
    this.#nodes ??= this.#narrow("nodes");
    return this.#nodes;
  }

  /** Each ID's sequence number within its tick. */
  get sequences(): Uint32Array {
    this.#sequences ??= this.#narrow("sequences");
    return this.#sequences;
  }

  /** The values of a node field; `undefined` if the layout has no node field with that name. */
  field(name: string): Uint32Array | undefined {
    let values = this.#fields.get(name);
    if (values === undefined && isNode(name) && this.#layout.fields.some((field) => field.name === name)) {
      values = this.#narrow("field", name);
      this.#fields.set(name, values);
    }
    return values;
  }

  #wide(column: Column): BigUint64Array {
    const values = new BigUint64Array(lengthOf(this.#ids));
    this.#decode(column, "", values, NO_NARROW);
    return values;
  }

  #narrow(column: Column, field = ""): Uint32Array {
    const values = new Uint32Array(lengthOf(this.#ids));
    this.#decode(column, field, NO_WIDE, values);
    return values;
  }

  #decode(column: Column, field: string, wide: BigUint64Array, narrow: Uint32Array): void {
    core().decodeAll(this.#layout.toString(), this.#ids, column, field, wide, narrow);
  }
}
