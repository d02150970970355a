// Code shared by counters and sequences: options that include a store, and calls that wait for the store.
import type { Done } from "../../bindings-wasm/js/backend.js";
import type { Integer } from "./convert.js";
import { wrongType } from "./convert.js";
import type { PolyflakeError } from "./errors.js";
import { coreError } from "./errors.js";

/** Converts `options` to pairs of strings. `storeTexts` converts the store, and `textOf` the other options. */
export function optionTexts<Options extends object, Name extends string & keyof Options>(
  options: Options,
  what: string,
  storeTexts: (options: Options) => string[],
  textOf: Readonly<Record<Name, (value: Integer, what: string) => string>>,
): string[] {
  if (typeof options !== "object" || options === null) {
    throw wrongType(options, `${what}'s options`, 'an object, such as { store: "redis://host/0" }');
  }
  const texts = storeTexts(options).flatMap((address) => ["store", address]);
  for (const name of Object.keys(options)) {
    // The core rejects unknown names, whatever their values.
    if (name !== "store" && !Object.hasOwn(textOf, name)) texts.push(name, "");
  }
  for (const name of Object.keys(textOf) as Name[]) {
    const value = options[name] as Integer | undefined;
    if (value !== undefined) texts.push(name, textOf[name](value, name));
  }
  return texts;
}

/** Returns the error for a backend without a network. `whose` is the store's owner, in the possessive. */
export function noNetwork(whose: string): PolyflakeError {
  const why = `${whose} store needs a network, which WebAssembly does not have: use Node's native build`;
  return coreError(4, "invalid_option", `invalid_option: ${why}`);
}

/**
 * The maximum total of the numbers that a group of calls requests. It equals the largest batch, so the total is always
 * a valid array size.
 */
const MOST_TOGETHER = 2 ** 24;

/** A call that waits for numbers. */
interface Waiting<Asked> {
  readonly asked: Asked;
  readonly n: number;
  readonly resolve: (numbers: BigUint64Array) => void;
  readonly reject: (error: unknown) => void;
}

/** Calls that wait for a store's numbers. The calls that arrive during a wait are served together by the next wait. */
export class Together<Asked> {
  readonly #fetchAll: (asked: Asked[], done: Done<BigUint64Array>) => void;
  #waiting: Waiting<Asked>[] = [];
  #isFetching = false;

  /** `fetchAll` requests the numbers for several calls, in their order. */
  constructor(fetchAll: (asked: Asked[], done: Done<BigUint64Array>) => void) {
    this.#fetchAll = fetchAll;
  }

  /** Resolves to `n` numbers. */
  later(asked: Asked, n: number): Promise<BigUint64Array> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked, n, resolve, reject });
      if (!this.#isFetching) this.#fetch();
    });
  }

  #fetch(): void {
    let [calls, total] = [0, 0];
    for (const { n } of this.#waiting) {
      total += n;
      if (calls > 0 && total > MOST_TOGETHER) break;
      calls += 1;
    }
    const group = this.#waiting.splice(0, calls);
    this.#isFetching = calls > 0;
    if (!this.#isFetching) return;
    const done: Done<BigUint64Array> = (error, numbers) => {
      if (error) {
        this.#isFetching = false;
        // Calls that arrived during the wait fail too; otherwise each in turn would wait.
        const all = [...group, ...this.#waiting];
        this.#waiting = [];
        for (const { reject } of all) reject(error);
        return;
      }
      let at = 0;
      for (const { n, resolve } of group) {
        resolve(group.length === 1 ? numbers : numbers.slice(at, at + n));
        at += n;
      }
      this.#fetch();
    };
    try {
      this.#fetchAll(
        group.map(({ asked }) => asked),
        done,
      );
    } catch (error) {
      done(error as Error, new BigUint64Array());
    }
  }
}
