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
  return {
    ...addon,
    name: "native",
    snowflake(options, node, clock) {
      const generator = addon.snowflake(options, node, clock && unheld(clock));
      const next = generator.nextId;
      const nextId = () => {
        next();
        return id[0] as bigint;
      };
      return Object.assign(generator, { nextId, clock });
    },
  };
}

/**
 * The clock, for the addon to hold: what it holds the garbage collector must keep, and a clock that knows its
 * Snowflake would keep both forever. The generator holds the clock itself.
 */
function unheld(clock: Reading): Reading {
  const reference = new WeakRef(clock);
  return () => reference.deref()?.();
}
