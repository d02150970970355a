// The backend over the native addon.
import type {
  Backend,
  BackendCounter,
  BackendSequences,
  BackendSnowflake,
  Done,
  MakeError,
  NodeTexts,
} from "../../bindings-wasm/js/backend.js";
import { coreError } from "./errors.js";

/** `number`: identifies it in the fast calls, as long as this object lives. */
type NativeSnowflake = Omit<BackendSnowflake, "nextId" | "nextIdText" | "nextIds" | "poll"> & {
  readonly number: number;
};

type NativeCounter = Omit<BackendCounter, "nextId" | "nextIds"> & { readonly number: number };

/** Calls that take and give numbers in an array (see `Shared` in src/fast.rs). `state`: for the call `snowflake`. */
interface FastCalls {
  /** Writes the ID. */
  nextId(): void;
  nextIdText(): string;
  idText(): string;
  /** Fills an array that nothing else refers to. */
  fillNew(ids: BigUint64Array): void;
  /** Reads how long the call has waited, and returns what `poll` of {@link BackendSnowflake} returns. */
  poll(ids: BigUint64Array): void;
  state: unknown;
}

interface Calls extends Omit<Backend, "snowflake" | "idText" | "open" | "openCounter" | "openSequences"> {
  fastCalls(shared: BigUint64Array): FastCalls;
  snowflake(state: unknown, ...given: Parameters<Backend["snowflake"]>): NativeSnowflake;
  // The rest exists if the addon has leases, counters and sequences.
  /** Acquires a lease. `opened`: for `snowflakeOnLease`. */
  lease?(options: string[], node: NodeTexts | undefined, done: Done<unknown>): void;
  snowflakeOnLease(state: unknown, opened: unknown): NativeSnowflake;
  /** Opens a counter. `opened`: for `counter`. */
  openCounter?(name: string, options: string[], done: Done<unknown>): void;
  counter(state: unknown, opened: unknown): NativeCounter;
  /** Opens sequences. `opened`: for `sequences`. */
  openSequences?(name: string, options: string[], done: Done<unknown>): void;
  sequences(opened: unknown): BackendSequences;
  onLeaseEvent(publish: (event: LeaseEvent) => void): void;
}

/**
 * An event of a lease, a counter or sequences in this process: the messages on the diagnostics channel
 * `polyflake:lease`. If nobody has subscribed to it, `process.emitWarning` emits warnings, with the code `POLYFLAKE_`
 * and the kind.
 */
export interface LeaseEvent {
  /** The kind of event. {@link LeaseEvent.message} describes it in words. */
  readonly kind:
    | "acquired"
    | "lost"
    | "replaced"
    | "released"
    | "store_unreachable"
    | "store_reachable"
    | "clock_differs"
    | "asynchronous_replicas"
    | "counter_stopped"
    | "numbers_may_repeat"
    | "writes_lost"
    | "lead_differs"
    | "waiting"
    | "init_always";
  /** The node that it is about, if there is one: counters and sequences have none. */
  readonly node: number | null;
  /** The store's address, without secrets. */
  readonly store: string;
  /** The whole event as a sentence, without secrets. */
  readonly message: string;
  /** Whether somebody should look at it. */
  readonly isWarning: boolean;
}

type WithErrors<Call> = Call extends (...given: infer Given) => infer Returned
  ? (error: MakeError, ...given: Given) => Returned
  : never;

/** The addon's exports: each function's first argument creates its errors. */
export type Addon = {
  [Name in keyof Calls]: WithErrors<NonNullable<Calls[Name]>>;
};

// The words of `Shared` in src/fast.rs: an ID, then in halves a Snowflake and a format, then ms or a count.
const ID = 0;
const SNOWFLAKE = 2;
const FORMAT = 3;
const POLLED = 2;

/** Calls `publish` with the events of leases, counters and sequences, from the first one on. */
export function nativeBackend(addon: Addon, publish: (event: LeaseEvent) => void): Backend {
  const all = Object.entries<(...given: never[]) => unknown>(addon);
  const bound = all.map(([name, call]) => [name, call.bind(undefined, coreError as never)]);
  const calls = Object.fromEntries(bound) as unknown as Calls;
  const shared = new BigUint64Array(3);
  const halves = new Uint32Array(shared.buffer);
  const floats = new Float64Array(shared.buffer);
  const { nextId, nextIdText, idText, fillNew, poll, state } = calls.fastCalls(shared);

  /** The calls that a program makes for every ID. `native` keeps its number as long as they live. */
  const fast = <Native extends { readonly number: number }>(native: Native, number: number) => ({
    native,
    nextId() {
      halves[SNOWFLAKE] = number;
      nextId();
      return shared[ID] as bigint;
    },
    nextIds(n: number) {
      // Memory that is not zeroed first halves the cost of an ID. If an error leaves part of it unfilled, the array is
      // dropped.
      const ids = new BigUint64Array(Buffer.allocUnsafeSlow(n * BigUint64Array.BYTES_PER_ELEMENT).buffer);
      halves[SNOWFLAKE] = number;
      fillNew(ids);
      return ids;
    },
  });

  function wrap(native: NativeSnowflake): BackendSnowflake {
    const { number, ...others } = native;
    return {
      ...others,
      ...fast(native, number),
      nextIdText(format) {
        halves[SNOWFLAKE] = number;
        halves[FORMAT] = format;
        return nextIdText();
      },
      poll(ids, waitedMs) {
        halves[SNOWFLAKE] = number;
        floats[POLLED] = waitedMs;
        poll(ids);
        return floats[POLLED] as number;
      },
    };
  }

  const { lease, openCounter, openSequences, ...others } = calls;
  let isListening = false;
  /** The result of such a call. */
  function opening(open: (done: Done<unknown>) => void): Promise<unknown> {
    if (!isListening) calls.onLeaseEvent(publish);
    isListening = true;
    return new Promise((resolve, reject) => {
      open((error, opened) => (error ? reject(error) : resolve(opened)));
    });
  }

  return {
    ...others,
    ...(lease && {
      open: async (...given) =>
        wrap(calls.snowflakeOnLease(state, await opening((done) => lease(...given, done)))),
    }),
    ...(openCounter && {
      async openCounter(...given) {
        const native = calls.counter(state, await opening((done) => openCounter(...given, done)));
        const { number, ...others } = native;
        return { ...others, ...fast(native, number) };
      },
    }),
    ...(openSequences && {
      openSequences: async (...given) =>
        calls.sequences(await opening((done) => openSequences(...given, done))),
    }),
    idText(id, format) {
      shared[ID] = id;
      halves[FORMAT] = format;
      return idText();
    },
    snowflake: (...given) => wrap(calls.snowflake(state, ...given)),
  };
}
