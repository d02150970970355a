// The program that cluster.test.ts runs: a primary and its workers, or a PM2 worker. Each worker leases one of four
// nodes, takes IDs, and answers each request with another ID once the whole request has arrived.
import cluster from "node:cluster";
import { once } from "node:events";
import { renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { openInWorker, startWorkers } from "./cluster.js";

if (cluster.isPrimary) {
  startWorkers(3);
} else {
  const server = createServer((request, response) =>
    request.resume().on("end", () => response.end(ids.nextIdString())),
  );
  server.keepAliveTimeout = 3_600_000; // the worker must not wait for it
  const lease = process.env.LEASE;
  const layout = "timestamp:41|node:2|sequence:20@1767225600000/1ms";
  const ids = await openInWorker({ lease, layout }, server, Number(process.env.GRACE_MS));
  await once(server.listen(0), "listening");
  const { port } = server.address() as AddressInfo;
  const taken = { pid: process.pid, node: ids.node, port, ids: Array.from(ids.nextIds(5000), String) };
  const file = `${process.env.FOLDER}/${process.pid}`;
  writeFileSync(file, JSON.stringify(taken));
  renameSync(file, `${file}.json`);
  process.send?.("ready");
}
