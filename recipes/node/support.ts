// Generators for the tests, and the address of the server that ../test.sh has started.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { Counter, Snowflake } from "polyflake";

export const postgres = process.env.RECIPES_POSTGRES ?? "";

/** The generators that each recipe must accept: a Snowflake with a node, one with a lease, a Counter. */
export async function generators(): Promise<Record<string, Snowflake | Counter>> {
  const folder = mkdtempSync(join(tmpdir(), "polyflake-recipes-"));
  const store = `sqlite://${folder}/store.db`;
  const made = {
    node: new Snowflake({ node: 7 }),
    lease: await Snowflake.open({ lease: store }),
    counter: await Counter.open("orders", { store }),
  };
  after(async () => {
    // Unlike a Snowflake's `close`, this waits until the lease has been given back to the store in the folder.
    for (const ids of Object.values(made)) await ids[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });
  return made;
}

/** IDs that conversion to a Number, or one conversion too many, would change. */
export const EXACT = [1n, 2n ** 53n + 1n, 1541815603606036481n, 2n ** 63n - 1n];

/** Values that are not IDs. */
export const WRONG = [
  ...[true, null, 1, 1.5, -1, [], {}],
  ...["", " 1", "-1", "1.0", "1e3", "12x", "0x1", String(2n ** 64n)],
];
