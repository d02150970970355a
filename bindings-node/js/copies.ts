// Other copies of this package in the process, each of which may have its own cursors.
import type { Backend } from "../../bindings-wasm/js/backend.js";

/** What a copy leaves for others to find, whatever its version. */
interface Copy {
  /** Identifies the owner of the copy's cursors: equal if two copies of the JavaScript use one native library. */
  readonly library: unknown;
  /** The path it was loaded from, if it knows. */
  readonly path: string | undefined;
  /** Whether a warning was given. */
  isTold: boolean;
}

/** Whether this copy has looked. */
let hasLooked = false;

/**
 * Warns, once, if there is another copy with different cursors. Call it when a Snowflake takes a cursor, not on import:
 * until then nothing repeats, and bundlers may drop unused code.
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
  // If globals are frozen, copies do not find each other.
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

/** Stands for the cursors of a WebAssembly module, which no other copy of the JavaScript can use. */
const hasOwnCursors = {};

/**
 * The path this code was loaded from, as far as an error's stack shows it: in some bundle formats nothing else does.
 */
function placeInStack(): string | undefined {
  try {
    return /[^\s(@]*[/\\][^\n]*?:\d+:\d+/.exec(new Error().stack ?? "")?.[0];
  } catch {
    return undefined; // a program may have its own kind of stack
  }
}
