export type {
  CounterStats,
  Field,
  LeaseInfo,
  SequencesStats,
  Stats,
} from "../../bindings-wasm/js/backend.js";
export type { Instant, Integer, Node } from "./convert.js";
export type { CounterOptions } from "./counter.js";
export { Counter } from "./counter.js";
export type { PolyflakeErrorCode } from "./errors.js";
export { PolyflakeError } from "./errors.js";
export type { IdGenerator } from "./generator.js";
export type { LayoutFields } from "./layout.js";
export { Decoded, DecodedAll, Layout } from "./layout.js";
export type { LeaseEvent } from "./native.js";
export type { SequenceKey, SequencesOptions } from "./sequences.js";
export { Sequences } from "./sequences.js";
export type { SnowflakeOptions } from "./snowflake.js";
export { resetState, Snowflake } from "./snowflake.js";
export type { Format } from "./text.js";
export { formatId, parseId } from "./text.js";
