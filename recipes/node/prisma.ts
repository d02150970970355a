/**
 * Prisma 7: an extension of the client that fills in the primary keys. IDs are bigint in the program and BIGINT in the
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
 * An empty `dbgenerated()` lets programs leave `id` out, and gives the column no default: the database refuses a row that
 * has no ID. Extensions do not see rows that are created within another model's `data`, so give those an ID yourself:
 * `create: { id: await ids.nextIdAsync() }`.
 */
import { Prisma } from "@prisma/client/extension";
import type { IdGenerator } from "polyflake";

/** Fills in `id` of the models with these names. */
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
