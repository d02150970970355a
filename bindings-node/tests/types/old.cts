// Where TypeScript's library is older than `using`, and the package is required.
import polyflake = require("polyflake");

const ids = new polyflake.Snowflake({ node: 7 });
const id: bigint = ids.nextId();
ids[Symbol.dispose]();
// @ts-expect-error a bigint is no number
const number: number = id;
declare function takes<T>(value: T): void;
takes(number);
