/**
 * Express 5: IDs are strings in JSON, and bigints in the handlers.
 *
 *     const app = express().use(express.json()).set("json replacer", idsAsText);
 *
 *     app.put("/orders/:id", (request, response) => {
 *       const id = readId(request.params.id);
 *       const parent = readId(request.body.parent);
 *       response.json({ id, parent });
 *     });
 *
 * Without the replacer, `response.json` throws when it encounters a bigint. `readId` answers anything but decimal text
 * with 400, even a number, since JSON.parse may have rounded it.
 */
import { parseId } from "polyflake";

/** A replacer for JSON.stringify that writes each bigint as a string. */
export function idsAsText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

/** Reads an ID from a request. Express answers with the error's status. */
export function readId(given: unknown): bigint {
  try {
    return parseId(given as string);
  } catch (cause) {
    throw Object.assign(new TypeError("an ID must be decimal text", { cause }), { status: 400 });
  }
}
