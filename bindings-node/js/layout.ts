import type { FieldParts, LayoutParts } from "../../bindings-wasm/js/backend.js";
import { core } from "../../bindings-wasm/js/backend.js";
import type { Instant, Integer, Node } from "./convert.js";
import { integer, nodeTexts, text, toDate, unixMs, wrongType } from "./convert.js";

/** A layout's parts, the highest field first. */
export interface LayoutFields {
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
export class Layout {
  readonly #parts: LayoutParts;
  #fields: readonly Field[] | undefined;

  /** The presets' names, such as `twitter`, the default. */
  static get presets(): readonly string[] {
    return Object.freeze(core().presets());
  }

  constructor(layout: string | Layout | LayoutFields) {
    this.#parts = layout instanceof Layout ? layout.#parts : parts(layout);
  }

  /**
   * Takes an ID apart. `id`: a bigint, a decimal string, or a Number that is a safe integer.
   *
   * @throws {PolyflakeError} `INVALID_ID` for what is no ID of this layout.
   */
  decode(id: Integer): Decoded {
    core().decode(this.#parts.text, integer(id, "id"), decodedValues);
    return new Decoded(this, decodedValues);
  }

  /**
   * The ID of an instant (a Date, or Unix ms), rounded down to its tick, of a node and a sequence number: for
   * moving rows into an ID space, and for tests. Nothing keeps it from repeating an ID that was issued. `node`:
   * as in {@link SnowflakeOptions.node}; `null` where the layout has no node field.
   *
   * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, `INVALID_NODE`, or `INVALID_OPTION` for the sequence.
   */
  compose(time: Instant, node: Node | null, sequence: Integer): bigint {
    const nodes = node === null ? [] : nodeTexts(node);
    const sequences = integer(sequence, "sequence");
    return core().compose(this.#parts.text, unixMs(time), nodes, sequences);
  }

  /**
   * The lowest ID at or after an instant (a Date, or Unix ms): the lower end of a range of time.
   *
   * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, or `INVALID_LAYOUT` where a node field stands above the
   * timestamp.
   */
  minId(time: Instant): bigint {
    return core().minId(this.#parts.text, unixMs(time));
  }

  /**
   * The highest ID at or before an instant (a Date, or Unix ms): the upper end of a range of time.
   *
   * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, or `INVALID_LAYOUT` where a node field stands above the
   * timestamp.
   */
  maxId(time: Instant): bigint {
    return core().maxId(this.#parts.text, unixMs(time));
  }

  /** Every field, from the highest bit down. */
  get fields(): readonly Field[] {
    this.#fields ??= Object.freeze(this.#parts.fields.map((field) => Object.freeze(field)));
    return this.#fields;
  }

  /** The instant of tick 0, in Unix ms. */
  get epochMs(): bigint {
    return this.#parts.epochMs;
  }

  /** The instant of tick 0; `null` past the year 275760, where Date ends. */
  get epoch(): Date | null {
    return toDate(this.#parts.epochMs);
  }

  /** How long a tick lasts, in ms. */
  get tickMs(): bigint {
    return this.#parts.tickMs;
  }

  /** The layout's last instant, in Unix ms. */
  get endsAtMs(): bigint {
    return this.#parts.endsAtMs;
  }

  /** The layout's last instant; `null` past the year 275760, where Date ends. */
  get endsAt(): Date | null {
    return toDate(this.#parts.endsAtMs);
  }

  /** How many IDs one node can issue in a tick. */
  get idsPerTick(): number {
    return this.#parts.idsPerTick;
  }

  /** How many nodes the layout tells apart. */
  get nodes(): number {
    return this.#parts.nodes;
  }

  /** The width of all fields together. */
  get totalBits(): number {
    return this.#parts.totalBits;
  }

  /** The width of all node fields together. */
  get nodeBits(): number {
    return this.#parts.nodeBits;
  }

  /** The width of the timestamp. */
  get timestampBits(): number {
    return this.#field("timestamp").bits;
  }

  /** How many bits stand below the timestamp. */
  get timestampShift(): number {
    return this.#field("timestamp").shift;
  }

  /** The width of the sequence. */
  get sequenceBits(): number {
    return this.#field("sequence").bits;
  }

  /** How many bits stand below the sequence. */
  get sequenceShift(): number {
    return this.#field("sequence").shift;
  }

  /** Whether both give every ID the same meaning: the same fields, epoch and tick. */
  equals(other: Layout): boolean {
    return other instanceof Layout && other.#parts.text === this.#parts.text;
  }

  /** The layout's text, which `new Layout` reads. */
  toString(): string {
    return this.#parts.text;
  }

  /** The layout's text. */
  toJSON(): string {
    return this.#parts.text;
  }

  /** @internal */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `Layout('${this.#parts.text}')`;
  }

  #field(name: string): FieldParts {
    // A layout without these two does not parse.
    return this.#parts.fields.find((field) => field.name === name) as FieldParts;
  }
}

function parts(layout: string | LayoutFields): LayoutParts {
  if (typeof layout === "string") return core().layout(layout);
  if (typeof layout !== "object" || layout === null || !("fields" in layout)) {
    throw wrongType(layout, "layout", "a string, a Layout or an object with fields and epochMs");
  }
  const { fields, epochMs, tickMs = 1, ...unknown } = layout;
  for (const name of Object.keys(unknown)) {
    throw new TypeError(`a layout has no part ${name}; it has fields, epochMs and tickMs`);
  }
  if (typeof fields !== "object" || fields === null) {
    throw wrongType(fields, "fields", "pairs of a name and a width, or an object of them");
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

// What an ID decodes to: five values and at most eight node fields'.
const decodedValues = new BigUint64Array(13);

/** A field of a layout. */
export interface Field {
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
export class Decoded {
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
  readonly #layout: Layout;

  /** @internal */
  constructor(layout: Layout, values: BigUint64Array) {
    const [id, timestampMs, ticks, node, sequence] = values as unknown as [
      bigint,
      bigint,
      bigint,
      bigint,
      bigint,
    ];
    this.#layout = layout;
    this.id = id;
    this.timestampMs = timestampMs;
    this.ticks = ticks;
    this.node = Number(node);
    this.sequence = Number(sequence);
    const fields: Record<string, number> = {};
    let at = 5;
    for (const { name } of layout.fields) {
      if (name !== "timestamp" && name !== "sequence") fields[name] = Number(values[at++]);
    }
    this.fields = Object.freeze(fields);
    Object.freeze(this);
  }

  /** The start of the ID's tick; `null` past the year 275760, where Date ends. */
  get time(): Date | null {
    return toDate(this.timestampMs);
  }

  /** The layout it was taken apart by. */
  get layout(): Layout {
    return this.#layout;
  }

  /** Whether both are the same ID of the same layout. */
  equals(other: Decoded): boolean {
    return other instanceof Decoded && other.id === this.id && other.layout.equals(this.layout);
  }

  /** JSON has no bigint: the ID and what else may pass 2^53 become decimal strings. */
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
}
