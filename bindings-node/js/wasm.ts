// The backend over the WebAssembly module.
import * as glue from "polyflake/glue";
import type { Backend, Generator, NodeTexts, Reading } from "./backend.js";
import { unheld } from "./convert.js";
import { refusal } from "./errors.js";
import * as host from "./host.js";

/** Instantiates the module, without waiting: `core` is called by constructors. */
export function wasmBackend(module: WebAssembly.Module): Backend {
  glue.initSync({ module });
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
      throw refusal("STATE_FILE", "the WebAssembly build has no state files; Node's native build has");
    },
    snowflake(options, node, clock) {
      return Object.assign(generator(newGenerator(options, node, clock && unheld(clock))), { clock });
    },
  };
}

const newGenerator = settled(
  (options: string[], node: NodeTexts | undefined, clock: Reading | undefined) =>
    new glue.Generator(options, node, clock),
);

function generator(made: glue.Generator): Generator {
  let open: glue.Generator | undefined = made;
  function inner(): glue.Generator {
    if (open === undefined)
      throw refusal("CLOSED", "this Snowflake was closed, and issues nothing more; build another");
    return open;
  }
  const fill = settled((ids: BigUint64Array) => inner().fill(ids));
  return {
    layout: made.layout,
    node: made.node,
    nextId: settled(() => inner().nextId()),
    tryNextId: settled(() => inner().tryNextId()),
    fill,
    nextIds(n) {
      const ids = new BigUint64Array(n);
      fill(ids);
      return ids;
    },
    fillSome: settled((ids, from, waitedMs = Number.NaN) => {
      const filled = inner().fillSome(ids, from, waitedMs);
      return [filled, host.pauseMs] as [number, number];
    }),
    stats: settled(() => inner().stats()),
    close() {
      open = undefined;
    },
  };
}

/**
 * The module tells the host of a refusal, and gives a value that means nothing. A trap in it is a bug of
 * Polyflake's, and comes out as one.
 */
function settled<A extends unknown[], R>(call: (...args: A) => R): (...args: A) => R {
  return (...args) => {
    let outcome: R;
    try {
      outcome = call(...args);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      throw refusal("INTERNAL", "a bug in Polyflake: please report it", error);
    }
    if (host.failure !== undefined) throw host.takeFailure(host.failure);
    return outcome;
  };
}
