// The backend over the native addon.
import type { Backend, BackendSnowflake, MakeError } from "../../bindings-wasm/js/backend.js";
import { coreError } from "./errors.js";

/** `number`: what the fast calls know it by, as long as this object lives. */
type NativeSnowflake = Omit<BackendSnowflake, "nextId" | "nextIdText" | "nextIds"> & {
  readonly number: number;
};

/** Calls that take and give numbers in an array (see `Shared` in src/fast.rs). `state`: for the call `snowflake`. */
interface FastCalls {
  /** Writes the ID. */
  nextId(): void;
  nextIdText(): string;
  idText(): string;
  /** Fills an array that nothing else refers to. */
  fillNew(ids: BigUint64Array): void;
  state: unknown;
}

interface Calls extends Omit<Backend, "snowflake" | "idText"> {
  fastCalls(shared: BigUint64Array): FastCalls;
  snowflake(state: unknown, ...given: Parameters<Backend["snowflake"]>): NativeSnowflake;
}

/** What the addon exports: every function takes first what makes its errors. */
export type Addon = {
  [Name in keyof Calls]: (error: MakeError, ...others: Parameters<Calls[Name]>) => ReturnType<Calls[Name]>;
};

// The words of `Shared` in src/fast.rs: an ID, then in halves a Snowflake and a format.
const ID = 0;
const SNOWFLAKE = 2;
const FORMAT = 3;

export function nativeBackend(addon: Addon): Backend {
  const all = Object.entries<(...given: never[]) => unknown>(addon);
  const bound = all.map(([name, call]) => [name, call.bind(undefined, coreError as never)]);
  const calls = Object.fromEntries(bound) as unknown as Calls;
  const shared = new BigUint64Array(2);
  const halves = new Uint32Array(shared.buffer);
  const { nextId, nextIdText, idText, fillNew, state } = calls.fastCalls(shared);
  return {
    ...calls,
    idText(id, format) {
      shared[ID] = id;
      halves[FORMAT] = format;
      return idText();
    },
    snowflake(...given) {
      const native = calls.snowflake(state, ...given);
      const { number, ...others } = native;
      return {
        ...others,
        // Its number is its own as long as this lives.
        native,
        nextId() {
          halves[SNOWFLAKE] = number;
          nextId();
          return shared[ID] as bigint;
        },
        nextIdText(format) {
          halves[SNOWFLAKE] = number;
          halves[FORMAT] = format;
          return nextIdText();
        },
        nextIds(n) {
          // Memory that is not zeroed first halves the cost of an ID. If an error leaves part of it unfilled, the array
          // is dropped.
          const ids = new BigUint64Array(Buffer.allocUnsafeSlow(n * BigUint64Array.BYTES_PER_ELEMENT).buffer);
          halves[SNOWFLAKE] = number;
          fillNew(ids);
          return ids;
        },
      };
    },
  };
}
