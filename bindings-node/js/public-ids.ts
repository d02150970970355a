import type { Backend, BackendPublicIds } from "../../bindings-wasm/js/backend.js";
import type { Integer } from "./convert.js";
import { bigintOf, integer, text, wrongType } from "./convert.js";
import { core } from "./core.js";

/**
 * Turns IDs into short strings for outsiders, such as `order_15ShV20Bxc6UJvKSQbDvo0J`, and back. Such a public ID hides
 * when and where the ID was issued, and decoding it needs no table.
 *
 * Available only in Node and workerd, because browser users must not have the keys. Create it once and reuse it.
 * `console.log` does not show its keys.
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
  /** The prefix of the public IDs. */
  readonly prefix: string;
  /** The keys' numbers. The first key is used for encoding. */
  readonly keyNumbers: readonly number[];

  /**
   * @param keys - The first key is used for encoding, and every key for decoding. A string may contain several keys,
   * separated by white space or commas. {@link PublicIds.generateKey} and `polyflake public key` generate keys.
   * @param prefix - Words of the characters a-z and 0-9, joined by `_`, at most 24 characters in all, or `""`.
   *
   * @throws {PolyflakeError} `INVALID_OPTION` if a key or the prefix is invalid, if two keys have the same number or
   * the same bytes, or if there are no keys or more than 16. The message does not show any part of a key.
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
   * Returns the public ID for an ID.
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
   * Returns the public IDs for several IDs, such as those on a page of rows.
   *
   * @throws {PolyflakeError} `INVALID_ID` if one of them is not a 64-bit ID.
   */
  encodeAll(ids: Iterable<Integer>): string[] {
    return Array.from(listed(ids, "ids"), (id) => this.encode(id));
  }

  /**
   * Returns the ID for a public ID. A string that was not encoded with this prefix and one of these keys has a 1 in
   * 2^64 chance of decoding.
   *
   * @throws {PolyflakeError} `INVALID_ID` for any other string, with the reason.
   */
  decode(publicId: string): bigint {
    return this.#inner.decode(text(publicId, "the public ID"));
  }

  /**
   * Returns the IDs for several public IDs.
   *
   * @throws {PolyflakeError} `INVALID_ID` if one of them is not a public ID, with the reason.
   */
  decodeAll(publicIds: Iterable<string>): BigUint64Array {
    return BigUint64Array.from(Array.from(listed(publicIds, "the public IDs"), (one) => this.decode(one)));
  }

  /**
   * Generates a key from the operating system's random bytes. Keep it where you keep secrets.
   *
   * @param number - The key's number, 0 to 61. Public IDs contain it, so give each key a different one. Default: 0.
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

/** Returns a backend function that exists in every entry point that exports this class. */
function backend<Name extends "publicIds" | "generatePublicKey">(name: Name) {
  return core()[name] as NonNullable<Backend[Name]>;
}
