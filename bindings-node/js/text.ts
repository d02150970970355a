import type { Integer } from "./convert.js";
import { bigintOf, integer, text } from "./convert.js";
import { core } from "./core.js";

/**
 * The ways to write an ID as text: `decimal`; `hex`; `base32` (Crockford, always 13 digits, sorts as the IDs do);
 * `base36`; `base58` (Bitcoin's alphabet); `base62` (0-9A-Za-z, always 11 digits, sorts as the IDs do); `uuid` (a
 * version 8 UUID, for columns of that type, sorts as the IDs do); `bwmarrin-base32` and `bwmarrin-base58` (the
 * alphabets of the Go package `bwmarrin/snowflake`).
 */
export type Format =
  | "decimal"
  | "hex"
  | "base32"
  | "base36"
  | "base58"
  | "base62"
  | "uuid"
  | "bwmarrin-base32"
  | "bwmarrin-base58";

let formats: Map<string, number> | undefined;

/** Returns a format's position in the core's list, or undefined if the core does not have the format. */
export function formatNumber(format: Format): number | undefined {
  formats ??= new Map(
    core()
      .formats()
      .map((name, at) => [name, at]),
  );
  return formats.get(format);
}

/**
 * Writes an ID as text; `format` is `decimal` by default.
 *
 * @throws {PolyflakeError} `INVALID_ID`, or `INVALID_OPTION` for an unknown format.
 *
 * @example
 * ```js
 * import { formatId } from "polyflake";
 *
 * console.log(formatId(1541815603606036480n, "base62")); // 1ptWyK4WgZU
 * ```
 */
export function formatId(id: Integer, format: Format = "decimal"): string {
  const given = bigintOf(id);
  const number = formatNumber(format);
  if (given === undefined || number === undefined || BigInt.asUintN(64, given) !== given) {
    return core().formatId(integer(id, "id"), text(format, "format"));
  }
  return format === "decimal" ? String(given) : core().idText(given, number);
}

/**
 * Reads an ID from text; `format` is `decimal` by default. `base32`, `base36`, `hex` and `uuid` accept upper and lower
 * case, and `base32` also accepts I and L as 1 and O as 0. A UUID that does not represent an ID is rejected.
 *
 * @throws {PolyflakeError} `INVALID_ID` with the position of the first wrong character, or `INVALID_OPTION` for an
 * unknown format.
 *
 * @example
 * ```js
 * import { parseId } from "polyflake";
 *
 * console.log(parseId("1ASD13XH1F800", "base32")); // 1541815603606036480n
 * ```
 */
export function parseId(text_: string, format: Format = "decimal"): bigint {
  return core().parseId(text(text_, "an ID's text"), text(format, "format"));
}
