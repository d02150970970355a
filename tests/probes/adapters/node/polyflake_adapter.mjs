// Adapts Polyflake for Node to the duplicate probes. POLYFLAKE_NODE is the package: a name, or a path to its node.mjs.

import { parse, run, unsupported, workerNumber } from "./situations.mjs";

const { Snowflake } = await import(process.env.POLYFLAKE_NODE ?? "../../../../bindings-node/dist/node.mjs");

const LAYOUTS = { 1: "twitter", 10: "sonyflake", 1000: "cosid-second" };

async function build({ situation, tickMs, options }) {
  const given = Object.entries(options).map(([name, text]) => [
    name.replace(/_./g, ([, letter]) => letter.toUpperCase()),
    /^\d+$/.test(text) ? Number(text) : text,
  ]);
  const ids = await Snowflake.open({
    // 64 IDs per tick, so that every language can use them up.
    layout: situation === "exhaustion" ? "yitter" : LAYOUTS[tickMs],
    // As the README requires, each process has a different node, and worker threads share their process's
    // node.
    ...(options.lease === undefined && { node: situation === "prefork" ? workerNumber() : 7 }),
    // On a busy machine, a thread may wait a long time for its turn.
    maxWaitMs: 60_000,
    ...Object.fromEntries(given),
  });
  return () => ids.nextId();
}

const { situation, options } = parse();
if (situation === "prefork-one-node" && options.state === undefined) {
  unsupported("the processes of a cluster build their own: sharing a node needs a state file");
}
if (situation === "fleet" && !["lease", "node", "state"].some((name) => Object.hasOwn(options, name))) {
  unsupported("processes that have no node of their own need a lease");
}
await run(build);
