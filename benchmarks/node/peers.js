// The other generators: how each is created and called. Their fields are as close to Twitter's as possible.

export const EPOCH_MS = 1735689600000;

/**
 * `make` is passed the package's exports. `call` is the code for a call that returns one ID; `bigint` is the code for
 * one that returns it as a bigint, if `call` does not. `decodes` has the code for calls on `it.it` that decode the ID
 * `it.ids[i]`, by name; each returns the ID's time, and stores another field, if any, in `it.seen`.
 */
export const peers = [
  {
    name: "nodejs-snowflake",
    make: ({ Snowflake }) => new Snowflake({ custom_epoch: EPOCH_MS, instance_id: 1 }),
    call: "it.getUniqueID()",
    decodes: {
      "timestampFromID, instanceIDFromID": `((it.seen = it.it.constructor.instanceIDFromID(it.ids[i])), it.it.constructor.timestampFromID(it.ids[i], ${EPOCH_MS}))`,
    },
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
  },
  {
    name: "flake-idgen",
    make: ({ default: FlakeId }) => new FlakeId({ epoch: EPOCH_MS, id: 1 }),
    call: "it.next()",
    bigint: "it.next().readBigUInt64BE()",
  },
  {
    name: "snowflake-uuid",
    make: ({ Worker }) => new Worker(1n, 1n, { epoch: EPOCH_MS }),
    call: "it.nextId()",
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
  },
].map((peer) => ({ bigint: peer.call, decodes: {}, ...peer }));
