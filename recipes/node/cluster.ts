/**
 * Node's cluster, and PM2's cluster mode: each worker leases a node and gives it back when it ends.
 *
 *     if (cluster.isPrimary) {
 *       startWorkers(availableParallelism());
 *     } else {
 *       const ids = await openInWorker({ lease: process.env.LEASE }); // redis://redis.internal/0
 *       createServer(...).listen(3000);
 *     }
 *
 * PM2 is the primary itself: `pm2 start app.js -i 4` needs only `openInWorker`.
 *
 * On SIGINT and SIGTERM, a worker answers the requests it has, gives its node back and ends. PM2 kills it after
 * `kill_timeout`, which is 1.6 s by default. A killed worker leaves its node leased for a TTL, and `pm2 reload` starts
 * new workers before it stops the old ones. So use a layout with at least twice as many nodes as you have workers.
 */
import cluster from "node:cluster";
import { Snowflake, type SnowflakeOptions } from "polyflake";

/** Starts the workers, replaces those that end, and ends them all on SIGINT and SIGTERM. */
export function startWorkers(count: number): void {
  let ending = false;
  const start = () => {
    if (!ending) cluster.fork();
  };
  for (let n = 0; n < count; n++) start();
  // After a pause, because a worker may fail again and again as it starts.
  cluster.on("exit", () => setTimeout(start, 1000));
  const end = () => {
    ending = true;
    // Not cluster.disconnect(), which fails if the terminal sent its signal to a worker too.
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill();
  };
  process.once("SIGINT", end).once("SIGTERM", end);
}

export async function openInWorker(options: SnowflakeOptions): Promise<Snowflake> {
  const { worker } = cluster;
  if (worker === undefined) throw new Error("this process is no worker of a cluster");
  const ids = await Snowflake.open(options);
  // Closes the worker's servers, and waits until their connections have ended.
  const end = () => worker.disconnect();
  // Not `once`: the terminal, the primary and PM2 may each send a signal.
  process.on("SIGINT", end).on("SIGTERM", end);
  worker.once("disconnect", async () => {
    await ids[Symbol.asyncDispose]();
    process.exit();
  });
  return ids;
}
