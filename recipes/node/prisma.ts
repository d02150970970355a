/**
 * Prisma 7: a client extension that fills in the primary keys. IDs are bigints in the program and BIGINTs in the
 * database.
 *
 *     model Order {
 *       id     BigInt  @id @default(dbgenerated())
 *       parent BigInt?
 *     }
 *
 *     const prisma = new PrismaClient({ adapter }).$extends(snowflakeIds(ids, ["Order"]));
 *     const { id } = await prisma.order.create({ data: {} });
 *
 * An empty `dbgenerated()` lets programs leave `id` out, but gives the column no default, so the database refuses a row
 * without an ID. Extensions do not see rows that are created inside another model's `data`. Set their IDs yourself:
 * `create: { id: await ids.nextIdAsync() }`.
 */
import { Prisma } from "@prisma/client/extension";
import type { IdGenerator } from "polyflake";

/** Fills in the `id` of the models with these names. */
export function snowflakeIds(ids: IdGenerator, models: string[]) {
  const fill = async (row: Row): Promise<Row> => ({ ...row, id: row.id ?? (await ids.nextIdAsync()) });
  async function filled<Data>(model: string, data: Data): Promise<Data> {
    if (!models.includes(model)) return data;
    const rows = data as Row | Row[];
    return (Array.isArray(rows) ? await Promise.all(rows.map(fill)) : await fill(rows)) as Data;
  }
  return Prisma.defineExtension({
    name: "polyflake",
    query: {
      $allModels: {
        create: async ({ model, args, query }) => query({ ...args, data: await filled(model, args.data) }),
        createMany: async ({ model, args, query }) =>
          query({ ...args, data: await filled(model, args.data) }),
        createManyAndReturn: async ({ model, args, query }) =>
          query({ ...args, data: await filled(model, args.data) }),
        upsert: async ({ model, args, query }) =>
          query({ ...args, create: await filled(model, args.create) }),
      },
    },
  });
}

type Row = { id?: bigint | number };
