/**
 * Zod 4.1: public IDs in JSON and in paths, and bigints in the program.
 *
 *     const orderId = publicId(new PublicIds(await readFile("/run/secrets/public-keys", "utf8"), "order"));
 *     const Order = z.object({ id: orderId, parent: orderId.optional() });
 *
 *     const order = Order.parse(await request.json()); // order.id is a bigint
 *     JSON.stringify(Order.encode(order)); // {"id":"order_15ShV20Bxc6UJvKSQbDvo0J"}
 *     z.toJSONSchema(Order, { io: "input" }); // for OpenAPI
 */
import type { PublicIds } from "polyflake";
import { z } from "zod";

/** The schema of an ID that is shown as a public ID. */
export function publicId(ids: PublicIds) {
  const prefix = ids.prefix === "" ? "" : `${ids.prefix}_`;
  return z.codec(
    z.string().meta({ pattern: `^${prefix}[0-9A-Za-z]{23}$` }),
    z
      .bigint()
      .min(0n)
      .max(2n ** 64n - 1n),
    {
      encode: (id) => ids.encode(id),
      decode(text, context) {
        try {
          return ids.decode(text);
        } catch (error) {
          const { message } = error as Error;
          context.issues.push({ code: "invalid_format", format: "public_id", input: text, message });
          return z.NEVER;
        }
      },
    },
  );
}
