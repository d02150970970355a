/** The reasons of a {@link PolyflakeError}: permanent names, the same in every language. */
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
  | "COUNTER_UNAVAILABLE"
  | "INTERNAL";

/**
 * Thrown by every call that fails. `code` gives the reason; the message names the invalid value and says what would be
 * valid.
 *
 * A value of the wrong *type* (a boolean, an object, a Number that is not a safe integer) is a `TypeError` instead.
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
 *   console.log(error.number); // 3
 * }
 * ```
 */
export class PolyflakeError extends Error {
  /** `"PolyflakeError"`. */
  override readonly name: string = "PolyflakeError";
  /** The error's permanent name. */
  declare readonly code: PolyflakeErrorCode;
  /** The error's permanent number, the same in every language. */
  declare readonly number: number;
  /** With `CLOCK_MOVED_BACKWARDS`: how many ms the clock is behind the last ID issued. */
  declare readonly behindMs?: number;
  /**
   * With `CLOCK_MOVED_BACKWARDS` and `SEQUENCE_EXHAUSTED`: in how many ms of the clock the next ID can come. With
   * `LEASE_LOST`: in how many ms the store is queried again.
   */
  declare readonly retryAfterMs?: number;

  /** @internal */
  constructor(number: number, code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.number = number;
    this.code = code as PolyflakeErrorCode;
  }
}

let thrown: { value: unknown } | undefined;

/** Keeps what the caller's clock threw for the `CLOCK_FAILED` that follows. */
export function clockThrew(value: unknown): void {
  thrown = { value };
}

/** An error of the core. */
export function coreError(
  number: number,
  name: string,
  message: string,
  behindMs?: number,
  retryAfterMs?: number,
  options?: ErrorOptions,
): PolyflakeError {
  let [text, given] = [message, options];
  if (name === "clock_failed" && thrown !== undefined) {
    const { value: cause } = thrown;
    thrown = undefined;
    [text, given] = [`${message}: ${shown(cause)}`, { cause }];
  }
  const error = new PolyflakeError(number, name.toUpperCase(), text, given);
  return Object.assign(
    error,
    behindMs !== undefined && { behindMs },
    retryAfterMs !== undefined && { retryAfterMs },
  );
}

/** A value as text, even if converting it throws. */
function shown(value: unknown): string {
  try {
    return String(value);
  } catch {
    return `a value of type ${typeof value}`;
  }
}
