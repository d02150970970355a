// The backend over the WebAssembly module.
import * as glue from "polyflake/glue";
import { unheld } from "../../bindings-node/js/convert.js";
import { PolyflakeError } from "../../bindings-node/js/errors.js";
import type { Backend, Generator, NodeTexts, Reading } from "./backend.js";
import * as host from "./host.js";

/** What bindings-node/build.sh adds to the module's exports. */
interface Globals {
  readonly __stack_pointer: WebAssembly.Global<"i32">;
}

/** The end of the module's own stack, which grows down: where it is while no call runs. */
let stackTop = 0;
let stack: WebAssembly.Global<"i32">;
/** How many calls run, each within the one before: a caller's clock may make more. */
let depth = 0;
/** Whether a call ended amid the module: by a trap, or because JavaScript's stack was used up. */
let isBroken = false;
/** The error of a trap, worded by the core while all is well. */
let bug: host.Refusal;

/**
 * Instantiates the module, without waiting: `core` is called by constructors. `alone`: why it must not use a built-in
 * clock, where other threads of the process may issue IDs for the same node.
 */
export function wasmBackend(module: WebAssembly.Module, alone?: string): Backend {
  stack = (glue.initSync({ module }) as unknown as Globals).__stack_pointer;
  stackTop = stack.value;
  glue.refuse("internal", "");
  bug = host.failure as host.Refusal;
  host.dropFailure();
  return {
    name: "wasm",
    presets: settled(glue.presets),
    layout: settled(glue.layout),
    layoutOf: settled(glue.layoutOf),
    decode: settled(glue.decode),
    compose: settled(glue.compose),
    minId: settled(glue.minId),
    maxId: settled(glue.maxId),
    formatId: settled(glue.formatId),
    parseId: settled(glue.parseId),
    batchSize: settled(glue.batchSize),
    resetState() {
      refuse("state_file", "");
    },
    snowflake(options, node, clock) {
      if (alone !== undefined && clock === undefined) refuse("invalid_option", alone);
      return Object.assign(generator(options, node, clock && unheld(clock)), { clock });
    },
  };
}

/** Refuses what the module never comes to see. */
const refuse = settled(glue.refuse);

const newGenerator = settled((options: string[], node: NodeTexts | undefined, clock: Reading | undefined) => {
  const made = new glue.Generator(options, node, clock);
  // One that was refused has none.
  return host.failure ? { made, layout: "", node: 0 } : { made, layout: made.layout, node: made.node };
});

function generator(...given: Parameters<typeof newGenerator>): Generator {
  const { made, layout, node } = newGenerator(...given);
  const fill = settled((ids: BigUint64Array) => made.fill(ids));
  return {
    layout,
    node,
    nextId: settled(() => made.nextId(), true),
    tryNextId: settled(() => made.tryNextId(), true),
    fill,
    nextIds(n) {
      const ids = new BigUint64Array(n);
      fill(ids);
      return ids;
    },
    fillSome: settled((ids, from, waitedMs = Number.NaN) => {
      const filled = made.fillSome(ids, from, waitedMs);
      return [filled, host.pauseMs] as [number, number];
    }),
    stats: settled(() => made.stats()),
    close: settled(() => made.close()),
  };
}

/**
 * The module tells the host of a refusal, and gives a value that means nothing. A trap in it is a bug of
 * Polyflake's, and comes out as one.
 *
 * Where JavaScript's stack has no room for the call, it throws a RangeError before the module is entered: one from amid
 * the module could leave wasm-bindgen's list of values locked. `isShort`: it is for a single ID, which uses no such list,
 * and for which looking takes too long; there, `mend` puts the module right.
 */
function settled<A extends unknown[], R>(call: (...args: A) => R, isShort = false): (...args: A) => R {
  return (...args) => {
    if (isBroken) mend();
    if (!isShort) Reflect.apply(needStack, undefined, FILLER);
    let outcome: R;
    depth += 1;
    try {
      outcome = call(...args);
    } catch (error) {
      // First of all, for what follows may find no room either. (With `finally`, an ID takes 8 ns more.)
      depth -= 1;
      isBroken = true;
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      const [number, code, message] = bug;
      throw new PolyflakeError(number, code.toUpperCase(), message, { cause: error });
    }
    depth -= 1;
    if (host.failure !== undefined) throw host.takeFailure(host.failure);
    return outcome;
  };
}

/** 32 KB of arguments: more than a call into the module takes of JavaScript's stack. */
const FILLER: undefined[] = Array(4096).fill(undefined);

/** Throws a RangeError where JavaScript's stack has no room for a call into the module. */
function needStack(): void {}

/**
 * Goes on after a call that ended amid the module. A cursor has moved on or not: at worst an ID is lost. Such a call leaves
 * its part of the module's own stack behind, and perhaps a refusal that was not thrown.
 */
function mend(): void {
  host.dropFailure();
  // The calls that still run put the stack right themselves.
  if (depth > 0) return;
  stack.value = stackTop;
  isBroken = false;
}
