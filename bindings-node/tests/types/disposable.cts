// With `require`, and a TypeScript library that has `using`.
import polyflake = require("polyflake");

async () => {
  await using ids = await polyflake.Snowflake.open({ lease: "redis://host/0" });
  ids.nextId();
  await using orders = await polyflake.Counter.open("orders", { store: "redis://host/0" });
  orders.nextId();
  await using inbox = await polyflake.Sequences.open("inbox", { store: "redis://host/0" });
  inbox.nextId("alice");
};
{
  using ids = new polyflake.Snowflake({ node: 7 });
  ids.nextId();
}
declare function takes<T>(value: T): void;
takes<Disposable>(new polyflake.Snowflake({ node: 7 }));
takes<AsyncDisposable>(new polyflake.Snowflake({ node: 7 }));
declare const counter: polyflake.Counter;
takes<Disposable & AsyncDisposable>(counter);
declare const sequences: polyflake.Sequences;
takes<Disposable & AsyncDisposable>(sequences);
