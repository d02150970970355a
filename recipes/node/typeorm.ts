/**
 * TypeORM: columns of IDs, and a subscriber that fills in primary keys. IDs are bigints in the program and BIGINTs in
 * the database.
 *
 *     @Entity()
 *     class Order {
 *       @SnowflakeKey() id!: bigint;
 *       @SnowflakeColumn({ nullable: true }) parent!: bigint | null;
 *     }
 *
 *     const source = await new DataSource({ ... }).initialize();
 *     source.subscribers.push(new SnowflakeSubscriber(ids));
 */
import type { IdGenerator } from "polyflake";
import type { ColumnOptions, EntitySubscriberInterface, InsertEvent, ObjectLiteral } from "typeorm";
import { Column, PrimaryColumn } from "typeorm";

const transformer = {
  // TypeORM calls this for conditions too, with an array for In([...]).
  to: (id: unknown) => (typeof id === "bigint" ? String(id) : id),
  from: (text: string | null) => (text === null ? null : BigInt(text)),
};

/** A column of IDs. */
export const SnowflakeColumn = (options?: ColumnOptions) =>
  Column({ ...options, type: "bigint", transformer });

/** A primary key: each new row takes the generator's next ID. */
export const SnowflakeKey = () => PrimaryColumn({ type: "bigint", transformer });

export class SnowflakeSubscriber implements EntitySubscriberInterface {
  readonly #ids: IdGenerator;

  constructor(ids: IdGenerator) {
    this.#ids = ids;
  }

  async beforeInsert({ entity, metadata }: InsertEvent<ObjectLiteral>): Promise<void> {
    for (const column of metadata.primaryColumns) {
      if (column.transformer !== transformer || (column.getEntityValue(entity) ?? null) !== null) continue;
      column.setEntityValue(entity, await this.#ids.nextIdAsync());
    }
  }
}
