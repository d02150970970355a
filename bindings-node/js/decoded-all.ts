import { lengthOf } from "../../bindings-wasm/js/arrays.js";
import type { Column } from "../../bindings-wasm/js/backend.js";
import { core } from "./core.js";
import { isNode } from "./decoded.js";
import type { Layout } from "./layout.js";

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
