import type { Field, LayoutParts } from "../../bindings-wasm/js/backend.js";
import { toDate } from "./convert.js";

// A bigint and its halves. Arithmetic on bigints allocates every result, but arithmetic on 32-bit Numbers does not.
export const whole = new BigUint64Array(1);
export const halves = new Int32Array(whole.buffer);
export const [LOW, HIGH] =
  new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? ([0, 1] as const) : ([1, 0] as const);

/** Converts a whole Number to a bigint in half the time that `BigInt(number)` takes. */
function toBigint(number: number): bigint {
  halves[LOW] = number;
  halves[HIGH] = number / 2 ** 32;
  return whole[0] as bigint;
}

/** A field's bits in each half of an ID, and the weight of each half's lowest bit within the field. */
class FieldReader {
  readonly name: string;
  readonly size: number;
  readonly #high: number;
  readonly #low: number;
  readonly #highUnit: number;
  readonly #lowUnit: number;

  constructor({ name, bits, shift, mask }: Field) {
    this.name = name;
    this.size = 2 ** bits;
    whole[0] = mask;
    this.#high = halves[HIGH] as number;
    this.#low = halves[LOW] as number;
    this.#highUnit = 2 ** (32 - shift);
    this.#lowUnit = 2 ** -shift;
  }

  /**
   * Returns the field's value. It is exact for a field of at most 53 bits, because scaling by powers of two does not
   * round.
   */
  of(high: number, low: number): number {
    return ((high & this.#high) >>> 0) * this.#highUnit + ((low & this.#low) >>> 0) * this.#lowUnit;
  }
}

export const isNode = (name: string) => name !== "timestamp" && name !== "sequence";

/** The maximum number of nodes whose fields are cached for a layout. */
const KEPT_NODES = 1024;

/**
 * Decodes a layout's IDs with shifts and masks, which the core provides together with the layout. Every ID that reaches
 * this class fits the layout, so nothing needs checking.
 *
 * @internal
 */
export class Reader {
  /** The layout string. */
  readonly text: string;
  readonly maxId: bigint;
  readonly sequence: FieldReader;
  readonly #timestamp: FieldReader;
  readonly #nodes: FieldReader[];
  readonly #epochMs: number;
  readonly #tickMs: number;
  readonly #parts: LayoutParts;
  /** Whether Numbers can represent every instant of the layout exactly, and therefore every tick. */
  readonly #isExact: boolean;
  /**
   * A cache of nodes' fields. Most IDs come from a few nodes, and creating a frozen object takes 300 ns.
   */
  readonly #fields = new Map<number, Readonly<Record<string, number>>>();

  constructor(parts: LayoutParts) {
    const { fields, epochMs, tickMs, endsAtMs } = parts;
    const reader = (name: string) => new FieldReader(fields.find((field) => field.name === name) as Field);
    this.text = parts.text;
    this.maxId = fields.reduce((all, { mask }) => all | mask, 0n);
    this.sequence = reader("sequence");
    this.#timestamp = reader("timestamp");
    this.#nodes = fields.filter(({ name }) => isNode(name)).map((field) => new FieldReader(field));
    this.#epochMs = Number(epochMs);
    this.#tickMs = Number(tickMs);
    this.#parts = parts;
    this.#isExact = endsAtMs <= Number.MAX_SAFE_INTEGER;
  }

  ticks(id: bigint, high: number, low: number): bigint {
    if (this.#isExact) return toBigint(this.#timestamp.of(high, low));
    const { mask, shift } = this.#parts.fields.find(({ name }) => name === "timestamp") as Field;
    return (id & mask) >> BigInt(shift);
  }

  timestampMs(id: bigint, high: number, low: number): bigint {
    if (this.#isExact) return toBigint(this.#exactMs(high, low));
    return this.#parts.epochMs + this.ticks(id, high, low) * this.#parts.tickMs;
  }

  time(id: bigint, high: number, low: number): Date | null {
    return toDate(this.#isExact ? this.#exactMs(high, low) : this.timestampMs(id, high, low));
  }

  node(high: number, low: number): number {
    let node = 0;
    for (const field of this.#nodes) node = node * field.size + field.of(high, low);
    return node;
  }

  fields(high: number, low: number): Readonly<Record<string, number>> {
    const node = this.node(high, low);
    return this.#fields.get(node) ?? this.#newFields(node, high, low);
  }

  #newFields(node: number, high: number, low: number): Readonly<Record<string, number>> {
    const fields: Record<string, number> = {};
    for (const field of this.#nodes) fields[field.name] = field.of(high, low);
    if (this.#fields.size >= KEPT_NODES) this.#fields.clear();
    this.#fields.set(node, Object.freeze(fields));
    return fields;
  }

  #exactMs(high: number, low: number): number {
    return this.#epochMs + this.#timestamp.of(high, low) * this.#tickMs;
  }
}
