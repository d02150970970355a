/**
 * Express 5: public IDs in paths, and bigints in the handlers.
 *
 *     const app = express();
 *     app.param("order", publicId(new PublicIds(keys, "order")));
 *
 *     app.get("/orders/:order", (request, response) => {
 *       const id: bigint = response.locals.order;
 *       response.json({ id: orders.encode(id) });
 *     });
 *
 * Text that is not a public ID with this prefix matches no route, so Express answers 404. A router has its own
 * parameters: call `router.param` too.
 */
import type { RequestParamHandler } from "express";
import type { PublicIds } from "polyflake";

/** Decodes a path parameter into `response.locals`, under the parameter's name. */
export function publicId(ids: PublicIds): RequestParamHandler {
  return (_request, response, next, text, name) => {
    try {
      response.locals[name] = ids.decode(text);
    } catch {
      next("route");
      return;
    }
    next();
  };
}
