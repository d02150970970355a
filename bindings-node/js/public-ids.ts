import type { Backend, BackendPublicIds } from "../../bindings-wasm/js/backend.js";
import type { Integer } from "./convert.js";
import { bigintOf, integer, text, wrongType } from "./convert.js";
import { core } from "./core.js";

/**
 * Turns IDs into short texts for the outside, such as `order_15ShV20Bxc6UJvKSQbDvo0J`, and back. A text hides when and where
 * an ID was made, and needs no table.
 *
 * Only in Node and workerd: the users of a browser must not have the keys. Create it once; `console.log` does not show its
 * keys.
 *
 * @example
 * ```js
 * import { PublicIds } from "polyflake";
 *
 * // An example's key. Read yours from a file or a secret store.
 * const orders = new PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "order");
 * console.log(orders.encode(1541815603606036480n)); // order_15ShV20Bxc6UJvKSQbDvo0J
 * console.log(orders.decode("order_15ShV20Bxc6UJvKSQbDvo0J")); // 1541815603606036480n
 * ```
 */
export class PublicIds {
  readonly #inner: BackendPublicIds;
  /** What texts begin with. */
  readonly prefix: string;
  /** The numbers of the keys. The first encodes. */
  readonly keyNumbers: readonly number[];

  /**
   * @param keys - The first encodes, and each decodes. A string may hold several, separated by white space or commas.
   * {@link PublicIds.generateKey} and `polyflake public key` make keys.
   * @param prefix - Words of a-z and 0-9 joined by `_`, at most 24 characters, or `""`.
   *
   * @throws {PolyflakeError} `INVALID_OPTION` if a key or the prefix is invalid, if two keys have the same number or the same
   * bytes, or if there are no keys or more than 16. The message does not show any part of a key.
   */
  constructor(keys: string | readonly string[], prefix: string) {
    if (typeof keys !== "string" && !Array.isArray(keys)) {
      throw wrongType(keys, "keys", "a string or an array of strings");
    }
    const texts = [keys].flat().map((key) => text(key, "a key"));
    const prefixText = text(prefix, "prefix");
    this.#inner = backend("publicIds")(texts, prefixText);
    this.prefix = prefixText;
    this.keyNumbers = this.#inner.keyNumbers;
  }

  /**
   * The text of an ID.
   *
   * @throws {PolyflakeError} `INVALID_ID` if it is not an ID of 64 bits.
   */
  encode(id: Integer): string {
    const number = bigintOf(id);
    return number !== undefined && BigInt.asUintN(64, number) === number
      ? this.#inner.encode(number)
      : this.#inner.encodeText(integer(id, "id"));
  }

  /**
   * The texts of IDs, such as those of a page of rows.
   *
   * @throws {PolyflakeError} `INVALID_ID` if one of them is not an ID of 64 bits.
   */
  encodeAll(ids: Iterable<Integer>): string[] {
    return Array.from(listed(ids, "ids"), (id) => this.encode(id));
  }

  /**
   * The ID of a text. A text that was not encoded with this prefix and one of these keys decodes with a chance of 1 in 2^64.
   *
   * @throws {PolyflakeError} `INVALID_ID` for any other text, with the reason.
   */
  decode(publicId: string): bigint {
    return this.#inner.decode(text(publicId, "the public ID"));
  }

  /**
   * The IDs of texts.
   *
   * @throws {PolyflakeError} `INVALID_ID` if one of them is not the text of an ID, with the reason.
   */
  decodeAll(publicIds: Iterable<string>): BigUint64Array {
    return BigUint64Array.from(Array.from(listed(publicIds, "the public IDs"), (one) => this.decode(one)));
  }

  /**
   * Makes a key of random bytes from the operating system. Keep it where you keep secrets.
   *
   * @param number - Which key it is, from 0 to 61. Texts name their key by it, so give each key another. Default: 0.
   *
   * @throws {PolyflakeError} `INVALID_OPTION` for another number.
   */
  static generateKey(number: Integer = 0): string {
    return backend("generatePublicKey")(integer(number, "number"));
  }
}

/** What an iterable has. A string, given by mistake, would be taken apart. */
function listed<T>(items: Iterable<T>, what: string): Iterable<T> {
  if (typeof items === "object" && items !== null && Symbol.iterator in items) return items;
  throw wrongType(items, what, "an array or another iterable");
}

/** A call of the backend. The entry points that export this class have it. */
function backend<Name extends "publicIds" | "generatePublicKey">(name: Name) {
  return core()[name] as NonNullable<Backend[Name]>;
}
