/**
 * A source of unique 64-bit IDs: a {@link Snowflake}, a {@link Counter}, or your own generator. Use it as the type of a
 * parameter that accepts any of them. If your code can wait, call `nextIdAsync`, which returns a number even if a
 * Counter has none in hand.
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
  /** Returns the next ID or throws. */
  nextId(): bigint;
  /** Resolves to the next ID, without blocking the event loop. */
  nextIdAsync(): Promise<bigint>;
}
