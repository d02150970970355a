// With a TypeScript library that has `using`, and `require`.
import polyflake = require("polyflake");

{
  using ids = new polyflake.Snowflake({ node: 7 });
  ids.nextId();
}
declare function takes<T>(value: T): void;
takes<Disposable>(new polyflake.Snowflake({ node: 7 }));
