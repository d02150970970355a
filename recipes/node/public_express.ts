/**
 * Express 5: public IDs in paths, and bigint in the handlers.
 *
 *     const app = express();
 *     app.param("order", publicId(new PublicIds(keys, "order")));
 *
 *     app.get("/orders/:order", (request, response) => {
 *       const id: bigint = response.locals.order;
 *       response.json({ id: orders.encode(id) });
 *     });
 *
 * A text that is no public ID of this prefix has no route, and so is answered with 404. A router has parameters of its own:
 * call `router.param` too.
 */
import type { RequestParamHandler } from "express";
import type { PublicIds } from "polyflake";

/** Decodes a path's parameter into `response.locals`, under its name. */
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
