// The backend over the native addon.
import type { Backend, BackendSnowflake, MakeError, NodeTexts } from "../../bindings-wasm/js/backend.js";
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

interface Calls extends Omit<Backend, "snowflake" | "idText" | "open"> {
  fastCalls(shared: BigUint64Array): FastCalls;
  snowflake(state: unknown, ...given: Parameters<Backend["snowflake"]>): NativeSnowflake;
  // These three where the addon has leases.
  /** Acquires a lease on a thread. `opened`: for `snowflakeOnLease`. */
  lease?(
    options: string[],
    node: NodeTexts | undefined,
    done: (error: Error | undefined, opened: unknown) => void,
  ): void;
  snowflakeOnLease(state: unknown, opened: unknown): NativeSnowflake;
  onLeaseEvent(publish: (event: LeaseEvent) => void): void;
}

/** What happened to a lease of this process: the messages of the diagnostics channel `polyflake:lease`. */
export interface LeaseEvent {
  readonly kind:
    | "acquired"
    | "lost"
    | "replaced"
    | "released"
    | "store_unreachable"
    | "store_reachable"
    | "clock_differs"
    | "waiting";
  /** The node that it is about, if there is one. */
  readonly node: number | null;
  /** The store's address, without secrets. */
  readonly store: string;
  /** All of it as a sentence, without secrets. */
  readonly message: string;
  /** Whether somebody should look at it. */
  readonly isWarning: boolean;
}

type WithErrors<Call> = Call extends (...given: infer Given) => infer Returned
  ? (error: MakeError, ...given: Given) => Returned
  : never;

/** What the addon exports: every function takes first what makes its errors. */
export type Addon = {
  [Name in keyof Calls]: WithErrors<NonNullable<Calls[Name]>>;
};

// The words of `Shared` in src/fast.rs: an ID, then in halves a Snowflake and a format.
const ID = 0;
const SNOWFLAKE = 2;
const FORMAT = 3;

/** `publish` is called with what happens to leases, from the first one on. */
export function nativeBackend(addon: Addon, publish: (event: LeaseEvent) => void): Backend {
  const all = Object.entries<(...given: never[]) => unknown>(addon);
  const bound = all.map(([name, call]) => [name, call.bind(undefined, coreError as never)]);
  const calls = Object.fromEntries(bound) as unknown as Calls;
  const shared = new BigUint64Array(2);
  const halves = new Uint32Array(shared.buffer);
  const { nextId, nextIdText, idText, fillNew, state } = calls.fastCalls(shared);

  function wrap(native: NativeSnowflake): BackendSnowflake {
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
    } as BackendSnowflake;
  }

  const { lease } = calls;
  let isListening = false;
  async function open(...given: Parameters<NonNullable<Backend["open"]>>): Promise<BackendSnowflake> {
    if (!isListening) calls.onLeaseEvent(publish);
    isListening = true;
    const opened = await new Promise((resolve, reject) => {
      lease?.(...given, (error, opened) => (error ? reject(error) : resolve(opened)));
    });
    return wrap(calls.snowflakeOnLease(state, opened));
  }

  return {
    ...calls,
    ...(lease && { open }),
    idText(id, format) {
      shared[ID] = id;
      halves[FORMAT] = format;
      return idText();
    },
    snowflake: (...given) => wrap(calls.snowflake(state, ...given)),
  };
}
