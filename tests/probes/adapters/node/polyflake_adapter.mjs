// Polyflake for Node under the duplicate probes. POLYFLAKE_NODE is the package: a name, or a path to its node.mjs.

import { parse, run, unsupported, workerNumber } from "./situations.mjs";

const { Snowflake } = await import(process.env.POLYFLAKE_NODE ?? "../../../../bindings-node/dist/node.mjs");

const LAYOUTS = { 1: "twitter", 10: "sonyflake", 1000: "cosid-second" };

function build({ situation, tickMs, options }) {
  const given = Object.entries(options).map(([name, text]) => [
    name.replace(/_./g, ([, letter]) => letter.toUpperCase()),
    /^\d+$/.test(text) ? Number(text) : text,
  ]);
  const ids = new Snowflake({
    // 64 IDs a tick, so that every language uses them up.
    layout: situation === "exhaustion" ? "yitter" : LAYOUTS[tickMs],
    // As the README asks: each process has a node of its own, and worker threads share their process's.
    node: situation === "prefork" ? workerNumber() : 7,
    // A busy machine may keep a thread from its turn for long.
    maxWaitMs: 60_000,
    ...Object.fromEntries(given),
  });
  return () => ids.nextId();
}

const { situation, options } = parse();
if (situation === "prefork-one-node" && options.state === undefined) {
  unsupported("a cluster's processes start afresh: one node for all of them needs a state file");
}
await run(build);
