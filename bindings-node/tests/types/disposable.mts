// With a TypeScript library that has `using`.
import { Snowflake } from "polyflake";

async () => {
  await using ids = await Snowflake.open({ lease: "redis://host/0" });
  ids.nextId();
};
{
  using ids = new Snowflake({ node: 7 });
  ids.nextId();
}
declare function takes<T>(value: T): void;
takes<Disposable>(new Snowflake({ node: 7 }));
takes<AsyncDisposable>(new Snowflake({ node: 7 }));
