// With a TypeScript library older than `using`.
import { Layout, type PolyflakeError, Snowflake } from "polyflake";

const ids = new Snowflake({ node: 7 });
const id: bigint = ids.nextId();
const worker: number | undefined = new Layout("leaf").decode(id).fields.worker;
ids[Symbol.dispose]();
declare function takes<T>(value: T): void;
takes(worker);
takes<(error: PolyflakeError) => string>((error) => error.code);
