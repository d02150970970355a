/**
 * Drizzle: a primary key that a generator fills in. IDs are bigint in the program and BIGINT in PostgreSQL.
 *
 *     const orders = pgTable("orders", { id: snowflakeKey(ids), parent: snowflakeId() });
 *     const [{ id }] = await db.insert(orders).values({}).returning();
 *
 * Drizzle does not wait for a default. `nextId` of a Counter throws where it has no number in hand, so give its numbers
 * yourself: `values({ id: await ids.nextIdAsync() })`.
 */
import { between } from "drizzle-orm";
import { bigint, type PgColumn } from "drizzle-orm/pg-core";
import type { IdGenerator, Layout } from "polyflake";

/** A column of IDs. */
export const snowflakeId = () => bigint({ mode: "bigint" });

/** The primary key: each new row takes the generator's next ID. */
export const snowflakeKey = (ids: IdGenerator) =>
  snowflakeId()
    .primaryKey()
    .$defaultFn(() => ids.nextId());

/** Rows made from `start` on and before `end`, found by the primary key's index. */
export const madeBetween = (id: PgColumn, layout: Layout, start: Date, end: Date) =>
  between(id, layout.minId(start), layout.minId(end) - 1n);
