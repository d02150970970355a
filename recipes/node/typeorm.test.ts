// The recipe for TypeORM, on PostgreSQL.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { DataSource, Entity, In, IsNull } from "typeorm";
import { EXACT, generators, postgres } from "./support.js";
import { SnowflakeColumn, SnowflakeKey, SnowflakeSubscriber } from "./typeorm.js";

@Entity("typeorm_orders")
class Order {
  @SnowflakeKey() id!: bigint;
  @SnowflakeColumn({ nullable: true }) parent!: bigint | null;
}

const source = await new DataSource({
  type: "postgres",
  url: postgres,
  entities: [Order],
  synchronize: true,
  dropSchema: false,
}).initialize();
after(() => source.destroy());
const orders = source.getRepository(Order);

for (const [kind, ids] of Object.entries(await generators())) {
  test(`new rows take the next IDs: ${kind}`, async () => {
    source.subscribers.splice(0, source.subscribers.length, new SnowflakeSubscriber(ids));
    await orders.clear();
    const first = await ids.nextIdAsync();
    const saved = await orders.save(Array.from({ length: 300 }, () => orders.create({ parent: first })));
    await orders.insert([{ parent: null }, { parent: first }]);
    const last = await ids.nextIdAsync();
    const found = await orders.find({ order: { id: "ASC" } });
    assert.equal(found.length, 302);
    assert.equal(new Set(found.map(({ id }) => id)).size, 302);
    assert.ok(found.every(({ id }) => typeof id === "bigint" && id > first && id < last));
    assert.deepEqual(new Set(found.slice(0, 300).map(({ id }) => id)), new Set(saved.map(({ id }) => id)));
    assert.equal(await orders.countBy({ parent: first }), 301);
    assert.equal(await orders.countBy({ parent: IsNull() }), 1);
  });
}

test("an ID comes back as it went, and is found", async () => {
  await orders.clear();
  await orders.save(EXACT.map((id) => orders.create({ id, parent: id })));
  const found = await orders.find({ order: { id: "ASC" } });
  assert.deepEqual(
    found.map(({ id }) => id),
    EXACT,
  );
  for (const id of EXACT) assert.equal((await orders.findOneByOrFail({ id })).parent, id);
  assert.equal(await orders.countBy({ id: In(EXACT.slice(1)) }), 3);
});

test("a row is updated and removed by its ID", async () => {
  await orders.clear();
  const [id = 0n] = EXACT.slice(1);
  await orders.insert({ id });
  const order = await orders.findOneByOrFail({ id });
  order.parent = 5n;
  await orders.save(order);
  assert.deepEqual(
    (await orders.find()).map((row) => [row.id, row.parent]),
    [[id, 5n]],
  );
  await orders.remove(order);
  assert.equal(await orders.count(), 0);
});
