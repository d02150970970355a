/** The codes of a {@link PolyflakeError}, which are permanent and the same in every language. */
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
 * Thrown by every call that fails. `code` gives the reason; the message names the invalid value and says which values
 * are valid.
 *
 * A value of the wrong *type* (a boolean, an object, a Number that is not a safe integer) causes a `TypeError` instead.
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
  /** How many ms the clock is behind the last ID issued, less `maxAheadMs`. Only with `CLOCK_MOVED_BACKWARDS`. */
  declare readonly behindMs?: number;
  /**
   * With `CLOCK_MOVED_BACKWARDS` and `SEQUENCE_EXHAUSTED`, how many ms the clock must advance before the next ID. With
   * `LEASE_LOST`, how many ms will pass before the store is asked again.
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

/** Keeps the value that the caller's clock threw, for the `CLOCK_FAILED` that follows. */
export function clockThrew(value: unknown): void {
  thrown = { value };
}

/** Creates the `PolyflakeError` for an error from the core. */
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

/** Converts a value to text, even if the value's own conversion throws. */
function shown(value: unknown): string {
  try {
    return String(value);
  } catch {
    return `a value of type ${typeof value}`;
  }
}
