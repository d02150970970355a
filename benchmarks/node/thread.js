// A worker thread under full load, at the same time as another.

import { parentPort, workerData } from "node:worker_threads";
import { meter, threadGenerator } from "./generators.js";
import { fullLoad, load } from "./measure.js";

const loops = new Map();

parentPort.on("message", async ({ name, calls, run, ready }) => {
  if (!loops.has(name)) loops.set(name, load(name, await threadGenerator(name), calls));
  // Both begin together.
  Atomics.add(ready, 0, 1);
  while (Atomics.load(ready, 0) < workerData.threads);
  parentPort.postMessage(fullLoad(loops.get(name), run, meter));
});
