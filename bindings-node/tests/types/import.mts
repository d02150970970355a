// TypeScript must accept this code, except for lines after @ts-expect-error, which it must reject: otherwise
// `tsc -p` fails.
import {
  Counter,
  type CounterOptions,
  type CounterStats,
  type Decoded,
  type Field,
  type Format,
  formatId,
  type IdGenerator,
  type Instant,
  type Integer,
  Layout,
  type LayoutFields,
  type LeaseEvent,
  type LeaseInfo,
  type Node,
  PolyflakeError,
  type PolyflakeErrorCode,
  PublicIds,
  parseId,
  type SequenceKey,
  Sequences,
  type SequencesOptions,
  type SequencesStats,
  Snowflake,
  type SnowflakeOptions,
  type Stats,
} from "polyflake";
import * as reading from "polyflake/decode";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** `same<A, B>(true)` does not compile if the two types differ. */
declare function same<A, B>(same: Same<A, B>): void;
declare function takes<T>(value: T): void;

// Snowflakes ----------------------------------------------------------------------------------------------------

const ids = new Snowflake({ node: { datacenter: 1, worker: 7 } });
new Snowflake({ node: 7 });
new Snowflake({ node: 7n });
new Snowflake({ node: "7" });
new Snowflake({ node: { datacenter: 1n, worker: "7" } });
new Snowflake({ layout: "mastodon" });
new Snowflake({ layout: new Layout("leaf"), node: 1, clock: () => Date.now() });
new Snowflake({ node: 1, clock: () => 1n });
new Snowflake({
  node: 1,
  maxBackwardMs: 50,
  maxAheadMs: 5n,
  maxWaitMs: "100",
  sequenceStart: "zero",
  clock: "steady",
});
// Options read from elsewhere may be undefined.
const read: { node: number; maxWaitMs: number | undefined; clock: undefined } = {
  node: 1,
  maxWaitMs: undefined,
  clock: undefined,
};
new Snowflake(read);
const options = {
  node: { worker: 1 },
  layout: "leaf",
  sequenceStart: "spread",
} as const satisfies SnowflakeOptions;
new Snowflake(options);

// @ts-expect-error options are required
new Snowflake();
// @ts-expect-error a node is an option
new Snowflake(7);
// @ts-expect-error no such option
new Snowflake({ node: 1, max_wait_ms: 5 });
// @ts-expect-error no such option
new Snowflake({ nod: 1 });
// @ts-expect-error no such start
new Snowflake({ node: 1, sequenceStart: "random" });
// @ts-expect-error no such clock
new Snowflake({ node: 1, clock: "wall" });
// @ts-expect-error a clock returns ms
new Snowflake({ node: 1, clock: () => new Date() });
// @ts-expect-error a clock is synchronous
new Snowflake({ node: 1, clock: async () => 1 });
// @ts-expect-error a boolean is not a node
new Snowflake({ node: true });
// @ts-expect-error null is not a default
new Snowflake({ node: null });
// @ts-expect-error an object must be made a Layout first
new Snowflake({ node: 1, layout: { fields: { timestamp: 41, sequence: 12 }, epochMs: 0 } });

same<ReturnType<typeof ids.nextId>, bigint>(true);
same<ReturnType<typeof ids.tryNextId>, bigint>(true);
same<ReturnType<typeof ids.nextIdAsync>, Promise<bigint>>(true);
same<ReturnType<typeof ids.nextIdString>, string>(true);
same<ReturnType<typeof ids.nextIdNumber>, number>(true);
same<Parameters<typeof ids.nextIdString>, [format?: Format | undefined]>(true);
same<Parameters<typeof ids.nextIds>, [n: Integer]>(true);
takes<BigUint64Array>(ids.nextIds(10));
takes<Promise<BigUint64Array>>(ids.nextIdsAsync(10n));
ids.fill(new BigUint64Array(10));
ids.fill(new BigUint64Array(new SharedArrayBuffer(80)));
ids.fill(ids.nextIds(10).subarray(1));
// @ts-expect-error signed
ids.fill(new BigInt64Array(10));
// @ts-expect-error not a BigUint64Array
ids.fill([1n]);
// @ts-expect-error no such format
ids.nextIdString("base64");
// @ts-expect-error a bigint is not a number
takes<number>(ids.nextId());
// @ts-expect-error private
ids.generator;
same<typeof ids.layout, Layout>(true);
same<typeof ids.node, number>(true);
same<typeof ids.stats, Stats>(true);
same<typeof ids.stats.lastIssuedMs, bigint | null>(true);
same<typeof ids.stats.leaseLosses, number>(true);
same<typeof ids.lease, LeaseInfo | undefined>(true);
same<LeaseInfo["state"], "held" | "unreachable" | "lost" | "closed">(true);
same<LeaseInfo["boundMs"], bigint>(true);
same<LeaseInfo["bound"], Date>(true);
same<LeaseEvent["node"], number | null>(true);
const opened = Snowflake.open({ lease: "redis://host/0" });
same<typeof opened, Promise<Snowflake>>(true);
// @ts-expect-error an address is a string
Snowflake.open({ lease: 7 });
same<typeof ids.stats.waits, number>(true);
// @ts-expect-error read-only
ids.node = 5;
// @ts-expect-error read-only
ids.stats.waits = 5;

// An iterator that never ends.
for (const id of ids) {
  same<typeof id, bigint>(true);
  break;
}
const [first] = ids;
takes<bigint | undefined>(first);
same<ReturnType<typeof ids.next>, IteratorYieldResult<bigint>>(true);
takes<Iterable<bigint>>(ids);
takes<bigint>(ids.next().value);

// Counters ------------------------------------------------------------------------------------------------------

const counter = await Counter.open("orders", { store: "redis://host/0" });
same<typeof counter, Counter>(true);
Counter.open("orders", { store: ["redis://one/0", "redis://two/0"] });
Counter.open("orders", { store: ["redis://one/0"] as const, start: 5n, step: "auto", maxWaitMs: "100" });
takes<CounterOptions>({ store: "redis://host/0", start: undefined, step: undefined, maxWaitMs: undefined });
takes<CounterOptions>({ store: "redis://host/0", step: 1 });
// @ts-expect-error a store is required
Counter.open("orders", {});
// @ts-expect-error options are required
Counter.open("orders");
// @ts-expect-error a name is a string
Counter.open(7, { store: "redis://host/0" });
// @ts-expect-error no such option
Counter.open("orders", { store: "redis://host/0", max_wait_ms: 5 });
// @ts-expect-error a step is a number
Counter.open("orders", { store: "redis://host/0", step: true });
// @ts-expect-error it is opened
new Counter("orders", { store: "redis://host/0" });
same<ReturnType<typeof counter.nextId>, bigint>(true);
same<ReturnType<typeof counter.tryNextId>, bigint>(true);
same<ReturnType<typeof counter.nextIdAsync>, Promise<bigint>>(true);
same<Parameters<typeof counter.nextIds>, [n: Integer]>(true);
takes<BigUint64Array>(counter.nextIds(10));
takes<Promise<BigUint64Array>>(counter.nextIdsAsync(10n));
counter.fill(counter.nextIds(10).subarray(1));
// @ts-expect-error not a BigUint64Array
counter.fill([1n]);
same<ReturnType<typeof counter.nextBlock>, Promise<bigint>>(true);
same<ReturnType<typeof counter.peek>, Promise<bigint>>(true);
same<Parameters<typeof counter.raise>, [number: Integer]>(true);
same<ReturnType<typeof counter.raise>, Promise<void>>(true);
same<ReturnType<typeof counter.remove>, Promise<boolean>>(true);
same<ReturnType<typeof counter.close>, Promise<void>>(true);
same<typeof counter.name, string>(true);
same<typeof counter.stats, CounterStats>(true);
same<typeof counter.stats.inHand, number>(true);
// @ts-expect-error read-only
counter.stats.inHand = 5;
for (const number of counter) {
  same<typeof number, bigint>(true);
  break;
}
for await (const number of counter) {
  same<typeof number, bigint>(true);
  break;
}

// Sequences -----------------------------------------------------------------------------------------------------

const inbox = await Sequences.open("inbox", { store: "postgres://host/chat" });
same<typeof inbox, Sequences>(true);
Sequences.open("inbox", { store: "redis://host/0", sections: 16, step: 5n, maxKeys: "100", maxWaitMs: 0 });
takes<SequencesOptions>({
  store: "redis://host/0",
  sections: undefined,
  step: undefined,
  maxKeys: undefined,
});
// @ts-expect-error a store is required
Sequences.open("inbox", {});
// @ts-expect-error sequences have one store
Sequences.open("inbox", { store: ["redis://one/0", "redis://two/0"] });
// @ts-expect-error no such option
Sequences.open("inbox", { store: "redis://host/0", start: 5 });
// @ts-expect-error they are opened
new Sequences("inbox", { store: "redis://host/0" });
same<SequenceKey, string | number | bigint>(true);
same<Parameters<typeof inbox.nextId>, [key: SequenceKey]>(true);
same<ReturnType<typeof inbox.nextId>, bigint>(true);
same<ReturnType<typeof inbox.tryNextId>, bigint>(true);
same<ReturnType<typeof inbox.nextIdAsync>, Promise<bigint>>(true);
takes<BigUint64Array>(inbox.nextIds(["alice", 5, 5n]));
takes<BigUint64Array>(inbox.nextIds(new Set([5n])));
takes<BigUint64Array>(inbox.nextIds(BigUint64Array.of(5n)));
takes<Promise<BigUint64Array>>(inbox.nextIdsAsync(["alice"] as const));
// @ts-expect-error a key is needed
inbox.nextId();
// @ts-expect-error not a key
inbox.nextId(true);
// @ts-expect-error not keys
inbox.nextIds([null]);
// @ts-expect-error a generator gives IDs without a key
takes<IdGenerator>(inbox);
same<typeof inbox.name, string>(true);
same<typeof inbox.stats, SequencesStats>(true);
same<typeof inbox.stats.timeLeftMs, number>(true);
same<ReturnType<typeof inbox.close>, Promise<void>>(true);

// Generators ----------------------------------------------------------------------------------------------------

class Fixed implements IdGenerator {
  nextId() {
    return 42n;
  }
  async nextIdAsync() {
    return 42n;
  }
}
takes<IdGenerator>(ids);
takes<IdGenerator>(counter);
takes<IdGenerator>(new Fixed());
takes<IdGenerator>({ nextId: () => 1n, nextIdAsync: () => Promise.resolve(1n) });
// @ts-expect-error it does not wait
takes<IdGenerator>({ nextId: () => 1n });
// @ts-expect-error an ID is a bigint
takes<IdGenerator>({ nextId: () => 1, nextIdAsync: async () => 1 });

// Layouts -------------------------------------------------------------------------------------------------------

const layout = new Layout("discord");
new Layout(layout);
new Layout({ fields: { timestamp: 41, sequence: 12 }, epochMs: 0 });
new Layout({ fields: { timestamp: 41n, sequence: "12" }, epochMs: 0n, tickMs: "10" });
new Layout({
  fields: [
    ["timestamp", 41],
    ["sequence", 12n],
  ],
  epochMs: 0,
});
new Layout({
  fields: new Map([
    ["timestamp", 41],
    ["sequence", 12],
  ]),
  epochMs: 0,
  tickMs: undefined,
});
takes<LayoutFields>({
  fields: layout.fields.map(({ name, bits }) => [name, bits] as const),
  epochMs: layout.epochMs,
});
// @ts-expect-error an epoch is required
new Layout({ fields: { timestamp: 41, sequence: 12 } });
// @ts-expect-error no such property
new Layout({ fields: { timestamp: 41, sequence: 12 }, epochMs: 0, tick: 1 });
// @ts-expect-error a width is a number
new Layout({ fields: { timestamp: true }, epochMs: 0 });
// @ts-expect-error a layout is required
new Layout();

same<typeof Layout.presets, readonly string[]>(true);
same<typeof layout.fields, readonly Field[]>(true);
same<Field["mask"], bigint>(true);
same<Field["bits"], number>(true);
same<typeof layout.epochMs, bigint>(true);
same<typeof layout.tickMs, bigint>(true);
same<typeof layout.endsAtMs, bigint>(true);
same<typeof layout.epoch, Date | null>(true);
same<typeof layout.endsAt, Date | null>(true);
same<typeof layout.idsPerTick, number>(true);
same<typeof layout.nodes, number>(true);
same<Parameters<typeof layout.compose>, [time: Instant, node: Node | null, sequence: Integer]>(true);
same<ReturnType<typeof layout.compose>, bigint>(true);
layout.compose(new Date(), { worker: 1, process: 2 }, 0);
new Layout("mastodon").compose(0, null, 0);
same<ReturnType<typeof layout.minId>, bigint>(true);
same<Parameters<typeof layout.maxId>, [time: Instant]>(true);
same<Instant, Date | number | bigint>(true);
same<Integer, number | bigint | string>(true);
// @ts-expect-error a string is not an instant
layout.minId("2024-01-01");
// @ts-expect-error read-only
layout.fields[0] = layout.fields[1];
// @ts-expect-error read-only
layout.epochMs = 5n;
takes<boolean>(layout.equals(new Layout("leaf")));
takes<string>(`${layout}`);

// Decoded IDs ---------------------------------------------------------------------------------------------------

const decoded = ids.decode(ids.nextId());
same<typeof decoded, Decoded>(true);
same<ReturnType<typeof layout.decode>, Decoded>(true);
same<Parameters<typeof layout.decode>, [id: Integer]>(true);
same<typeof decoded.id, bigint>(true);
same<typeof decoded.timestampMs, bigint>(true);
same<typeof decoded.ticks, bigint>(true);
same<typeof decoded.time, Date | null>(true);
same<typeof decoded.node, number>(true);
same<typeof decoded.sequence, number>(true);
same<typeof decoded.fields, Readonly<Record<string, number>>>(true);
same<typeof decoded.layout, Layout>(true);
takes<number | undefined>(decoded.fields.worker);
// @ts-expect-error read-only
decoded.id = 5n;
// @ts-expect-error read-only
decoded.fields.worker = 5;
// @ts-expect-error a Decoded comes from decode
takes<bigint[]>(decoded);

// Text ----------------------------------------------------------------------------------------------------------

same<
  Format,
  | "decimal"
  | "hex"
  | "base32"
  | "base36"
  | "base58"
  | "base62"
  | "uuid"
  | "bwmarrin-base32"
  | "bwmarrin-base58"
>(true);
same<ReturnType<typeof formatId>, string>(true);
same<ReturnType<typeof parseId>, bigint>(true);
formatId(1n);
formatId("1", "hex");
parseId("1", "base58");
// @ts-expect-error no such format
formatId(1n, "base64");
// @ts-expect-error it reads text
parseId(1n);

// Errors --------------------------------------------------------------------------------------------------------

declare const caught: unknown;
if (caught instanceof PolyflakeError) {
  same<typeof caught.code, PolyflakeErrorCode>(true);
  same<typeof caught.number, number>(true);
  takes<number | undefined>(caught.behindMs);
  takes<number | undefined>(caught.retryAfterMs);
  takes<Error>(caught);
  if (caught.code === "CLOCK_MOVED_BACKWARDS") caught.cause;
  // @ts-expect-error no such code
  if (caught.code === "NO_SUCH_CODE") throw caught;
}
takes<Record<PolyflakeErrorCode, number>>({
  INVALID_LAYOUT: 1,
  UNKNOWN_LAYOUT: 2,
  INVALID_NODE: 3,
  INVALID_OPTION: 4,
  INVALID_ID: 5,
  TIME_OUT_OF_RANGE: 6,
  CLOCK_MOVED_BACKWARDS: 7,
  SEQUENCE_EXHAUSTED: 8,
  FORKED: 9,
  CLOCK_FAILED: 10,
  STATE_FILE: 11,
  LEASE_UNAVAILABLE: 12,
  LEASE_LOST: 13,
  CLOSED: 14,
  COUNTER_UNAVAILABLE: 15,
  INTERNAL: 99,
});

// The entry that reads IDs -----------------------------------------------------------------------------------------

same<typeof reading.discord, reading.Preset>(true);
same<ReturnType<typeof reading.decode>, reading.Decoded>(true);
for (const layout of [reading.cosidSecond, reading.presets.twitter as reading.Preset]) {
  const decoded = reading.decode("1", layout);
  // The same values of the same types as the core's, and no more.
  takes<Omit<reading.Decoded, "layout">>(new Layout(layout).decode(1n));
  takes<Omit<Decoded, "layout" | "equals">>(decoded);
  same<ReturnType<typeof reading.minId>, bigint>(true);
  reading.maxId(new Date(), layout);
}
reading.minId(0n, { fields: { timestamp: 41, sequence: 12 }, epochMs: "0" });
same<Parameters<typeof reading.formatId>, Parameters<typeof formatId>>(true);
same<Parameters<typeof reading.parseId>, Parameters<typeof parseId>>(true);
takes<(error: reading.PolyflakeError) => PolyflakeError>((error) => error);
// @ts-expect-error a preset's name would pull in all of them
reading.decode(1n, "discord");
// @ts-expect-error no preset of that name
reading.disord;

// Public IDs ----------------------------------------------------------------------------------------------------

const orders = new PublicIds(["pfk_10kvEGTqNtUTXFUlMnM4wIa"] as const, "order");
new PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "");
// @ts-expect-error a prefix is needed
new PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa");
same<ReturnType<typeof orders.encode>, string>(true);
orders.encode(7);
orders.encode("7");
same<ReturnType<typeof orders.decode>, bigint>(true);
// @ts-expect-error a public ID is a string
orders.decode(7n);
same<ReturnType<typeof orders.encodeAll>, string[]>(true);
orders.encodeAll(BigUint64Array.of(7n));
takes<BigUint64Array>(orders.decodeAll(new Set([""])));
same<typeof orders.prefix, string>(true);
takes<readonly number[]>(orders.keyNumbers);
same<ReturnType<typeof PublicIds.generateKey>, string>(true);
