/**
 * Fastify: IDs are strings in JSON, and bigints in the handlers.
 *
 *     const app = fastify({ ajv: { plugins: [snowflakeKeyword] } });
 *     app.decorate("ids", ids);
 *
 *     const body = { type: "object", required: ["id"], properties: { id: { snowflake: true } } };
 *     const reply = { type: "object", properties: { id: { type: "string" } } };
 *     app.put("/orders", { schema: { body, response: { 200: reply } } }, handler);
 *
 * `{ snowflake: true }` reads an ID from a request: decimal text, or a number that JSON.parse has not rounded. Anything
 * else is answered with 400. `{ type: "string" }` writes a bigint in a reply; without a schema, JSON.stringify throws
 * on a bigint.
 */
import type { Ajv } from "ajv";
import { type IdGenerator, parseId } from "polyflake";

declare module "fastify" {
  interface FastifyInstance {
    ids: IdGenerator;
  }
}

export function snowflakeKeyword(ajv: Ajv): Ajv {
  return ajv.addKeyword({
    keyword: "snowflake",
    modifying: true,
    validate(_wanted: boolean, given: unknown, _schema?: unknown, at?: Place) {
      const read = Number.isSafeInteger(given) ? String(given) : given;
      if (typeof read !== "string" || at === undefined) return false;
      try {
        at.parentData[at.parentDataProperty] = parseId(read);
        return true;
      } catch {
        return false;
      }
    },
  });
}

/** Where the schema found the value. */
type Place = { parentData: Record<string | number, unknown>; parentDataProperty: string | number };
