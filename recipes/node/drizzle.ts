/**
 * Drizzle: a primary key that a generator fills in. IDs are bigints in the program and BIGINTs in PostgreSQL.
 *
 *     const orders = pgTable("orders", { id: snowflakeKey(ids), parent: snowflakeId() });
 *     const [{ id }] = await db.insert(orders).values({}).returning();
 *
 * Drizzle cannot wait for a default, and a Counter's `nextId` throws if no number is in hand. With a Counter, set the
 * ID yourself: `values({ id: await ids.nextIdAsync() })`.
 */
import { between } from "drizzle-orm";
import { bigint, type PgColumn } from "drizzle-orm/pg-core";
import type { IdGenerator, Layout } from "polyflake";

/** A column of IDs. */
export const snowflakeId = () => bigint({ mode: "bigint" });

/** A primary key: each new row takes the generator's next ID. */
export const snowflakeKey = (ids: IdGenerator) =>
  snowflakeId()
    .primaryKey()
    .$defaultFn(() => ids.nextId());

/** Rows created at or after `start` and before `end`, found through the primary key's index. */
export const madeBetween = (id: PgColumn, layout: Layout, start: Date, end: Date) =>
  between(id, layout.minId(start), layout.minId(end) - 1n);
