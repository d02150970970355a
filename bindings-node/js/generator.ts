/**
 * A source of unique 64-bit IDs: a {@link Snowflake}, a {@link Counter}, or your own generator. A function that works
 * with any of them takes this type. If a program can wait, it should call `nextIdAsync`, which returns a number even if
 * a Counter has none in hand.
 *
 * @example
 * ```ts
 * import type { IdGenerator } from "polyflake";
 *
 * // For tests: 1, 2, 3 and so on.
 * class Fixed implements IdGenerator {
 *   #last = 0n;
 *   nextId(): bigint {
 *     this.#last += 1n;
 *     return this.#last;
 *   }
 *   async nextIdAsync(): Promise<bigint> {
 *     return this.nextId();
 *   }
 * }
 * ```
 */
export interface IdGenerator {
  /** The next ID, at once or with an error. */
  nextId(): bigint;
  /** The next ID. Waits for it without blocking the event loop. */
  nextIdAsync(): Promise<bigint>;
}
