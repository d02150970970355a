/**
 * Zod 4.1: IDs are strings in JSON, and bigints in the program.
 *
 *     const Order = z.object({ id: snowflakeId, parent: snowflakeId.optional() });
 *
 *     const order = Order.parse(await request.json()); // order.id is a bigint
 *     JSON.stringify(Order.encode(order)); // {"id":"1541815603606036480"}
 *     z.toJSONSchema(Order, { io: "input" }); // for OpenAPI
 *
 * Numbers are refused, since JSON.parse may have rounded them.
 */
import { parseId } from "polyflake";
import { z } from "zod";

/** The schema of an ID. It fits a BIGINT, as the format says. */
export const snowflakeId = z.codec(
  z.string().meta({ format: "int64", pattern: "^[0-9]{1,19}$" }),
  z
    .bigint()
    .min(1n)
    .max(2n ** 63n - 1n),
  {
    encode: (id) => String(id),
    decode(text, context) {
      try {
        return parseId(text);
      } catch {
        context.issues.push({
          code: "invalid_format",
          format: "int64",
          input: text,
          message: "an ID must be decimal text",
        });
        return z.NEVER;
      }
    },
  },
);
