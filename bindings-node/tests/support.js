// Helpers that several tests share.
import assert from "node:assert/strict";
import { PolyflakeError } from "polyflake";

/** Which backend this run tests; backend.test.js checks that it is in use. */
export const isWasm = process.env.POLYFLAKE_BACKEND === "wasm";

/** An instant, in Unix ms, for clocks that do not advance. */
export const T = 1_700_000_000_000;

export const TWITTER = "timestamp:41|datacenter:5|worker:5|sequence:12@1288834974657/1ms";

/** Enough IDs per tick that tests with a clock that does not advance never run out. */
export const ROOMY = "timestamp:30|worker:8|sequence:25@1577203200000/1s";

let node = 100;

/**
 * A node of `twitter` that no other test in this process uses: with a built-in clock, the tests would share its cursor.
 */
export function freshNode() {
  node += 1;
  return node;
}

/** Checks that `call` fails with `code` and a message that contains all of `says`. Returns the error. */
export function fails(call, code, ...says) {
  return checkError(thrownBy(call), code, says);
}

/** Like `fails`, for a promise that rejects. */
export async function failsLater(promise, code, ...says) {
  const error = await promise.then(
    () => assert.fail(`nothing was thrown; expected ${code}`),
    (reason) => reason,
  );
  return checkError(error, code, says);
}

/**
 * Checks that the event loop turns while `run` waits. On a busy machine, the process may get no CPU time during a short
 * wait, so the check may have to be repeated.
 */
export async function doesNotBlock(run) {
  let turns = 0;
  for (let tries = 0; turns <= 10 && tries < 20; tries += 1) {
    turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    await run().finally(() => clearInterval(timer));
  }
  assert.ok(turns > 10, `the event loop turned ${turns} times`);
}

export function thrownBy(call) {
  try {
    call();
  } catch (error) {
    return error;
  }
  return assert.fail("nothing was thrown");
}

function checkError(error, code, says) {
  if (!(error instanceof PolyflakeError)) throw error;
  assert.equal(error.code, code, error.message);
  assert.ok(error.message.startsWith(`${code.toLowerCase()}: `), error.message);
  for (const part of says)
    assert.ok(error.message.includes(part), `"${error.message}" does not say "${part}"`);
  return error;
}

/** Checks that each ID is greater than the one before. */
export function assertRising(ids) {
  for (let at = 1; at < ids.length; at += 1) {
    if (ids[at] <= ids[at - 1]) assert.fail(`at ${at}: ${ids[at]} follows ${ids[at - 1]}`);
  }
}

export function* take(ids, count) {
  for (let taken = 0; taken < count; taken += 1) yield ids.next().value;
}

/** Defines a test for each of `cases`, each of which starts with a name. */
export function each(test, name, cases, run) {
  for (const [what, ...values] of cases) test(`${name}: ${what}`, () => run(...values));
}
