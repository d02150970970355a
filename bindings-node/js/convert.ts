// Converts JavaScript values to strings that the core parses.
import { typeOf } from "../../bindings-wasm/js/arrays.js";
import type { NodeTexts, Reading } from "../../bindings-wasm/js/backend.js";
import { clockThrew } from "./errors.js";

/** A whole number: a bigint, a Number that is a safe integer, or a string of decimal digits. */
export type Integer = bigint | number | string;

/** An instant: a Date, or Unix ms. */
export type Instant = Date | bigint | number;

/** A node: a whole number for all node bits, or an object with a whole number for each node field. */
export type Node = Integer | Readonly<Record<string, Integer>>;

/**
 * Converts a whole number to text. The core checks its range, but a Number that may have lost digits is rejected here.
 */
export function integer(value: Integer, what: string): string {
  switch (typeof value) {
    case "bigint":
    case "string":
      return String(value);
    case "number":
      if (Number.isSafeInteger(value)) return String(value);
      throw new TypeError(
        `${what} is ${value}, which is not a ${
          Number.isInteger(value)
            ? "safe integer (-(2^53 - 1) to 2^53 - 1): Numbers beyond that lose digits; pass a bigint or a decimal string"
            : `whole number${Number.isNaN(value) ? "; Number(undefined) is NaN" : ""}`
        }`,
      );
    default:
      throw wrongType(value, what, "a bigint, a safe integer Number or a decimal string");
  }
}

/**
 * Converts an ID to a bigint if it is a bigint, a Number that is a safe integer, or a string of decimal digits. Returns
 * undefined for anything else, which the caller then passes to the core as the text from {@link integer}.
 */
export function bigintOf(id: Integer): bigint | undefined {
  switch (typeof id) {
    case "bigint":
      return id;
    case "string":
      return /^[1-9]\d{0,19}$/.test(id) ? BigInt(id) : undefined;
    case "number":
      return Number.isSafeInteger(id) ? BigInt(id) : undefined;
    default:
      return undefined;
  }
}

export function text(value: string, what: string, takes = "a string"): string {
  if (typeof value !== "string") throw wrongType(value, what, takes);
  return value;
}

/** Checks a path. */
export function path(value: string, what: string): string {
  return wellFormed(text(value, what), what, "a path");
}

/**
 * Checks that UTF-8 can represent a string. A lone surrogate has no encoding, and replacing it with U+FFFD would
 * produce a different string. The error does not show the string, which may be an address with a password.
 */
export function wellFormed(value: string, what: string, takes: string): string {
  const at = value.search(/\p{Surrogate}/u);
  if (at < 0) return value;
  const found = `\\u${value.charCodeAt(at).toString(16)}`;
  throw new TypeError(`${what} has ${found} at index ${at}; it must be ${takes} without lone surrogates`);
}

export function idArray(ids: BigUint64Array, what: string): BigUint64Array {
  // Not `instanceof`, which does not recognise arrays from another realm, such as Jest's.
  if (typeOf(ids) === "BigUint64Array") return ids;
  throw wrongType(ids, what, "a BigUint64Array");
}

export function nodeTexts(node: Node): NodeTexts {
  if (typeof node !== "object" || node === null) return integer(node, "node");
  if (Array.isArray(node)) throw wrongType(node, "node", "a whole number or an object of field to number");
  return Object.entries(node).flatMap(([name, value]) => [name, integer(value, `node field ${name}`)]);
}

/** Converts an instant to Unix ms as text. */
export function unixMs(time: Instant): string {
  const ms = time instanceof Date ? time.getTime() : time;
  if (typeof ms !== "number" && typeof ms !== "bigint") {
    throw wrongType(ms, "time", "a Date, or Unix ms as a Number or a bigint");
  }
  if (time instanceof Date && Number.isNaN(ms)) {
    throw new TypeError("time is an Invalid Date: its text or numbers were no date");
  }
  return integer(ms, "time");
}

/** Returns a Date, or null past the year 275760, the end of Date's range. */
export function toDate(unixMs: bigint | number): Date | null {
  const date = new Date(Number(unixMs));
  return Number.isNaN(date.getTime()) ? null : date;
}

/** Wraps a caller's clock. Anything that the clock throws is saved for the error that follows. */
export function reading(clock: () => number | bigint): Reading {
  return () => {
    try {
      return clockReading(clock());
    } catch (error) {
      clockThrew(error);
      return undefined;
    }
  };
}

function clockReading(value: number | bigint): bigint {
  const says = () => `the clock returned ${String(value)}; it must return whole Unix ms that fit 64 bits`;
  if (typeof value !== "number" && typeof value !== "bigint") throw new TypeError(says());
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw new RangeError(says());
  const ms = BigInt(value);
  if (BigInt.asIntN(64, ms) !== ms) throw new RangeError(says());
  return ms;
}

export function wrongType(value: unknown, what: string, takes: string): TypeError {
  const type = value === null ? "null" : Array.isArray(value) ? "an array" : typeof value;
  return new TypeError(`${what} must be ${takes}, not ${type}`);
}
