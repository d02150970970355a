// The recipe for Node's cluster, and for PM2.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { createRequire } from "node:module";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Snowflake } from "polyflake";

const program = join(import.meta.dirname, "cluster_worker.js");
const layout = "timestamp:41|node:2|sequence:20@1767225600000/1ms";

// The time limit, in case a fleet does not start.
const timeout = 120_000;

type Taken = { pid: number; node: number; port: number; ids: string[] };

/** A primary, or PM2, and the nodes and IDs that its workers take from a store with four nodes. */
class Fleet {
  readonly folder = mkdtempSync(join(tmpdir(), "polyflake-recipes-"));
  // A node that is not given back stays leased.
  readonly lease = `sqlite://${this.folder}/store.db?ttl=1h`;
  readonly environment: NodeJS.ProcessEnv;
  readonly primary: ChildProcess;
  readonly #seen: Taken[] = [];

  constructor(t: TestContext, command: string[], files: Record<string, string> = {}, graceMs = timeout) {
    const own = { FOLDER: this.folder, LEASE: this.lease, GRACE_MS: `${graceMs}`, PM2_HOME: this.folder };
    this.environment = { ...process.env, ...own };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.folder, name), text);
    this.primary = spawn(process.execPath, command, {
      cwd: this.folder,
      detached: true,
      env: this.environment,
      stdio: ["ignore", "ignore", "inherit"],
    });
    t.after(() => {
      this.signal("SIGKILL");
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  /** Sends a signal to the primary and its workers, as a terminal does. */
  signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-(this.primary.pid ?? 0), signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  /** Returns the nodes and IDs that the next workers took, once at least `count` of them have started. */
  async started(count: number): Promise<Taken[]> {
    const pids = new Set(this.#seen.map(({ pid }) => `${pid}.json`));
    for (;;) {
      assert.equal(this.primary.exitCode, null);
      const files = readdirSync(this.folder).filter((name) => /^\d+\.json$/.test(name) && !pids.has(name));
      if (files.length >= count) {
        const taken = files.map((name) => JSON.parse(readFileSync(join(this.folder, name), "utf8")));
        this.#seen.push(...taken);
        return taken;
      }
      await pause(20);
    }
  }

  /** Calls `end` to stop the fleet during a request, which is answered after all workers have closed the port. */
  async endsBy(end: () => void): Promise<void> {
    const ended = once(this.primary, "exit");
    const port = this.#seen.at(-1)?.port;
    // A client that would keep its connection open forever.
    const agent = new Agent({ keepAlive: true });
    const headers = { expect: "100-continue", "content-length": 1 };
    const half = request({ port, agent, method: "POST", headers });
    half.flushHeaders();
    await once(half, "continue");
    end();
    while (await connects(port ?? 0)) await pause(20);
    half.end("1");
    const [response] = await once(half, "response");
    assert.match(String((await response.toArray()).join("")), /^\d+$/);
    assert.deepEqual(await ended, [0, null]);
  }

  /** Checks that no ID was taken twice. */
  unique(): void {
    const ids = this.#seen.flatMap((taken) => taken.ids);
    assert.equal(new Set(ids).size, ids.length);
  }
}

async function connects(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const connected = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return connected;
}

const nodes = (taken: Taken[]) => taken.map(({ node }) => node).sort();

/** Waits for three workers, kills one, and waits for its replacement. Checks that they took all four nodes. */
async function killedAndReplaced(fleet: Fleet): Promise<[Taken, Taken, Taken, Taken]> {
  const [killed, a, b] = (await fleet.started(3)) as [Taken, Taken, Taken];
  process.kill(killed.pid, "SIGKILL");
  const [c] = (await fleet.started(1)) as [Taken];
  const four: [Taken, Taken, Taken, Taken] = [killed, a, b, c];
  assert.deepEqual(nodes(four), [0, 1, 2, 3]);
  return four;
}

/** Checks that three of the four nodes were given back, while the killed worker still has the fourth. */
async function givenBack(fleet: Fleet, killed: Taken): Promise<void> {
  const { lease } = fleet;
  const opened = [];
  for (let n = 0; n < 3; n++) opened.push(await Snowflake.open({ lease, layout }));
  assert.ok(opened.every(({ node }) => node !== killed.node));
  for (const ids of opened) await ids[Symbol.asyncDispose]();
  fleet.unique();
}

for (const end of ["SIGTERM to the primary", "Ctrl-C"]) {
  test(`workers of a cluster have nodes of their own: ${end}`, { timeout }, async (t) => {
    const fleet = new Fleet(t, [program]);
    const [killed, stopped] = await killedAndReplaced(fleet);
    process.kill(stopped.pid, "SIGTERM");
    const [next] = await fleet.started(1);
    assert.equal(next?.node, stopped.node);
    await fleet.endsBy(() => {
      if (end !== "Ctrl-C") return void fleet.primary.kill();
      fleet.signal("SIGINT");
      // As npm does, which passes the terminal's signal on.
      setTimeout(() => fleet.signal("SIGINT"), 100);
    });
    await givenBack(fleet, killed);
  });
}

/** Connects a client to a worker and sends `text`. */
function connectAndSend(t: TestContext, { port }: Taken, text: string): Socket {
  const client = connect(port, "127.0.0.1").on("error", () => {});
  t.after(() => client.destroy());
  client.write(text);
  return client;
}

/** Ends the fleet, and checks that all four nodes are free. */
async function endsAndGivesBack(fleet: Fleet, whileEnding = async () => {}): Promise<void> {
  const ended = once(fleet.primary, "exit");
  fleet.primary.kill();
  await whileEnding();
  assert.deepEqual(await ended, [0, null]);
  const opened = [];
  for (let n = 0; n < 4; n++) opened.push(await Snowflake.open({ lease: fleet.lease, layout }));
  for (const ids of opened) await ids[Symbol.asyncDispose]();
}

test("workers end although a client always has requests under way", { timeout }, async (t) => {
  const fleet = new Fleet(t, [program]);
  const [worker] = (await fleet.started(3)) as [Taken, Taken, Taken];
  const head = (more = "") => `POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n${more}\r\n`;
  const client = connectAndSend(t, worker, head("expect: 100-continue\r\n"));
  await once(client, "data");
  client.on("data", (data) =>
    client.write(`${head()}1`.repeat(String(data).split("HTTP/1.1 200").length - 1)),
  );
  await endsAndGivesBack(fleet, async () => {
    while (await connects(worker.port)) await pause(20);
    client.write(`1${`${head()}1`.repeat(3)}`);
  });
});

test("workers end although a client never finishes its request", { timeout }, async (t) => {
  const fleet = new Fleet(t, [program], {}, 500);
  const [worker] = (await fleet.started(3)) as [Taken, Taken, Taken];
  await once(connectAndSend(t, worker, "GET / HTTP/1.1\r\n"), "connect");
  await endsAndGivesBack(fleet);
});

test("workers of PM2 have nodes of their own", { timeout }, async (t) => {
  const bin = join(dirname(createRequire(import.meta.url).resolve("pm2/package.json")), "bin");
  // PM2 must not give up too early on a slow machine.
  const patience = { kill_timeout: 60000, listen_timeout: 60000, wait_ready: true };
  const app = { name: "ids", script: program, exec_mode: "cluster", instances: 3, ...patience };
  const fleet = new Fleet(t, [join(bin, "pm2-runtime"), "start", "app.json"], {
    "app.json": JSON.stringify(app),
  });
  const [killed, ...living] = await killedAndReplaced(fleet);
  const restart = spawn(process.execPath, [join(bin, "pm2"), "restart", "ids"], {
    env: fleet.environment,
    stdio: "ignore",
  });
  assert.deepEqual(await once(restart, "exit"), [0, null]);
  assert.deepEqual(nodes(await fleet.started(3)), nodes(living));
  await fleet.endsBy(() => fleet.primary.kill("SIGINT"));
  await givenBack(fleet, killed);
});
