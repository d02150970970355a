// The situations of the duplicate probes, for any generator that Node can call.
//
// An adapter passes `run` a function that builds a generator: a function that returns one ID. See
// docs/probes.md.

import cluster from "node:cluster";
import { closeSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { createServer, get } from "node:http";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

const DONE = 0;
const REFUSED = 3;
const UNSUPPORTED = 4;
const IDS_PER_REQUEST = 500;

// The runner's request, and the options for the generator.
export function parse() {
  const [situation, ...given] = process.argv.slice(2);
  const options = Object.fromEntries(given.map((argument) => argument.split(/=(.*)/s, 2)));
  const { n = 1, parts = 1, behind_ms = 0, tick_ms = 1, gate = -1, ...rest } = options;
  return {
    situation,
    n: Number(n),
    parts: Number(parts),
    behindMs: Number(behind_ms),
    tickMs: Number(tick_ms),
    gate: Number(gate),
    options: rest,
  };
}

// Returns a number that no other worker in a prefork server ever has.
export function workerNumber() {
  return cluster.worker.id;
}

export function unsupported(why) {
  console.error(why);
  process.exit(UNSUPPORTED);
}

// Takes IDs in one thread or process. Returns them, and the name of the error that stopped it, if any.
async function take(build, n, part = { ids: [], refused: null }) {
  try {
    const nextId = await build();
    for (let i = 0; i < n; i++) part.ids.push(String(nextId()));
  } catch (error) {
    // This is a mistake in the adapter, not an error from the generator.
    if (error instanceof TypeError || error instanceof ReferenceError) throw error;
    // Polyflake's codes are the names used in every language, in upper case.
    part.refused = error.code?.toLowerCase() ?? error.name;
  }
  return part;
}

function print({ ids, refused }) {
  const text = Buffer.from(ids.map((id) => `${id}\n`).join(""));
  for (let written = 0; written < text.length; ) written += writeSync(1, text, written);
  if (refused) writeSync(2, `refused: ${refused}\n`);
}

function finish(...parts) {
  for (const part of parts) print(part);
  process.exit(parts.some(({ refused }) => refused) ? REFUSED : DONE);
}

// Each worker thread has its own generator, all for the same node.
async function workerThreads(_, { parts }) {
  const taking = Array.from({ length: parts }, () => {
    const worker = new Worker(process.argv[1], { argv: process.argv.slice(2) });
    return new Promise((resolve, reject) => worker.on("message", resolve).on("error", reject));
  });
  finish(...(await Promise.all(taking)));
}

// The clock is set back while the generator is in use. libfaketime reads it from a file.
async function rollback(build, { n, behindMs }) {
  const clock = process.env.FAKETIME_TIMESTAMP_FILE;
  if (clock === undefined) unsupported("needs libfaketime, which steps this program's clock");
  let nextId;
  const began = process.hrtime.bigint();
  const before = await take(async () => {
    nextId = await build();
    return nextId;
  }, n - 1);
  // Wait, so that the step goes back to the time of the first IDs.
  while (process.hrtime.bigint() < began + BigInt(behindMs) * 1_000_000n) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  }
  const last = await take(() => nextId, 1);
  // Do not truncate it: libfaketime ends the program if a thread reads the empty file.
  writeFileSync(clock, `-${behindMs / 1000}\n`, { flag: "r+" });
  finish(before, last, await take(() => nextId, n));
}

// Takes more IDs than fit in the elapsed ticks.
async function exhaustion(build, { n }) {
  finish(await take(build, n));
}

// Starts when the previous process is done, as a restarted program would.
async function restart(build, { n, gate }) {
  writeSync(1, "ready\n");
  readFileSync(0);
  const part = await take(build, n);
  // This starts the next process.
  closeSync(gate);
  finish(part);
}

// Builds a generator for each ID, as a function that handles a single request would.
async function perCall(build, { n }) {
  const part = await take(build, 1);
  while (part.ids.length < n && !part.refused) await take(build, 1, part);
  finish(part);
}

// One of several processes that were not given a node. The runner kills it.
async function fleet(build, { n }) {
  const part = await take(build, n);
  if (part.refused) finish(part);
  print(part);
  readFileSync(0);
}

// A server whose processes are the workers of a cluster.
async function prefork(_, { n, parts }) {
  const workers = Array.from({ length: parts }, () => cluster.fork());
  const listening = workers.map((worker) => new Promise((resolve) => worker.on("listening", resolve)));
  const [{ port }] = await Promise.all(listening);
  const taking = [];
  const processes = new Set();
  for (let left = n * parts; left > 0; left -= IDS_PER_REQUEST) {
    taking.push(request(port, Math.min(left, IDS_PER_REQUEST), processes));
  }
  const answers = await Promise.all(taking);
  for (const worker of workers) worker.process.kill();
  if (processes.size < 2) throw new Error("one worker answered every request, so no two ran at once");
  finish(...answers);
}

function request(port, size, processes) {
  return new Promise((resolve, reject) => {
    get({ port, path: `/${size}`, agent: false }, async (response) => {
      processes.add(response.headers.process);
      let body = "";
      for await (const chunk of response) body += chunk;
      resolve(JSON.parse(body));
    }).on("error", reject);
  });
}

function serve(build) {
  let nextId;
  function once() {
    nextId ??= build();
    return nextId;
  }
  createServer(async (incoming, response) => {
    response.setHeader("Process", process.pid);
    response.end(JSON.stringify(await take(once, Number(incoming.url.slice(1)))));
  }).listen(0);
}

const SITUATIONS = {
  threads: () => unsupported("worker threads share no objects: see worker-threads"),
  "worker-threads": workerThreads,
  fork: () => unsupported("Node's fork starts a new program"),
  "fork-new": () => unsupported("Node's fork starts a new program"),
  prefork,
  "prefork-one-node": prefork,
  rollback,
  exhaustion,
  restart,
  "per-call": perCall,
  fleet,
};

// The adapter's main function: runs the situation named on the command line.
export async function run(build) {
  const probe = parse();
  const one = () => build(probe);
  if (!isMainThread) {
    parentPort.postMessage(await take(one, probe.n));
  } else if (cluster.isWorker) {
    serve(one);
  } else if (Object.hasOwn(SITUATIONS, probe.situation)) {
    await SITUATIONS[probe.situation](one, probe);
  } else {
    unsupported(`unknown situation: ${probe.situation}`);
  }
}
