export type { Instant, Integer, Node } from "./convert.js";
export type { PolyflakeErrorCode } from "./errors.js";
export { PolyflakeError } from "./errors.js";
export type { Field, LayoutFields } from "./layout.js";
export { Decoded, Layout } from "./layout.js";
export type { SnowflakeOptions, Stats } from "./snowflake.js";
export { resetState, Snowflake } from "./snowflake.js";
export type { Format } from "./text.js";
export { formatId, parseId } from "./text.js";
