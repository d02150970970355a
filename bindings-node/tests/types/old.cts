// With `require`, and a TypeScript library older than `using`.
import polyflake = require("polyflake");

const ids = new polyflake.Snowflake({ node: 7 });
const id: bigint = ids.nextId();
ids[Symbol.dispose]();
// @ts-expect-error a bigint is not a number
const number: number = id;
declare function takes<T>(value: T): void;
takes(number);
