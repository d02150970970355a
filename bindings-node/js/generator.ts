/**
 * What gives unique 64-bit IDs: a {@link Snowflake}, a {@link Counter}, or a generator of your own. What takes an ID
 * from any of them takes this. Where a program can wait, `nextIdAsync` is the one to call: it gives an ID where
 * `nextId` of a Counter has none in hand.
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
  /** The next ID, at once or an error. */
  nextId(): bigint;
  /** The next ID. Waits for it without blocking the event loop. */
  nextIdAsync(): Promise<bigint>;
}
