// The backend over the native addon.
import type { Backend, Generator, NodeTexts, Reading } from "../../bindings-wasm/js/backend.js";
import { unheld } from "./convert.js";
import { coreError } from "./errors.js";

/**
 * A backend, but for a generator whose `nextId` leaves the ID in the array `id`, and whose `fillNew` fills an array
 * that nobody else knows yet.
 */
interface Calls extends Omit<Backend, "name" | "snowflake"> {
  snowflake(
    id: BigUint64Array,
    options: string[],
    node: NodeTexts | undefined,
    clock: Reading | undefined,
  ): Omit<Generator, "nextId" | "nextIds"> & { nextId(): void; fillNew(ids: BigUint64Array): void };
}

/** What the addon exports: every call takes first what makes its errors. */
export type Addon = {
  [Name in keyof Calls]: (
    error: typeof coreError,
    ...others: Parameters<Calls[Name]>
  ) => ReturnType<Calls[Name]>;
};

export function nativeBackend(addon: Addon): Backend {
  const all = Object.entries<(...given: never[]) => unknown>(addon);
  const bound = all.map(([name, call]) => [name, call.bind(undefined, coreError as never)]);
  const calls = Object.fromEntries(bound) as unknown as Calls;
  const id = new BigUint64Array(1);
  return {
    ...calls,
    name: "native",
    snowflake(options, node, clock) {
      const generator = calls.snowflake(id, options, node, clock && unheld(clock));
      const next = generator.nextId;
      const nextId = () => {
        next();
        return id[0] as bigint;
      };
      const fillNew = generator.fillNew;
      const nextIds = (n: number) => {
        // Memory that is not cleared first halves the cost of an ID. If an error leaves some of it unfilled, nobody
        // gets to see it.
        const ids = new BigUint64Array(Buffer.allocUnsafeSlow(n * BigUint64Array.BYTES_PER_ELEMENT).buffer);
        fillNew(ids);
        return ids;
      };
      return Object.assign(generator, { nextId, nextIds, clock });
    },
  };
}
