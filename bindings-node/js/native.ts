// The backend over the native addon.
import type { Backend, BackendSnowflake, MakeError } from "../../bindings-wasm/js/backend.js";
import { coreError } from "./errors.js";

/** `nextId` writes the ID into the array `id`; `fillNew` fills an array that nothing else refers to. */
type NativeSnowflake = Omit<BackendSnowflake, "nextId" | "nextIds"> & {
  nextId(): void;
  fillNew(ids: BigUint64Array): void;
};

interface Calls extends Omit<Backend, "snowflake"> {
  snowflake(id: BigUint64Array, ...given: Parameters<Backend["snowflake"]>): NativeSnowflake;
}

/** What the addon exports: every function takes first what makes its errors. */
export type Addon = {
  [Name in keyof Calls]: (error: MakeError, ...others: Parameters<Calls[Name]>) => ReturnType<Calls[Name]>;
};

export function nativeBackend(addon: Addon): Backend {
  const all = Object.entries<(...given: never[]) => unknown>(addon);
  const bound = all.map(([name, call]) => [name, call.bind(undefined, coreError as never)]);
  const calls = Object.fromEntries(bound) as unknown as Calls;
  const id = new BigUint64Array(1);
  return {
    ...calls,
    snowflake(...given) {
      const { nextId, fillNew, ...others } = calls.snowflake(id, ...given);
      return {
        ...others,
        nextId() {
          nextId();
          return id[0] as bigint;
        },
        nextIds(n) {
          // Memory that is not zeroed first halves the cost of an ID. If an error leaves part of it unfilled, the array
          // is dropped.
          const ids = new BigUint64Array(Buffer.allocUnsafeSlow(n * BigUint64Array.BYTES_PER_ELEMENT).buffer);
          fillNew(ids);
          return ids;
        },
      };
    },
  };
}
