// Finds other copies of this package in the process, which may have separate cursors.
import type { Backend } from "../../bindings-wasm/js/backend.js";

/** The record that a copy leaves in the global object for other copies to find, whatever their versions. */
interface Copy {
  /**
   * Identifies the cursors that the copy uses. Two copies of the JavaScript that use the same native library have equal
   * values.
   */
  readonly library: unknown;
  /** The path that the copy was loaded from, if it is known. */
  readonly path: string | undefined;
  /** Whether the user has been warned. */
  isTold: boolean;
}

/** Whether this copy has looked for others. */
let hasLooked = false;

/**
 * Warns once if there is another copy with different cursors. Call this when a Snowflake takes a cursor rather than on
 * import. No IDs can repeat before then, and bundlers can drop unused code if the import does nothing.
 */
export function lookForCopies(
  { copies }: Backend,
  from: string | undefined,
  warn: (message: string) => void,
): void {
  if (hasLooked) return;
  hasLooked = true;
  const path = from ?? placeInStack();
  const [library, warning] = copies?.() ?? [hasOwnCursors, null];
  const key = Symbol.for("polyflake.copy");
  const own: Copy = { library, path, isTold: false };
  const realm = globalThis as unknown as Record<symbol, Copy | undefined>;
  // If globals are frozen, copies cannot find each other.
  if (realm[key] === undefined) Reflect.defineProperty(globalThis, key, { value: own });
  const first = realm[key] ?? own;
  if (first.isTold || (first.library === library && warning === null)) return;
  first.isTold = true;
  const [here, there] = [path, first.path].map((path) => path ?? "a path that is not known");
  warn(
    warning ??
      `polyflake was loaded more than once, from ${here} and from ${there}: each copy has its own cursors, so Snowflakes ` +
        "of one node repeat IDs; keep one copy (npm dedupe, or your bundler's settings for duplicates), or give the " +
        "Snowflakes of each their own nodes",
  );
}

/** Identifies the cursors of a WebAssembly module, which no other copy of the JavaScript can use. */
const hasOwnCursors = {};

/**
 * Returns the path that this code was loaded from, if an error's stack shows it. In some bundle formats, nothing else
 * does.
 */
function placeInStack(): string | undefined {
  try {
    return /[^\s(@]*[/\\][^\n]*?:\d+:\d+/.exec(new Error().stack ?? "")?.[0];
  } catch {
    return undefined; // a program may format stacks in its own way
  }
}
