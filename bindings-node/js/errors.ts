/** What a {@link PolyflakeError} is about: permanent names, the same in every language. */
export type PolyflakeErrorCode =
  | "INVALID_LAYOUT"
  | "UNKNOWN_LAYOUT"
  | "INVALID_NODE"
  | "INVALID_OPTION"
  | "INVALID_ID"
  | "TIME_OUT_OF_RANGE"
  | "CLOCK_MOVED_BACKWARDS"
  | "SEQUENCE_EXHAUSTED"
  | "FORKED"
  | "CLOCK_FAILED"
  | "STATE_FILE"
  | "LEASE_UNAVAILABLE"
  | "LEASE_LOST"
  | "CLOSED"
  | "INTERNAL";

/**
 * A refusal. `code` says which; the message names the value and what would fit.
 *
 * A value of the wrong *type* (a boolean, an object, a Number that is no safe integer) is a `TypeError` instead.
 *
 * @example
 * ```js
 * import { PolyflakeError, Snowflake } from "polyflake";
 *
 * try {
 *   new Snowflake({ node: 1024 });
 * } catch (error) {
 *   if (!(error instanceof PolyflakeError)) throw error;
 *   console.log(error.code); // INVALID_NODE
 *   console.log(error.message); // invalid_node: node is 1024; it takes a whole number from 0 to 1023
 * }
 * ```
 */
export class PolyflakeError extends Error {
  override readonly name: string = "PolyflakeError";
  /** Which refusal it is. */
  readonly code: PolyflakeErrorCode;
  /** The permanent number of `code`, the same in every language. */
  readonly number: number;
  /** With `CLOCK_MOVED_BACKWARDS`: by how many ms the clock stands behind the last ID issued. */
  declare readonly behindMs?: number;
  /**
   * With `CLOCK_MOVED_BACKWARDS` and `SEQUENCE_EXHAUSTED`: after how many ms of the clock the next ID can come.
   */
  declare readonly retryAfterMs?: number;

  /** @internal */
  constructor(
    number: number,
    code: string,
    message: string,
    options?: ErrorOptions,
    behindMs?: number,
    retryAfterMs?: number,
  ) {
    super(message, options);
    this.number = number;
    this.code = code as PolyflakeErrorCode;
    if (behindMs !== undefined) this.behindMs = behindMs;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

let thrown: { value: unknown } | undefined;

/** Keeps what the caller's clock threw for the `CLOCK_FAILED` that follows. */
export function clockThrew(value: unknown): void {
  thrown = { value };
}

/** An error of the core's. */
export function coreError(
  number: number,
  name: string,
  message: string,
  behindMs?: number,
  retryAfterMs?: number,
): PolyflakeError {
  const cause = thrown;
  if (name !== "clock_failed" || cause === undefined) {
    return new PolyflakeError(number, name.toUpperCase(), message, undefined, behindMs, retryAfterMs);
  }
  thrown = undefined;
  const text = `${message}: ${shown(cause.value)}`;
  return new PolyflakeError(number, name.toUpperCase(), text, { cause: cause.value });
}

/** A value as text, also where it has none of its own. */
function shown(value: unknown): string {
  try {
    return String(value);
  } catch {
    return `a value of type ${typeof value}`;
  }
}
