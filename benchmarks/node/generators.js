// The generators in Node: ours from ../../bindings-node/dist, as built, and the peers.

import { createRequire } from "node:module";
import { EPOCH_MS, peers } from "./peers.js";

const require = createRequire(import.meta.url);

export const { version } = require("../../bindings-node/package.json");
const NATIVE = "../../bindings-node/dist/node.cjs";
const WASM = "../../bindings-node/dist/browser.cjs";

/** A layout that no benchmark exhausts, and Twitter's. */
export const WIDE = `timestamp:37|worker:6|sequence:20@${EPOCH_MS}/1ms`;
export const twitterTimeMs = (id) => Number(id >> 22n) + 1288834974657;
export const wideTimeMs = (id) => Number(id >> 26n) + EPOCH_MS;

// V8 makes calls cheaper if a class has only one object. Most programs have one Snowflake, and there is one generator of
// each peer, so each of ours gets a separate copy of the package.
function separate(entry) {
  for (const file of Object.keys(require.cache)) delete require.cache[file];
  delete globalThis[Symbol.for(`polyflake@${version}`)];
  return require(entry);
}

// If the native addon did not load, the WebAssembly module would be measured instead.
process.on("warning", ({ code, message }) => {
  if (code !== "POLYFLAKE_WASM") return;
  console.error(message);
  process.exit(1);
});

let node = 0;

/** A Snowflake with a node that no other here has: with the same node they would share a cursor. */
function snowflake({ Snowflake }, layout) {
  return new Snowflake({ layout, node: node++ });
}

export const native = (layout) => snowflake(separate(NATIVE), layout);
export const wasm = (layout) => snowflake(separate(WASM), layout);
export const packages = { native: () => separate(NATIVE), wasm: () => separate(WASM) };
/** Two Snowflakes, and one twice. */
export const pairs = (build) => {
  const one = snowflake(packages[build](), WIDE);
  const both = packages[build]();
  return { two: [snowflake(both, "twitter"), snowflake(both, WIDE)], one: [one, one] };
};

/** A generator for one thread; ours have the same node in all threads. */
export async function threadGenerator(name) {
  const peer = peers.find((one) => one.name === name);
  if (peer) return peer.make(await import(peer.name));
  const { Snowflake } = require(NATIVE);
  return new Snowflake({ node: 1000 });
}

/** The cost of a full load: real time, and the processor time of the whole process. */
export function meter() {
  const { user, system } = process.cpuUsage();
  return { ms: Number(process.hrtime.bigint()) / 1e6, cpuMs: (user + system) / 1e3 };
}
