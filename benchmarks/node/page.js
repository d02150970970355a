// Runs on the page: measures ours and the peers that bundle, as in Node.

import { Snowflake } from "polyflake";
import { clockFloors, wasmFloors } from "./floors.js";
import { checkLoad, load, time, timed } from "./measure.js";
import { peers } from "./peers.js";

const TWITTER_EPOCH_MS = 1288834974657;

/** `bundled`: the names of the peers that the page can import, and from where. */
globalThis.bench = async (rounds, bundled) => {
  if (!globalThis.crossOriginIsolated) throw new Error("the page is not isolated, so its timers are coarse");
  const missing = [];
  const generators = [
    {
      name: "polyflake, nextId()",
      it: new Snowflake({ node: 1 }),
      call: "it.nextId()",
      bigint: "it.nextId()",
      chunk: 64,
      timeMs: (id) => Number(id >> 22n) + TWITTER_EPOCH_MS,
    },
  ];
  for (const { name, url } of bundled) {
    const peer = peers.find((one) => one.name === name);
    try {
      const { exported } = await import(url);
      const it = peer.make(exported);
      load(name, it, peer)(new BigUint64Array(1), 0, 1); // Fails here if it cannot be made or called.
      generators.push({ ...peer, it });
    } catch (error) {
      missing.push({ kind: "missing", name, why: String(error) });
    }
  }
  const subjects = generators.map(({ name, it, call }) => timed(name, it, call));
  const floors = [...clockFloors(), ...wasmFloors()];
  await time([...subjects, ...floors], rounds);
  const rows = generators.map(({ name, it, ...calls }, n) => ({
    subject: name,
    rounds: subjects[n].rounds,
    checked: checkLoad(load(name, it, calls), calls),
  }));
  const floorRows = floors.map((floor) => ({ subject: floor.name, rounds: floor.rounds }));
  return [...missing, ...rows, ...floorRows];
};
