import type { Backend, BackendPublicIds } from "../../bindings-wasm/js/backend.js";
import type { Integer } from "./convert.js";
import { bigintOf, integer, text, wrongType } from "./convert.js";
import { core } from "./core.js";

/**
 * Turns IDs into short texts for outsiders, such as `order_15ShV20Bxc6UJvKSQbDvo0J`, and back. A text hides when and
 * where an ID was issued, and decoding it needs no table.
 *
 * Available only in Node and workerd, because the users of a browser must not have the keys. Create it once and reuse
 * it. `console.log` does not show its keys.
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
  /** The prefix of the texts. */
  readonly prefix: string;
  /** The numbers of the keys. The first key encodes. */
  readonly keyNumbers: readonly number[];

  /**
   * @param keys - The first key encodes, and every key decodes. A string may contain several keys, separated by white
   * space or commas. {@link PublicIds.generateKey} and `polyflake public key` generate keys.
   * @param prefix - Words of the characters a-z and 0-9, joined by `_`, at most 24 characters in all, or `""`.
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
   * Returns an ID's text.
   *
   * @throws {PolyflakeError} `INVALID_ID` if it is not a 64-bit ID.
   */
  encode(id: Integer): string {
    const number = bigintOf(id);
    return number !== undefined && BigInt.asUintN(64, number) === number
      ? this.#inner.encode(number)
      : this.#inner.encodeText(integer(id, "id"));
  }

  /**
   * Returns the texts of IDs, such as those on a page of rows.
   *
   * @throws {PolyflakeError} `INVALID_ID` if one of them is not a 64-bit ID.
   */
  encodeAll(ids: Iterable<Integer>): string[] {
    return Array.from(listed(ids, "ids"), (id) => this.encode(id));
  }

  /**
   * Returns the ID of a text. A text that was not encoded with this prefix and one of these keys decodes with a chance
   * of 1 in 2^64.
   *
   * @throws {PolyflakeError} `INVALID_ID` for any other text, with the reason.
   */
  decode(publicId: string): bigint {
    return this.#inner.decode(text(publicId, "the public ID"));
  }

  /**
   * Returns the IDs of texts.
   *
   * @throws {PolyflakeError} `INVALID_ID` if one of them is not the text of an ID, with the reason.
   */
  decodeAll(publicIds: Iterable<string>): BigUint64Array {
    return BigUint64Array.from(Array.from(listed(publicIds, "the public IDs"), (one) => this.decode(one)));
  }

  /**
   * Generates a key from the operating system's random bytes. Keep it where you keep secrets.
   *
   * @param number - The key's number, from 0 to 61. Texts contain it, so give each key a different one. Default: 0.
   *
   * @throws {PolyflakeError} `INVALID_OPTION` for any other number.
   */
  static generateKey(number: Integer = 0): string {
    return backend("generatePublicKey")(integer(number, "number"));
  }
}

/** Checks that a value is an iterable object. A string passed by mistake would be split into characters. */
function listed<T>(items: Iterable<T>, what: string): Iterable<T> {
  if (typeof items === "object" && items !== null && Symbol.iterator in items) return items;
  throw wrongType(items, what, "an array or another iterable");
}

/** Returns a function of the backend. It exists in the entry points that export this class. */
function backend<Name extends "publicIds" | "generatePublicKey">(name: Name) {
  return core()[name] as NonNullable<Backend[Name]>;
}
