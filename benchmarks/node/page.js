// Runs on a page, and measures one generator there.

import { blocks, load, rounds, smallWasm } from "./measure.js";
import { peers } from "./peers.js";

/** `name` is the name of the package whose exports are at `url`, or empty for the floor. */
globalThis.prepare = async (name, url) => {
  if (!globalThis.crossOriginIsolated) throw new Error("the page is not isolated, so its timers are coarse");
  if (!name) {
    globalThis.round = rounds(smallWasm(), "it.c()");
    return;
  }
  const { exported } = await import(url);
  const ours = {
    make: ({ Snowflake }) => new Snowflake({ node: 1 }),
    call: "it.nextId()",
    bigint: "it.nextId()",
  };
  const peer = peers.find((one) => one.name === name) ?? ours;
  const it = peer.make(exported);
  const loop = load(it, peer);
  globalThis.round = rounds(it, peer.call);
  // A page cannot return a large array of bigints, so each is split into two 32-bit numbers.
  globalThis.ids = (count, chunk) => [...new Uint32Array(blocks(loop, count, chunk).buffer)];
};
