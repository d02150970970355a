// The entry point `polyflake/decode`, which reads IDs without the core, using facts that the build takes from the core
// (see facts.js). Its error messages say the same as the core's, some of them in fewer words to stay within 3 KB.
import type { ErrorFacts, FormatFacts } from "polyflake/facts";
import { formats, INVALID_ID, INVALID_LAYOUT, INVALID_OPTION, TIME_OUT_OF_RANGE } from "polyflake/facts";
import type { Instant, Integer } from "./convert.js";
import { integer, text, toDate, unixMs, wrongType } from "./convert.js";
import { PolyflakeError } from "./errors.js";
import type { LayoutFields as AnyLayoutFields } from "./layout.js";
import type { Format } from "./text.js";

export * from "polyflake/presets";
export type { Instant, Integer } from "./convert.js";
export type { PolyflakeErrorCode } from "./errors.js";
export { PolyflakeError } from "./errors.js";
export type { Format } from "./text.js";

/** A layout as an object. `new Layout` from the entry point `polyflake` accepts it too. */
export interface LayoutFields extends Omit<AnyLayoutFields, "fields"> {
  /**
   * Each field's name and width in bits, highest field first, as an object or an array of pairs. Each call reads them
   * again.
   */
  fields: readonly (readonly [name: string, bits: Integer])[] | Readonly<Record<string, Integer>>;
}

/** A field: its name, its width, and the number of bits below it. */
type Place = readonly [name: string, bits: number, shift: bigint];

/** A layout: its fields from the highest down, its timestamp and sequence fields, its width, its epoch and its tick. */
type Parts = readonly [Place[], timestamp: Place, sequence: Place, bits: number, epoch: bigint, tick: bigint];

/** A decoded ID, from {@link decode}. */
export class Decoded {
  // Declared without values, because assigning them all at once in the constructor takes less code.
  /** The ID. */
  declare readonly id: bigint;
  /** The start of the ID's tick; `null` past the year 275760, the end of Date's range. */
  declare readonly time: Date | null;
  /** The start of the ID's tick, in Unix ms. */
  declare readonly timestampMs: bigint;
  /** The number of ticks since the epoch. */
  declare readonly ticks: bigint;
  /** All node bits as one number. */
  declare readonly node: number;
  /** The name and value of each node field, highest field first. */
  declare readonly fields: Readonly<Record<string, number>>;
  /** The sequence number within the tick. */
  declare readonly sequence: number;
  /** The layout that decoded the ID. */
  declare readonly layout: LayoutFields;

  /** @internal */
  constructor(id: bigint, layout: LayoutFields, [places, timestamp, sequence, , epoch, tick]: Parts) {
    const take = ([, bits, shift]: Place) => BigInt.asUintN(bits, id >> shift);
    const fields: Record<string, number> = {};
    let node = 0n;
    for (const place of places) {
      if (place === timestamp || place === sequence) continue;
      const value = take(place);
      fields[place[0]] = Number(value);
      node = (node << BigInt(place[1])) | value;
    }
    const ticks = take(timestamp);
    const timestampMs = epoch + ticks * tick;
    Object.assign(this, {
      id,
      time: toDate(timestampMs),
      timestampMs,
      ticks,
      node: Number(node),
      fields: Object.freeze(fields),
      sequence: Number(take(sequence)),
      layout,
    });
  }

  /**
   * Returns the values for JSON. JSON has no bigint, so the ID and other values that may exceed 2^53 become decimal
   * strings.
   */
  toJSON(): Record<string, unknown> {
    const { layout, ...values } = this;
    return {
      ...values,
      id: String(this.id),
      timestampMs: String(this.timestampMs),
      ticks: String(this.ticks),
    };
  }
}

/**
 * Decodes an ID: a bigint, a decimal string, or a Number that is a safe integer. `layout` is a preset, or your own
 * object in the form that `new Layout` from the entry point `polyflake` accepts, but not a `Layout`.
 *
 * @throws {PolyflakeError} `INVALID_ID` if it is not an ID of this layout; `INVALID_LAYOUT` if the layout has no
 * timestamp, no sequence, or more than 64 bits, or if a name, a width, the epoch or the tick is not valid. `new Layout`
 * also checks the rest of the layout. A value of the wrong type is a `TypeError`.
 *
 * @example
 * ```js
 * import { decode, discord } from "polyflake/decode";
 *
 * const decoded = decode("175928847299117063", discord);
 * console.log(decoded.fields.worker); // 1
 * console.log(decoded.time?.toISOString()); // 2016-04-30T11:18:25.796Z
 * ```
 */
export function decode(id: Integer, layout: LayoutFields): Decoded {
  const given = integer(id, "id");
  const parts = partsOf(layout);
  return new Decoded(idOf(given, parts[3]), layout, parts);
}

/**
 * Returns the lowest ID at or after an instant (a Date, or Unix ms), for the lower bound of a time range. `layout` is
 * as in {@link decode}.
 *
 * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, `INVALID_LAYOUT` if a node field is above the timestamp, or any error
 * that {@link decode} throws.
 *
 * @example
 * ```js
 * import { minId, twitter } from "polyflake/decode";
 *
 * console.log(minId(new Date("2022-06-28T16:07:40Z"), twitter)); // 1541815603165593600n
 * ```
 */
export function minId(time: Instant, layout: LayoutFields): bigint {
  return bound(time, layout, true);
}

/**
 * Returns the highest ID at or before an instant (a Date, or Unix ms), for the upper bound of a time range. `layout` is
 * as in {@link decode}.
 *
 * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, `INVALID_LAYOUT` if a node field is above the timestamp, or any error
 * that {@link decode} throws.
 */
export function maxId(time: Instant, layout: LayoutFields): bigint {
  return bound(time, layout, false);
}

/**
 * Writes an ID as text; `format` is `decimal` by default.
 *
 * @throws {PolyflakeError} `INVALID_ID`, or `INVALID_OPTION` for an unknown format.
 *
 * @example
 * ```js
 * import { formatId } from "polyflake/decode";
 *
 * console.log(formatId(1541815603606036480n, "base62")); // 1ptWyK4WgZU
 * ```
 */
export function formatId(id: Integer, format: Format = "decimal"): string {
  const [given, name] = [integer(id, "id"), text(format, "format")];
  let rest = idOf(given, 64);
  const { digits, length, sorts } = formatOf(name);
  let written = "";
  for (let place = length; rest > 0n || written.length < (sorts ? length : 1); ) {
    place -= 1;
    const here = digitsAt(digits, place);
    const base = BigInt(here.length);
    written = here[Number(rest % base)] + written;
    rest /= base;
  }
  return written;
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
 * import { parseId } from "polyflake/decode";
 *
 * console.log(parseId("1ASD13XH1F800", "base32")); // 1541815603606036480n
 * ```
 */
export function parseId(text_: string, format: Format = "decimal"): bigint {
  const [given, name] = [text(text_, "an ID's text"), text(format, "format")];
  const { digits, length, read, as } = formatOf(name);
  let id = 0n;
  let position = 0;
  for (const character of given) {
    const here = digitsAt(digits, position);
    const digit = here.indexOf(as[read.indexOf(character)] ?? character);
    position += 1;
    const at = `at position ${position}`;
    if (digit < 0) {
      fail(INVALID_ID, `\`${shown(character)}\` ${at} is not a ${name} digit; the digits are ${here}`);
    }
    if (position > length) {
      fail(INVALID_ID, `a ${name} ID has at most ${length} characters; there is another ${at}`);
    }
    id = id * BigInt(here.length) + BigInt(digit);
    if (id >> 64n) fail(INVALID_ID, `the ${name} ID exceeds 64 bits (${ones(64)}) ${at}`);
  }
  if (position >= digits.length) return id;
  fail(
    INVALID_ID,
    position === 0
      ? `an empty string is not a ${name} ID`
      : `a ${name} ID has ${length} characters; this string has ${position}`,
  );
}

/**
 * Returns the digits allowed at a position. A format with the same digits at every position lists them once, for the
 * first.
 */
const digitsAt = (digits: readonly string[], place: number) => digits[place] ?? (digits[0] as string);

const formatOf = (name: string): FormatFacts =>
  formats[name] ??
  fail(INVALID_OPTION, `format is \`${shown(name)}\`; it takes ${Object.keys(formats).join(", ")}`);

/** Returns the highest value that fits into this many bits. */
const ones = (bits: number) => BigInt.asUintN(bits, -1n);

const idOf = (given: string, bits: number): bigint =>
  whole(given, 0n, ones(bits), INVALID_ID, () => `ID ${shown(given)} does not fit ${bits} bits`);

/** Parses a number in this range, which must consist of decimal digits and nothing else. */
function whole(given: string, min: bigint, max: bigint, error: ErrorFacts, says: () => string): bigint {
  if (/^(0|[1-9]\d{0,19})$/.test(given) && BigInt(given) >= min && BigInt(given) <= max) return BigInt(given);
  fail(error, `${says()}; it takes ${min} to ${max}`);
}

/** Parses a number in a layout. */
function part(value: Integer, what: string, min: bigint, max = ones(63)): bigint {
  const given = integer(value, what);
  return whole(given, min, max, INVALID_LAYOUT, () => `${what} is \`${shown(given)}\``);
}

function partsOf(layout: LayoutFields): Parts {
  if (Object(layout) !== layout) throw wrongType(layout, "layout", "an object with fields");
  const { fields, epochMs, tickMs = 1 } = layout;
  const places: Place[] = [];
  let bits = 0;
  for (const pair of (Array.isArray(fields) ? [...fields] : Object.entries(Object(fields))).reverse()) {
    const name = text(pair[0], "a field's name");
    if (!/^[a-z][a-z\d_-]{0,23}$/.test(name)) {
      fail(INVALID_LAYOUT, `\`${shown(name)}\` is not a field name`);
    }
    const width = Number(part(pair[1], `width of ${name}`, 1n, 64n));
    places.unshift([name, width, BigInt(bits)]);
    bits += width;
  }
  const [timestamp, sequence] = ["timestamp", "sequence"].map(
    (wanted) =>
      places.find(([name]) => name === wanted) ?? fail(INVALID_LAYOUT, `there is no ${wanted} field`),
  ) as [Place, Place];
  part(bits, "width of all", 1n, 64n);
  return [places, timestamp, sequence, bits, part(epochMs, "epochMs", 0n), part(tickMs, "tickMs", 1n)];
}

function bound(time: Instant, layout: LayoutFields, isLowest: boolean): bigint {
  const given = unixMs(time);
  const [places, timestamp, , , epoch, tick] = partsOf(layout);
  if (places[0] !== timestamp) {
    fail(INVALID_LAYOUT, `node field ${(places[0] as Place)[0]} is above the timestamp`);
  }
  const [, bits, shift] = timestamp;
  const lastTick = ones(bits);
  const after = BigInt(given) - epoch;
  let ticks = after / tick;
  if (after < 0n || ticks > lastTick) {
    fail(
      TIME_OUT_OF_RANGE,
      `${shown(given)} (Unix ms) is outside the layout's range, from its epoch ${epoch} to its end ${epoch + (lastTick + 1n) * tick - 1n}`,
    );
  }
  if (isLowest && after % tick) ticks += 1n;
  if (ticks > lastTick) {
    fail(
      TIME_OUT_OF_RANGE,
      `no tick begins at or after ${given} (Unix ms); the layout's last begins at ${epoch + lastTick * tick}`,
    );
  }
  return isLowest ? ticks << shift : ((ticks + 1n) << shift) - 1n;
}

// The type is written out so that TypeScript treats the code after a call as unreachable.
const fail: (error: ErrorFacts, message: string) => never = ([number, name], message) => {
  throw new PolyflakeError(number, name.toUpperCase(), `${name}: ${message}`);
};

/** Formats a caller's string for a message: shortened if it is long, with special characters as code points. */
const shown = (given: string) =>
  given
    .replace(/^(.{40}).+/su, "$1…")
    .replace(/[^ -~…]/gu, (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`);
