// The backend over the native addon.
import type { Backend, Generator, NodeTexts, Reading } from "./backend.js";
import { coreError } from "./errors.js";

/** What the addon exports: a backend whose `nextId` leaves the ID in the array of `connect`. */
export interface Addon extends Omit<Backend, "name" | "snowflake"> {
  connect(error: typeof coreError, id: BigUint64Array): void;
  snowflake(
    options: string[],
    node: NodeTexts | undefined,
    clock: Reading | undefined,
  ): Omit<Generator, "nextId"> & { nextId(): void };
}

export function nativeBackend(addon: Addon): Backend {
  const id = new BigUint64Array(1);
  addon.connect(coreError, id);
  return { ...addon, name: "native", snowflake };

  function snowflake(options: string[], node: NodeTexts | undefined, clock: Reading | undefined): Generator {
    // The addon holds what it is given for as long as the generator lives, unseen by the garbage collector: a
    // clock that knows its Snowflake would keep both forever. So the generator holds the clock, and the addon a way to it.
    const held = clock && new WeakRef(clock);
    const generator = addon.snowflake(options, node, held && (() => held.deref()?.()));
    const next = generator.nextId;
    function nextId(): bigint {
      next();
      return id[0] as bigint;
    }
    return Object.assign(generator, { nextId, clock });
  }
}
