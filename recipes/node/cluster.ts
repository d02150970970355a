/**
 * Node's cluster, and PM2's cluster mode: each worker leases a node and gives it back when it exits.
 *
 *     if (cluster.isPrimary) {
 *       startWorkers(availableParallelism());
 *     } else {
 *       const server = createServer((_request, response) => response.end(ids.nextIdString()));
 *       const ids = await openInWorker({ lease: process.env.LEASE }, server); // redis://redis.internal/0
 *       server.listen(3000);
 *     }
 *
 * PM2 is the primary itself: `pm2 start app.js -i 4` needs only `openInWorker`.
 *
 * On SIGINT and SIGTERM, a worker answers the requests it has, gives its node back and exits. This may take 20 s, so
 * raise PM2's `kill_timeout`, which is 1.6 s by default. A killed worker leaves its node leased for a TTL, and `pm2
 * reload` starts new workers before it stops the old ones. So use a layout with at least twice as many nodes as you have
 * workers.
 */
import cluster from "node:cluster";
import type { Server } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { Snowflake, type SnowflakeOptions } from "polyflake";

/** Starts the workers, replaces those that exit, and stops them all on SIGINT and SIGTERM. */
export function startWorkers(count: number): void {
  let ending = false;
  const start = () => {
    if (!ending) cluster.fork();
  };
  for (let n = 0; n < count; n++) start();
  // After a pause, because a worker may fail repeatedly at startup.
  cluster.on("exit", () => setTimeout(start, 1000));
  const end = () => {
    ending = true;
    // Not cluster.disconnect(), which fails if the terminal sent its signal to a worker too.
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill();
  };
  // Not `once`: the terminal and npm may each send a signal, and the second would kill the primary.
  process.on("SIGINT", end).on("SIGTERM", end);
}

/** On SIGINT and SIGTERM, closes `server`, waits at most `graceMs` for its connections, and gives the node back. */
export function openInWorker(
  options: SnowflakeOptions,
  server: Server,
  graceMs = 10_000,
): Promise<Snowflake> {
  const opening = Snowflake.open(options);
  let ending = false;
  const end = async () => {
    if (ending) return;
    ending = true;
    // A client could otherwise keep its connection after the last response, or keep sending requests on it.
    server.keepAliveTimeout = 1;
    server.maxRequestsPerSocket = 1;
    // Not worker.disconnect(): PM2's code in a worker may exit as soon as it has no primary, with the node leased.
    const closed = new Promise((resolve) => server.close(resolve));
    // Some connections do not end, such as WebSockets, and those on which no request has been sent.
    await Promise.race([closed, pause(graceMs)]);
    try {
      const ids = await Promise.race([opening, pause(graceMs, undefined)]);
      await ids?.[Symbol.asyncDispose](); // waits for the store for at most 5 s
    } finally {
      process.exit();
    }
  };
  // Before the node is leased, and not `once`: the terminal, the primary and PM2 may each send a signal.
  process.on("SIGINT", end).on("SIGTERM", end);
  return opening;
}
