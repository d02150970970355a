// The recipe for Prisma, on PostgreSQL.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";
import type { IdGenerator } from "polyflake";
import { snowflakeIds } from "./prisma.js";
import { PrismaClient } from "./prisma-client/client.js";
import { EXACT, generators, postgres } from "./support.js";

const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: postgres }) });
after(() => prisma.$disconnect());
const client = (ids: IdGenerator) => prisma.$extends(snowflakeIds(ids, ["Order"]));

before(async () => {
  const database = new pg.Client({ connectionString: postgres });
  await database.connect();
  await database.query("DROP TABLE IF EXISTS prisma_codes, prisma_orders");
  await database.query("CREATE TABLE prisma_orders (id BIGINT PRIMARY KEY, parent BIGINT)");
  await database.query('CREATE TABLE prisma_codes (id TEXT PRIMARY KEY, "order" BIGINT NOT NULL)');
  await database.end();
});

for (const [kind, ids] of Object.entries(await generators())) {
  test(`new rows take the next IDs: ${kind}`, async () => {
    const { order } = client(ids);
    await order.deleteMany();
    const first = await ids.nextIdAsync();
    const row = { parentId: first };
    const { id } = await order.create({ data: row });
    assert.equal((await order.createMany({ data: [row, row, row] })).count, 3);
    await order.createMany({ data: row });
    const two = await order.createManyAndReturn({ data: [row, {}] });
    const upserted = await order.upsert({ where: { id: 1n }, create: row, update: { parentId: 1n } });
    const last = await ids.nextIdAsync();
    assert.deepEqual(row, { parentId: first });
    const found = await order.findMany({ orderBy: { id: "asc" } });
    assert.deepEqual(
      found.map(({ parentId }) => parentId),
      [first, first, first, first, first, first, null, first],
    );
    assert.ok(found.every((each) => typeof each.id === "bigint" && each.id > first && each.id < last));
    assert.deepEqual(
      [id, ...two.map((each) => each.id), upserted.id],
      [0, 5, 6, 7].map((n) => found[n]?.id),
    );
  });
}

const five = { nextId: () => 5n, nextIdAsync: async () => 5n };

test("an ID that is given stays, and comes back as it went", async () => {
  const { order } = client(five);
  await order.deleteMany();
  for (const id of EXACT) await order.create({ data: { id, parentId: id } });
  const found = await order.findMany({ orderBy: { id: "asc" } });
  assert.deepEqual(
    found.map(({ id, parentId }) => [id, parentId]),
    EXACT.map((id) => [id, id]),
  );
  for (const id of EXACT) assert.equal((await order.findUniqueOrThrow({ where: { id } })).parentId, id);
  const [id = 0n] = EXACT;
  await order.upsert({ where: { id }, create: {}, update: { parentId: 7n } });
  assert.equal((await order.findUniqueOrThrow({ where: { id } })).parentId, 7n);
});

test("other models keep their keys, and the database refuses a row without an ID", async () => {
  const { order, code } = client(five);
  await order.deleteMany();
  await order.create({ data: { codes: { create: { id: "a" } } } });
  await code.create({ data: { id: "b", orderId: 5n } });
  assert.deepEqual(await code.findMany({ orderBy: { id: "asc" } }), [
    { id: "a", orderId: 5n },
    { id: "b", orderId: 5n },
  ]);
  // Inserts a null into a column that does not allow it.
  await assert.rejects(prisma.order.create({ data: {} }), { code: "P2011" });
  await assert.rejects(order.create({ data: { id: 6n, parts: { create: {} } } }), { code: "P2011" });
  await order.create({ data: { id: 6n, parts: { create: { id: 7n } } } });
  assert.deepEqual(
    (await order.findMany({ orderBy: { id: "asc" } })).map(({ id, parentId }) => [id, parentId]),
    [
      [5n, null],
      [6n, null],
      [7n, 6n],
    ],
  );
});
