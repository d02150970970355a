// With a TypeScript library that has `using`.
import { Snowflake } from "polyflake";

{
  using ids = new Snowflake({ node: 7 });
  ids.nextId();
}
declare function takes<T>(value: T): void;
takes<Disposable>(new Snowflake({ node: 7 }));
// @ts-expect-error it closes at once
takes<AsyncDisposable>(new Snowflake({ node: 7 }));
