// Numbers, instants and durations as people read them.

const DAY = 86_400_000;
const YEAR = 365.2425 * DAY;

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", {
  notation: "compact",
  compactDisplay: "long",
  maximumSignificantDigits: 3,
});
const precise = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** @param {number | bigint} value */
export const count = (value) => whole.format(value);

/**
 * A count that may be huge or a fraction.
 *
 * @param {number} value
 */
export function amount(value) {
  if (value >= 1e15) return value.toExponential(2).replace(/e\+(\d+)/, " × 10^$1");
  if (value >= 1e9) return short.format(value);
  return value < 100 ? precise.format(value) : whole.format(Math.round(value));
}

/**
 * @param {Date | null} date
 * @param {bigint} unixMs
 */
export function utc(date, unixMs) {
  if (date === null) return `Unix ms ${unixMs}`;
  return `${date.toISOString().replace(/^\+0*/, "").replace("T", " ").replace("Z", "")} UTC`;
}

/** @param {Date} date */
export const day = (date) => date.toISOString().replace(/^\+0*/, "").replace(/T.*/, "");

const localParts = new Intl.DateTimeFormat("en-CA", {
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hourCycle: "h23",
  timeZoneName: "shortOffset",
});

/** @param {Date} date */
export function local(date) {
  const part = Object.fromEntries(localParts.formatToParts(date).map(({ type, value }) => [type, value]));
  const { year, month, hour, minute, second, fractionalSecond, timeZoneName } = part;
  return `${year}-${month}-${part.day} ${hour}:${minute}:${second}.${fractionalSecond} ${timeZoneName}`;
}

/** The zone that `local` is in. */
export const zone = () => localParts.resolvedOptions().timeZone;

/** @type {readonly [name: string, ms: number][]} */
const UNITS = [
  ["year", YEAR],
  ["day", DAY],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
];

/**
 * A duration in its largest unit.
 *
 * @param {number} ms
 */
export function duration(ms) {
  const [name, unit] = UNITS.find(([, length]) => ms >= length) ?? ["ms", 1];
  const value = ms / unit;
  const text =
    value >= 1e6
      ? short.format(value)
      : whole.format(value >= 100 ? Math.round(value) : Number(value.toFixed(name === "year" ? 1 : 0)));
  return `${text} ${name === "ms" || text === "1" ? name : `${name}s`}`;
}

/**
 * @param {bigint} unixMs
 * @param {number} now
 */
export function fromNow(unixMs, now) {
  const ms = Number(unixMs) - now;
  if (Math.abs(ms) < 1000) return "now";
  return ms > 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`;
}
