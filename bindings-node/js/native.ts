// The backend that uses the native addon.
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

/** `number` identifies the Snowflake in the fast calls for as long as this object lives. */
type NativeSnowflake = Omit<BackendSnowflake, "nextId" | "nextIdText" | "nextIds" | "poll"> & {
  readonly number: number;
};

type NativeCounter = Omit<BackendCounter, "nextId" | "nextIds"> & { readonly number: number };

/**
 * Calls that pass numbers in a shared array (see `Shared` in src/fast.rs). `state` is for the calls that create
 * Snowflakes and counters.
 */
interface FastCalls {
  /** Writes the ID to the shared array. */
  nextId(): void;
  nextIdText(): string;
  idText(): string;
  /** Fills an array that nothing else refers to. */
  fillNew(ids: BigUint64Array): void;
  /**
   * Reads from the shared array how long the call has waited, and writes the result of {@link BackendSnowflake}'s
   * `poll` there.
   */
  poll(ids: BigUint64Array): void;
  state: unknown;
}

interface Calls extends Omit<Backend, "snowflake" | "idText" | "open" | "openCounter" | "openSequences"> {
  fastCalls(shared: BigUint64Array): FastCalls;
  snowflake(state: unknown, ...given: Parameters<Backend["snowflake"]>): NativeSnowflake;
  // Each of these exists only if the addon was built with leases, counters or sequences.
  /** Acquires a lease. `done` receives a value for `snowflakeOnLease`. */
  lease?(options: string[], node: NodeTexts | undefined, done: Done<unknown>): void;
  snowflakeOnLease(state: unknown, opened: unknown): NativeSnowflake;
  /** Opens a counter. `done` receives a value for `counter`. */
  openCounter?(name: string, options: string[], done: Done<unknown>): void;
  counter(state: unknown, opened: unknown): NativeCounter;
  /** Opens sequences. `done` receives a value for `sequences`. */
  openSequences?(name: string, options: string[], done: Done<unknown>): void;
  sequences(opened: unknown): BackendSequences;
  onLeaseEvent(publish: (event: LeaseEvent) => void): void;
}

/**
 * An event of a lease, a counter or sequences in this process, as published on the diagnostics channel
 * `polyflake:lease`. If nothing has subscribed to the channel, warnings go to `process.emitWarning` instead, with the
 * code `POLYFLAKE_` followed by the kind in upper case.
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
  /** The node that the event is about. It is null for counters and sequences, which have no node. */
  readonly node: number | null;
  /** The store's address, without secrets. */
  readonly store: string;
  /** The whole event as a sentence, without secrets. */
  readonly message: string;
  /** Whether the event needs attention. */
  readonly isWarning: boolean;
}

type WithErrors<Call> = Call extends (...given: infer Given) => infer Returned
  ? (error: MakeError, ...given: Given) => Returned
  : never;

/** The addon's exports. Each takes, as its first argument, the function that creates its errors. */
export type Addon = {
  [Name in keyof Calls]: WithErrors<NonNullable<Calls[Name]>>;
};

// Indexes into `Shared` in src/fast.rs: an ID, then a Snowflake and a format of 32 bits each, then ms or a count.
const ID = 0;
const SNOWFLAKE = 2;
const FORMAT = 3;
const POLLED = 2;

/**
 * Creates the backend. It calls `publish` with the events of leases, counters and sequences, starting when the first of
 * them is opened.
 */
export function nativeBackend(addon: Addon, publish: (event: LeaseEvent) => void): Backend {
  const all = Object.entries<(...given: never[]) => unknown>(addon);
  const bound = all.map(([name, call]) => [name, call.bind(undefined, coreError as never)]);
  const calls = Object.fromEntries(bound) as unknown as Calls;
  const shared = new BigUint64Array(3);
  const halves = new Uint32Array(shared.buffer);
  const floats = new Float64Array(shared.buffer);
  const { nextId, nextIdText, idText, fillNew, poll, state } = calls.fastCalls(shared);

  /** Creates the calls that a program makes for every ID. `native` keeps the number valid while they exist. */
  const fast = <Native extends { readonly number: number }>(native: Native, number: number) => ({
    native,
    nextId() {
      halves[SNOWFLAKE] = number;
      nextId();
      return shared[ID] as bigint;
    },
    nextIds(n: number) {
      // Skipping the zeroing of memory halves the cost of an ID. If an error leaves part of the array unfilled, the
      // array is dropped.
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
  /** Makes a call that opens something, and returns a promise for its result. */
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
