// The same types with `require`.
import polyflake = require("polyflake");
import reading = require("polyflake/decode");

import type { Format, Integer } from "polyflake";

const { formatId, Layout, PolyflakeError, parseId, Snowflake } = polyflake;

const ids = new Snowflake({ node: 7, layout: new Layout("leaf") });
const id: bigint = ids.nextId();
const format: Format = "base58";
const integer: Integer = parseId(formatId(id, format), format);
declare function takes<T>(value: T): void;
takes<polyflake.Snowflake>(ids);
takes<polyflake.Decoded>(ids.decode(integer));
// @ts-expect-error a bigint is not a number
takes<number>(ids.nextId());
// @ts-expect-error no such option
new Snowflake({ nod: 7 });
try {
  ids.nextIds(10);
} catch (error) {
  if (error instanceof PolyflakeError && error.code === "CLOCK_FAILED") throw error.cause;
}
takes<reading.Decoded>(reading.decode(id, reading.jsSafe));
