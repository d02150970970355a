// The backend that uses the WebAssembly module.
import * as glue from "polyflake/glue";
import { lengthOf, plain } from "./arrays.js";
import type { Backend, BackendSnowflake, MakeError } from "./backend.js";
import * as host from "./host.js";

/** bindings-node/build.sh adds these to the module's exports. */
interface Globals {
  readonly __stack_pointer: WebAssembly.Global<"i32">;
}

/** A view of the module's memory. It becomes empty when the memory grows. */
let memory = new Uint8Array(0);
let exported: WebAssembly.Memory;

let makeError: MakeError;
/** The top of the module's own stack, which grows down: the stack pointer while no call is running. */
let stackTop = 0;
let stack: WebAssembly.Global<"i32">;
/** How many nested calls are running: a caller's clock may call the module again. */
let depth = 0;
/** With more nested calls than this, some were ended from outside, and have left their part of the stack behind. */
const MOST_NESTED = 100;
/** Whether the stack will be restored before the event loop continues. */
let isRestoredSoon = false;
/** Whether a call was cut short inside the module, by a trap or because JavaScript's stack overflowed. */
let isBroken = false;
/** The error to throw after a trap. The core provides its message in advance. */
let bug: host.Failure;

/**
 * Instantiates the module synchronously, since constructors need it. `noSharing`: why it must not use a built-in clock,
 * if other threads in the process may issue IDs for the same node.
 */
export function wasmBackend(module: WebAssembly.Module, errors: MakeError, noSharing?: string): Backend {
  makeError = errors;
  const exports = glue.initSync({ module });
  exported = exports.memory;
  stack = (exports as unknown as Globals).__stack_pointer;
  stackTop = stack.value;
  glue.fail("internal", "");
  bug = host.failure as host.Failure;
  host.clearFailure();
  return {
    presets: checked(glue.presets),
    layout: checked(glue.layout),
    layoutOf: checked(glue.layoutOf),
    idOf: checked(glue.idOf),
    decodeAll: checked((layout, ids, ...rest) => glue.decodeAll(layout, plain(ids), ...rest)),
    compose: checked(glue.compose),
    minId: checked(glue.minId),
    maxId: checked(glue.maxId),
    formats: checked(glue.formats),
    formatId: checked(glue.formatId),
    idText,
    parseId: checked(glue.parseId),
    batchSize: checked(glue.batchSize),
    resetState() {
      fail("state_file", "");
    },
    snowflake(options, node, clock) {
      if (noSharing !== undefined && clock === undefined) fail("invalid_option", noSharing);
      return snowflake(newSnowflake(options, node, clock));
    },
  };
}

/** Throws an error for a problem that the module itself cannot detect. */
const fail = checked(glue.fail);

const newSnowflake = checked((...given: Parameters<Backend["snowflake"]>) => {
  const made = new glue.WasmSnowflake(...given);
  // If the constructor failed, the object has no values to read.
  return host.failure ? { made, layout: "", node: 0 } : { made, layout: made.layout, node: made.node };
});

function snowflake({ made, layout, node }: ReturnType<typeof newSnowflake>): BackendSnowflake {
  const nextId = checkedId(() => made.nextId());
  const fill = checked((ids: BigUint64Array) => made.fill(ids, lengthOf(ids)));
  return {
    layout,
    node: () => node,
    nextId,
    tryNextId: checkedId(() => made.tryNextId()),
    nextIdText: (format) => idText(nextId(), format),
    fill,
    nextIds(n) {
      const ids = new BigUint64Array(n);
      fill(ids);
      return ids;
    },
    poll: checked((ids, waitedMs) => made.poll(ids, waitedMs)),
    stats: checked(() => made.stats()),
    close: checked(() => made.close()),
  };
}

/** The length of a UUID. */
const LONGEST_TEXT = 36;

const byte = (at: number) => memory[at] as number;

/**
 * Returns an ID as text, made from the bytes that the module writes. This takes an eighth of the time of a TextDecoder.
 */
function idText(id: bigint, format: number): string {
  if (isBroken) mend();
  let length: number;
  depth += 1;
  if (depth > MOST_NESTED) restoreSoon();
  try {
    length = glue.idText(id, format);
  } catch (error) {
    depth -= 1;
    isBroken = true;
    throw ended(error);
  }
  depth -= 1;
  if (memory.length === 0) memory = new Uint8Array(exported.buffer, glue.textAddress(), LONGEST_TEXT);
  // A UUID. Spreading takes longer than passing the many arguments below, which suffice for all other formats.
  if (length > 20) return String.fromCharCode(...memory.subarray(0, length));
  return String.fromCharCode(
    byte(0),
    byte(1),
    byte(2),
    byte(3),
    byte(4),
    byte(5),
    byte(6),
    byte(7),
    byte(8),
    byte(9),
    byte(10),
    byte(11),
    byte(12),
    byte(13),
    byte(14),
    byte(15),
    byte(16),
    byte(17),
    byte(18),
    byte(19),
  ).slice(0, length);
}

/**
 * Wraps a call into the module. If the call fails, the module tells the host why and returns a meaningless value. A
 * trap in it is a bug in Polyflake, and is reported as one.
 *
 * If JavaScript's stack has no room for the call, the wrapper throws a RangeError before entering the module, because
 * an error inside could leave wasm-bindgen's list of values locked.
 */
export function checked<A extends unknown[], R>(call: (...args: A) => R): (...args: A) => R {
  return (...args) => {
    if (isBroken) mend();
    Reflect.apply(needStack, undefined, FILLER);
    let outcome: R;
    depth += 1;
    if (depth > MOST_NESTED) restoreSoon();
    try {
      outcome = call(...args);
    } catch (error) {
      // This comes first, since the code below may run out of stack too. (With `finally`, an ID takes 8 ns more.)
      depth -= 1;
      isBroken = true;
      throw ended(error);
    }
    depth -= 1;
    if (host.failure !== undefined) throw takeFailure(host.failure);
    return outcome;
  };
}

/**
 * Like `checked`, but for a single ID. Such a call does not use wasm-bindgen's list, and checking the stack for room
 * would take too long; `mend` repairs the module afterwards.
 */
function checkedId(call: () => bigint): () => bigint {
  return () => {
    if (isBroken) mend();
    let id: bigint;
    depth += 1;
    if (depth > MOST_NESTED) restoreSoon();
    try {
      id = call();
    } catch (error) {
      depth -= 1;
      isBroken = true;
      throw ended(error);
    }
    depth -= 1;
    if (host.failure !== undefined) throw takeFailure(host.failure);
    return id;
  };
}

/** Returns the error to throw after a call that was cut short inside the module. */
function ended(error: unknown): unknown {
  // Below its stack, the module has no memory: it traps, or the glue throws a RangeError.
  if (!(error instanceof WebAssembly.RuntimeError || stack.value < 0)) return error;
  if (depth > 0) restoreSoon();
  const [number, name, message] = bug;
  return makeError(number, name, message, undefined, undefined, { cause: error });
}

function takeFailure(failure: host.Failure): Error {
  host.clearFailure();
  return makeError(...failure);
}

/** 32 KB of arguments, which take more of JavaScript's stack than a call into the module does. */
const FILLER: undefined[] = Array(4096).fill(undefined);

/** Throws a RangeError if JavaScript's stack has no room for a call into the module. */
function needStack(): void {}

/**
 * Makes the module usable again after a call that was cut short inside it. At worst an ID is lost. Such a call leaves
 * its part of the module's own stack behind, and perhaps a failure that was never thrown.
 */
function mend(): void {
  host.clearFailure();
  // The calls that are still running restore the stack themselves.
  if (depth === 0) restore();
}

/**
 * Restores the stack before the event loop continues, when no call is running. `depth` may include calls that are no
 * longer running: Ctrl+C in Node's REPL and a node:vm timeout end them without any of their code noticing. Hundreds of
 * these in one turn of the event loop leave no stack for later calls in that turn.
 */
function restoreSoon(): void {
  if (isRestoredSoon) return;
  Promise.resolve().then(restore);
  isRestoredSoon = true;
}

/** Call this only while no call is running. */
function restore(): void {
  stack.value = stackTop;
  depth = 0;
  isBroken = false;
  isRestoredSoon = false;
}
