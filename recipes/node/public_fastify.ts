/**
 * Fastify 5: public IDs in paths and bodies, and bigints in the handlers.
 *
 *     const orders = new PublicIds(keys, "order");
 *     const app = fastify({ ajv: { plugins: [publicIdKeyword(orders)] } });
 *
 *     const params = { type: "object", properties: { order: { publicId: "order" } } };
 *     app.get<{ Params: { order: bigint } }>("/orders/:order", { schema: { params } }, async (request) => {
 *       return { id: orders.encode(request.params.order) };
 *     });
 *
 * `{ publicId: "order" }` reads a public ID with that prefix, and answers anything else with 400. Encode the IDs in
 * replies yourself: `{ type: "string" }` in a reply's schema would show a bigint in decimal.
 */
import type { Ajv } from "ajv";
import type { PublicIds } from "polyflake";

/** The keyword `publicId`, for these prefixes. */
export function publicIdKeyword(...all: PublicIds[]): (ajv: Ajv) => Ajv {
  return (ajv) =>
    ajv.addKeyword({
      keyword: "publicId",
      modifying: true,
      metaSchema: { enum: all.map(({ prefix }) => prefix) },
      compile(wanted: string) {
        const ids = all.find(({ prefix }) => prefix === wanted);
        return (given: unknown, at?: Place) => {
          if (ids === undefined || at === undefined) return false;
          const { parentData: parent, parentDataProperty: property } = at;
          // Another branch of the schema may already have decoded it.
          if (typeof given === "bigint") return read.get(parent)?.get(property) === wanted;
          if (typeof given !== "string") return false;
          try {
            parent[property] = ids.decode(given);
          } catch {
            return false;
          }
          read.set(parent, (read.get(parent) ?? new Map()).set(property, wanted));
          return true;
        };
      },
    });
}

/** The prefix of each decoded value, by where it was found. */
const read = new WeakMap<object, Map<string | number, string>>();

/** Where the schema found the value. */
type Place = { parentData: Record<string | number, unknown>; parentDataProperty: string | number };
