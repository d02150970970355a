// With a TypeScript library that has `using`.
import { Counter, Sequences, Snowflake } from "polyflake";

async () => {
  await using ids = await Snowflake.open({ lease: "redis://host/0" });
  ids.nextId();
  await using orders = await Counter.open("orders", { store: "redis://host/0" });
  orders.nextId();
  await using inbox = await Sequences.open("inbox", { store: "redis://host/0" });
  inbox.nextId("alice");
};
{
  using ids = new Snowflake({ node: 7 });
  ids.nextId();
}
declare function takes<T>(value: T): void;
takes<Disposable>(new Snowflake({ node: 7 }));
takes<AsyncDisposable>(new Snowflake({ node: 7 }));
declare const counter: Counter;
takes<Disposable & AsyncDisposable>(counter);
declare const sequences: Sequences;
takes<Disposable & AsyncDisposable>(sequences);
