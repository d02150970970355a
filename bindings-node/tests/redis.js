// Runs a password-protected Redis server on a free port, and stops it after the file's tests.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

/** Returns a free port below the range for outgoing connections, so it is still free when the server restarts. */
async function freePort() {
  for (;;) {
    const port = 30_000 + Math.floor(Math.random() * 2_768);
    const probe = createServer().listen(port, "127.0.0.1");
    const isFree = await once(probe, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}

const ends = [];
after(() => Promise.all(ends.map((end) => end())));

/** Starts a server. After `stop`, `start` restarts it with the same data. */
export async function redis() {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "polyflake-redis-"));
  const options = [
    "--port",
    port,
    "--bind",
    "127.0.0.1",
    "--dir",
    folder,
    "--save",
    "",
    "--appendonly",
    "yes",
  ];
  const cli = (...given) =>
    spawnSync("redis-cli", ["-p", String(port), ...given], {
      encoding: "utf8",
      env: { ...process.env, REDISCLI_AUTH: "hush" },
    }).stdout.trim();
  let server;
  async function start() {
    server = spawn(
      "redis-server",
      [...options, "--requirepass", "hush", "--appendfsync", "always"].map(String),
      {
        stdio: "ignore",
      },
    );
    while (cli("PING") !== "PONG") await pause(20);
  }
  async function stop() {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill("SIGKILL");
    await once(server, "exit");
  }
  await start();
  ends.push(async () => {
    await stop();
    rmSync(folder, { recursive: true });
  });
  const pid = () => server.pid;
  return { address: `redis://:hush@127.0.0.1:${port}/0`, cli, pid, start, stop };
}
