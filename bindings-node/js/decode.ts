// The entry point `polyflake/decode`: reads IDs without the core, by facts that the build takes from it (see facts.js). Errors
// say what the core's say, some in fewer words, to stay within 3 KB.
import type { ErrorFacts, FormatFacts } from "polyflake/facts";
import { formats, INVALID_ID, INVALID_LAYOUT, INVALID_OPTION, TIME_OUT_OF_RANGE } from "polyflake/facts";
import type { Instant, Integer } from "./convert.js";
import { integer, text, toDate, unixMs, wrongType } from "./convert.js";
import { PolyflakeError } from "./errors.js";
import type { LayoutFields } from "./layout.js";
import type { Format } from "./text.js";

export * from "polyflake/presets";
export type { Instant, Integer } from "./convert.js";
export type { PolyflakeErrorCode } from "./errors.js";
export { PolyflakeError } from "./errors.js";
export type { LayoutFields } from "./layout.js";
export type { Format } from "./text.js";

/** A field: its name, its width, and how many bits are below it. */
type Place = readonly [name: string, bits: number, shift: bigint];

/** A layout: its fields from the highest down, the two that it needs, its width, its epoch and its tick. */
type Parts = readonly [Place[], timestamp: Place, sequence: Place, bits: number, epoch: bigint, tick: bigint];

/** A decoded ID, from {@link decode}. */
export class Decoded {
  // `declare`: the constructor assigns all of them at once, which is shorter.
  /** The ID. */
  declare readonly id: bigint;
  /** The start of the ID's tick; `null` past the year 275760, where Date ends. */
  declare readonly time: Date | null;
  /** The start of the ID's tick, in Unix ms. */
  declare readonly timestampMs: bigint;
  /** The number of ticks since the epoch. */
  declare readonly ticks: bigint;
  /** All node bits as one number. */
  declare readonly node: number;
  /** The name and value of each node field, the highest first. */
  declare readonly fields: Readonly<Record<string, number>>;
  /** The sequence number within the tick. */
  declare readonly sequence: number;
  /** The layout that decoded it. */
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

  /** JSON has no bigint: the ID, and what else may exceed 2^53, become decimal strings. */
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
 * Decodes an ID: a bigint, a decimal string, or a Number that is a safe integer. `layout`: a preset, or an object of your
 * own, as `new Layout` of the entry `polyflake` takes it.
 *
 * @throws {PolyflakeError} `INVALID_ID` if it is not an ID of this layout; `INVALID_LAYOUT` if the layout has no timestamp,
 * no sequence, or more than 64 bits. `new Layout` checks the rest of it.
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
 * The lowest ID at or after an instant (a Date, or Unix ms): the lower bound of a time range. `layout`: as for
 * {@link decode}.
 *
 * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, or `INVALID_LAYOUT` if a node field is above the
 * timestamp.
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
 * The highest ID at or before an instant (a Date, or Unix ms): the upper bound of a time range. `layout`: as for
 * {@link decode}.
 *
 * @throws {PolyflakeError} `TIME_OUT_OF_RANGE`, or `INVALID_LAYOUT` if a node field is above the
 * timestamp.
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
 * Reads an ID from text; `format` is `decimal` by default. `base32`, `base36`, `hex` and `uuid` accept
 * upper and lower case, and `base32` also accepts I and L as 1 and O as 0. A UUID that no ID is written as is refused.
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
      throw failure(
        INVALID_ID,
        `\`${shown(character)}\` ${at} is not a ${name} digit; the digits are ${here}`,
      );
    }
    if (position > length) {
      throw failure(INVALID_ID, `a ${name} ID has at most ${length} characters; there is another ${at}`);
    }
    id = id * BigInt(here.length) + BigInt(digit);
    if (id >> 64n) throw failure(INVALID_ID, `the ${name} ID passes 64 bits (18446744073709551615) ${at}`);
  }
  if (position >= digits.length) return id;
  throw failure(
    INVALID_ID,
    position === 0
      ? `an empty text is not a ${name} ID`
      : `a ${name} ID has ${length} characters; this text has ${position}`,
  );
}

/** The digits of a place. If there is none, those of the first. */
const digitsAt = (digits: readonly string[], place: number) => digits[place] ?? (digits[0] as string);

function formatOf(name: string): FormatFacts {
  const format = formats[name];
  if (format) return format;
  throw failure(INVALID_OPTION, `format is \`${shown(name)}\`; it takes ${Object.keys(formats).join(", ")}`);
}

/** The highest value of so many bits. */
const ones = (bits: number) => (1n << BigInt(bits)) - 1n;

function idOf(given: string, bits: number): bigint {
  const max = ones(bits);
  if (/^(0|[1-9]\d{0,19})$/.test(given) && BigInt(given) <= max) return BigInt(given);
  throw failure(INVALID_ID, `ID ${shown(given)} does not fit ${bits} bits; it takes 0 to ${max}`);
}

function partsOf(layout: LayoutFields): Parts {
  if (Object(layout) !== layout) throw wrongType(layout, "layout", "an object with fields and epochMs");
  const { fields, epochMs, tickMs = 1 } = layout;
  if (!fields) throw new TypeError("layout has no fields");
  const places: Place[] = [];
  let bits = 0;
  for (const [name, width] of [...(Symbol.iterator in fields ? fields : Object.entries(fields))].reverse()) {
    places.unshift([name, Number(width), BigInt(bits)]);
    bits += Number(width);
  }
  const [timestamp, sequence] = ["timestamp", "sequence"].map((wanted) => {
    const place = places.find(([name]) => name === wanted);
    if (place) return place;
    throw failure(INVALID_LAYOUT, `there is no ${wanted} field`);
  }) as [Place, Place];
  if (bits > 64) {
    throw failure(INVALID_LAYOUT, `the fields take ${bits} bits; an ID has 64`);
  }
  return [places, timestamp, sequence, bits, BigInt(integer(epochMs, "epochMs")), BigInt(tickMs)];
}

function bound(time: Instant, layout: LayoutFields, isLowest: boolean): bigint {
  const given = unixMs(time);
  const [places, timestamp, , , epoch, tick] = partsOf(layout);
  if (places[0] !== timestamp) {
    throw failure(
      INVALID_LAYOUT,
      `IDs of this layout do not sort by time: node field ${places[0]?.[0]} is above the timestamp`,
    );
  }
  const [, bits, shift] = timestamp;
  const lastTick = ones(bits);
  const after = BigInt(given) - epoch;
  let ticks = after / tick;
  if (after < 0n || ticks > lastTick) {
    throw failure(
      TIME_OUT_OF_RANGE,
      `${shown(given)} (Unix ms) is outside the layout's time, from its epoch ${epoch} to its end ${epoch + (lastTick + 1n) * tick - 1n}`,
    );
  }
  if (isLowest && after % tick > 0n) ticks += 1n;
  if (ticks > lastTick) {
    throw failure(
      TIME_OUT_OF_RANGE,
      `no tick begins at or after ${given} (Unix ms); the layout's last begins at ${epoch + lastTick * tick}`,
    );
  }
  return isLowest ? ticks << shift : ((ticks + 1n) << shift) - 1n;
}

const failure = ([number, name]: ErrorFacts, message: string) =>
  new PolyflakeError(number, name.toUpperCase(), `${name}: ${message}`);

/** A caller's text, cut where it is long, with characters that are not plain as their numbers. */
const shown = (given: string) =>
  given
    .replace(/^(.{40}).+/su, "$1…")
    .replace(/[^ -~…]/gu, (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`);
