// The backend over the WebAssembly module.
import * as glue from "polyflake/glue";
import type { Backend, Generator, NodeTexts, Reading } from "./backend.js";
import { refusal } from "./errors.js";
import * as host from "./host.js";

/** Instantiates the module, without waiting: `core` is called by constructors. */
export function wasmBackend(module: WebAssembly.Module): Backend {
  glue.initSync({ module });
  return {
    name: "wasm",
    presets: glue.presets,
    layout: guard(glue.layout),
    layoutOf: guard(glue.layoutOf),
    decode: guard(glue.decode),
    compose: guard((layout, timeMs, node, sequence) =>
      glue.compose(layout, timeMs, whole(node), fields(node) ?? [], sequence),
    ),
    minId: guard(glue.minId),
    maxId: guard(glue.maxId),
    formatId: guard(glue.formatId),
    parseId: guard(glue.parseId),
    batchSize: guard(glue.batchSize),
    snowflake: guard((options, node, clock) => generator(options, node, clock)),
  };
}

function generator(options: string[], node: NodeTexts | undefined, clock: Reading | undefined): Generator {
  const inner = new glue.Generator(options, whole(node), fields(node), clock);
  return {
    layout: inner.layout,
    node: inner.node,
    nextId: guard(() => {
      const id = inner.nextId();
      if (id === 0n) throw host.failure;
      return id;
    }),
    tryNextId: guard(() => inner.tryNextId()),
    fill: guard((ids) => inner.fill(ids)),
    fillSome: guard((ids, from, waitedMs) => {
      const filled = inner.fillSome(ids, from, waitedMs);
      return [filled, host.pauseMs] as [number, number];
    }),
    stats: guard(() => inner.stats()),
  };
}

const whole = (node: NodeTexts | undefined) => (typeof node === "string" ? node : undefined);
const fields = (node: NodeTexts | undefined) => (typeof node === "string" ? undefined : node);

/** A trap in the module is a bug of Polyflake's: it comes out as one, and the module answers no more. */
function guard<A extends unknown[], R>(call: (...args: A) => R): (...args: A) => R {
  return (...args) => {
    try {
      return call(...args);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      throw refusal("INTERNAL", "a bug in Polyflake: please report it", error);
    }
  };
}
