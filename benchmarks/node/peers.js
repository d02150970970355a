// The other generators: how each is made, and called. Their fields are as near to Twitter's as they get.

export const EPOCH_MS = 1735689600000;
const timeMs = (id) => Number(id >> 22n) + EPOCH_MS;

/**
 * `make` takes what the package exports. `call` is the text of a call that gives one ID; `bigint`, where that is none,
 * of one that makes it a bigint. `perMs`: how many IDs its sequence has for a millisecond.
 */
export const peers = [
  {
    name: "nodejs-snowflake",
    make: ({ Snowflake }) => new Snowflake({ custom_epoch: EPOCH_MS, instance_id: 1 }),
    call: "it.getUniqueID()",
    perMs: 1024,
    note: "10 sequence bits",
  },
  {
    name: "@sapphire/snowflake",
    make: ({ Snowflake }) => new Snowflake(EPOCH_MS),
    call: "it.generate()",
    perMs: 4096,
    note: "never waits",
  },
  {
    name: "flake-idgen",
    make: ({ default: FlakeId }) => new FlakeId({ epoch: EPOCH_MS, id: 1 }),
    call: "it.next()",
    bigint: "it.next().readBigUInt64BE()",
    perMs: 4096,
    note: "an ID is a Buffer; throws where a millisecond is used up, and is called again",
  },
  {
    name: "snowflake-uuid",
    make: ({ Worker }) => new Worker(1n, 1n, { epoch: EPOCH_MS }),
    call: "it.nextId()",
    perMs: 4096,
    note: "",
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
    perMs: 4091, // It keeps the lowest five for itself.
    note: "takes ticks ahead of the clock where a millisecond is used up",
  },
].map((peer) => ({ bigint: peer.call, chunk: 64, timeMs, ...peer }));

/** Why a peer is missing, in a line, and without the paths of this machine. */
export function cause({ code, message, errors }) {
  if (code === "ERR_MODULE_NOT_FOUND") return message.replace(/ imported from .*/s, "");
  // What esbuild throws tells in `errors` what is wrong.
  return (errors?.[0]?.text ?? message).split("\n")[0];
}
