// The recipe for Drizzle, on PostgreSQL.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { asc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { pgTable } from "drizzle-orm/pg-core";
import pg from "pg";
import { type IdGenerator, Layout } from "polyflake";
import { madeBetween, snowflakeId, snowflakeKey } from "./drizzle.js";
import { EXACT, generators, postgres } from "./support.js";

const pool = new pg.Pool({ connectionString: postgres });
const db = drizzle(pool);
after(() => pool.end());

const table = (ids: IdGenerator) =>
  pgTable("drizzle_orders", { id: snowflakeKey(ids), parent: snowflakeId() });

before(async () => {
  await pool.query("DROP TABLE IF EXISTS drizzle_orders");
  await pool.query("CREATE TABLE drizzle_orders (id BIGINT PRIMARY KEY, parent BIGINT)");
});

for (const [kind, ids] of Object.entries(await generators())) {
  test(`new rows take the next IDs: ${kind}`, async () => {
    const orders = table(ids);
    await db.delete(orders);
    const first = await ids.nextIdAsync();
    await db.insert(orders).values(Array.from({ length: 20 }, () => ({ parent: first })));
    const [row] = await db.insert(orders).values({}).returning();
    const given = await ids.nextIdAsync();
    await db.insert(orders).values({ id: given });
    const found = await db.select().from(orders).orderBy(asc(orders.id));
    assert.equal(found.length, 22);
    assert.ok(found.every(({ id }) => typeof id === "bigint" && id > first && id <= given));
    assert.equal(new Set(found.map(({ id }) => id)).size, 22);
    assert.equal(found.at(-2)?.id, row?.id);
    assert.equal(found[0]?.parent, first);
  });
}

test("an ID comes back as it went", async () => {
  const orders = table({ nextId: () => 5n, nextIdAsync: async () => 5n });
  await db.delete(orders);
  await db.insert(orders).values(EXACT.map((id) => ({ id })));
  const found = await db.select().from(orders).orderBy(asc(orders.id));
  assert.deepEqual(
    found.map(({ id }) => id),
    EXACT,
  );
  for (const id of EXACT) assert.equal((await db.select().from(orders).where(eq(orders.id, id))).length, 1);
});

test("rows of a span of time", async () => {
  const layout = new Layout("twitter");
  const [start, end] = [new Date("2026-02-28T12:00:00Z"), new Date("2026-03-01T12:00:00Z")];
  const at = (date: Date, ms: number, sequence: number) =>
    layout.compose(new Date(date.getTime() + ms), 1023, sequence);
  const ids = [at(start, -1, 4095), at(start, 0, 0), at(end, -1, 4095), at(end, 0, 0)];
  const orders = table({ nextId: () => 5n, nextIdAsync: async () => 5n });
  await db.delete(orders);
  await db.insert(orders).values(ids.map((id) => ({ id })));
  const found = await db
    .select()
    .from(orders)
    .where(madeBetween(orders.id, layout, start, end))
    .orderBy(asc(orders.id));
  assert.deepEqual(
    found.map(({ id }) => id),
    ids.slice(1, 3),
  );
});
