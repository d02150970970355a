// How a string can be read as an ID, and which layouts the ID fits.
import { attempt, PRESETS } from "./core.js";
import { formatId, parseId } from "./polyflake.js";
import { duration, fromNow } from "./words.js";

/** @import { Decoded, Format, Layout, PolyflakeError } from "./polyflake.js" */

/** @type {readonly Format[]} */
export const FORMATS = [
  "decimal",
  "hex",
  "base32",
  "base36",
  "base58",
  "base62",
  "uuid",
  "bwmarrin-base32",
  "bwmarrin-base58",
];

/**
 * @typedef {object} Reading
 * @property {Format} format
 * @property {bigint} id
 * @property {Fit[]} fits
 */

/**
 * @typedef {object} Fit
 * @property {string} name
 * @property {Layout} layout
 * @property {Decoded} decoded
 * @property {Likelihood} likelihood
 * @property {string} why
 */

/** @typedef {"plausible" | "early" | "unlikely"} Likelihood */

/** @typedef {{ name: string, error: PolyflakeError }} Misfit */

/** @type {readonly Likelihood[]} */
export const LIKELIHOODS = ["plausible", "early", "unlikely"];

const DAY = 86_400_000;
/** A clock may run fast, so an ID's time may be in the future. */
const AFTER_NOW = DAY;
/** Any small number decodes to a time soon after the epoch. */
const AFTER_EPOCH = 7 * DAY;
/** The first day of Twitter's Snowflakes. Only a layout with an older epoch can decode to an earlier time. */
const FIRST_SNOWFLAKES = Date.UTC(2010, 10, 4);

/**
 * Removes the characters that a console, a log or JSON puts around an ID.
 *
 * @param {string} text
 */
export function bare(text) {
  const [, inner = ""] = /^[\s"'`,;]*(.*?)[\s"'`,;]*$/s.exec(text) ?? [];
  return inner.replace(/^(\d+)n$/, "$1");
}

/**
 * The formats in which a string can be read, most likely first, and why the others fail.
 *
 * @param {string} text
 * @param {readonly { name: string, layout: Layout }[]} layouts
 * @param {number} now
 */
export function readings(text, layouts, now) {
  /** @type {Reading[]} */
  const found = [];
  /** @type {{ format: Format, error: PolyflakeError }[]} */
  const errors = [];
  const prefixed = /^0x/i.test(text);
  for (const format of FORMATS) {
    const digits = format === "hex" ? text.replace(/^0x/i, "") : text;
    const { value: id, error } = attempt(() => parseId(digits, format));
    if (error === undefined) found.push({ format, id, fits: fitsOf(id, layouts, now, format).fits });
    else errors.push({ format, error });
  }
  /** @param {Reading} reading */
  const rank = ({ format, id, fits }) => {
    if (format === "hex" && prefixed) return 0;
    if (format === "decimal") return 1;
    const likelihood = fits.length === 0 ? LIKELIHOODS.length : LIKELIHOODS.indexOf(first(fits).likelihood);
    const asWritten = formatId(id, format) === (["hex", "uuid"].includes(format) ? text.toLowerCase() : text);
    return 2 + 2 * likelihood + (asWritten ? 0 : 1);
  };
  const ranks = new Map(found.map((reading) => [reading, rank(reading)]));
  found.sort((a, b) => Number(ranks.get(a)) - Number(ranks.get(b)));
  return { found, errors };
}

/**
 * The layouts that an ID fits, most likely first, and why the others fail.
 *
 * @param {bigint} id
 * @param {readonly { name: string, layout: Layout }[]} layouts
 * @param {number} now
 * @param {Format} format
 */
export function fitsOf(id, layouts, now, format) {
  /** @type {Fit[]} */
  const fits = [];
  /** @type {Misfit[]} */
  const misfits = [];
  for (const { name, layout } of layouts) {
    const { value: decoded, error } = attempt(() => layout.decode(id));
    if (error === undefined) fits.push({ name, layout, decoded, ...judge(decoded, now) });
    else misfits.push({ name, error });
  }
  /** @param {Fit} fit */
  const rank = ({ name, likelihood }) =>
    2 * LIKELIHOODS.indexOf(likelihood) + (format === "base32" && name === "tsid" ? 0 : 1);
  fits.sort((a, b) => rank(a) - rank(b));
  for (const fit of fits) {
    if (fit.name === "tsid" && format === "base32") fit.why += "; base32 is how TSIDs are written";
  }
  return { fits, misfits };
}

/**
 * @param {Decoded} decoded
 * @param {number} now
 * @returns {{ likelihood: Likelihood, why: string }}
 */
function judge({ timestampMs, layout }, now) {
  const time = Number(timestampMs);
  const sinceEpoch = Number(timestampMs - layout.epochMs);
  if (time > now + AFTER_NOW) return { likelihood: "unlikely", why: fromNow(timestampMs, now) };
  if (time < FIRST_SNOWFLAKES) {
    return { likelihood: "unlikely", why: "before the first Snowflake IDs of November 2010" };
  }
  if (sinceEpoch < AFTER_EPOCH) {
    return { likelihood: "early", why: `${duration(sinceEpoch)} after its epoch` };
  }
  return {
    likelihood: "plausible",
    why: `${fromNow(timestampMs, now)}, ${duration(sinceEpoch)} after its epoch`,
  };
}

/**
 * @template Item
 * @param {readonly Item[]} items
 * @returns {Item}
 */
export function first(items) {
  const [item] = items;
  if (item === undefined) throw new Error("there is no first of none");
  return item;
}

/**
 * The presets, and the chosen layout if it is not a preset.
 *
 * @param {Layout | undefined} chosen
 */
export function layoutsWith(chosen) {
  const own = chosen !== undefined && !PRESETS.some((preset) => preset.layout.equals(chosen));
  return own ? [{ name: "your layout", layout: chosen }, ...PRESETS] : PRESETS;
}
