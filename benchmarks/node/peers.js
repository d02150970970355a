// The other generators: how each is made and called. Their fields are as close to Twitter's as possible.

export const EPOCH_MS = 1735689600000;
const timeMs = (id) => Number(id >> 22n) + EPOCH_MS;

/**
 * `make` takes the exports of the package. `call` is the code of a call that returns one ID; `bigint` is one that
 * returns it as a bigint, if `call` does not. `perMs`: how many IDs its sequence allows per millisecond. `decodes`: the
 * code of calls of `it.it` that take the ID `it.ids[i]` apart, by name; each returns its time, and those that have it
 * keep another field in `it.seen`.
 */
export const peers = [
  {
    name: "nodejs-snowflake",
    make: ({ Snowflake }) => new Snowflake({ custom_epoch: EPOCH_MS, instance_id: 1 }),
    call: "it.getUniqueID()",
    decodes: {
      "timestampFromID, instanceIDFromID": `((it.seen = it.it.constructor.instanceIDFromID(it.ids[i])), it.it.constructor.timestampFromID(it.ids[i], ${EPOCH_MS}))`,
    },
    perMs: 1024,
  },
  {
    name: "@sapphire/snowflake",
    make: ({ Snowflake }) => new Snowflake(EPOCH_MS),
    call: "it.generate()",
    decodes: {
      "deconstruct(id)":
        "((parts) => ((it.seen = parts.workerId), parts.timestamp))(it.it.deconstruct(it.ids[i]))",
      "timestampFrom(id)": "it.it.timestampFrom(it.ids[i])",
    },
    perMs: 4096,
  },
  {
    name: "flake-idgen",
    make: ({ default: FlakeId }) => new FlakeId({ epoch: EPOCH_MS, id: 1 }),
    call: "it.next()",
    bigint: "it.next().readBigUInt64BE()",
    perMs: 4096,
  },
  {
    name: "snowflake-uuid",
    make: ({ Worker }) => new Worker(1n, 1n, { epoch: EPOCH_MS }),
    call: "it.nextId()",
    perMs: 4096,
  },
  {
    name: "simple-flakeid",
    make: ({ SnowflakeIdv1 }) =>
      new SnowflakeIdv1({
        workerId: 1,
        baseTime: EPOCH_MS,
        workerIdBitLength: 10,
        seqBitLength: 12,
        maxSeqNumber: 4095,
      }),
    call: "it.NextBigId()",
    perMs: 4091, // It reserves the lowest five.
  },
].map((peer) => ({ bigint: peer.call, decodes: {}, chunk: 64, timeMs, ...peer }));

/** Why a peer is missing, in one line, without paths of this machine. */
export function cause({ code, message, errors }) {
  if (code === "ERR_MODULE_NOT_FOUND") return message.replace(/ imported from .*/s, "");
  // esbuild's exceptions give the reason in `errors`.
  return (errors?.[0]?.text ?? message).split("\n")[0];
}
