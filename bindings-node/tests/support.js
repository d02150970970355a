// What several tests share.
import assert from "node:assert/strict";
import { PolyflakeError } from "polyflake";

/** The core that this run is to test; backend.test.js checks that it is the one in use. */
export const isWasm = process.env.POLYFLAKE_BACKEND === "wasm";

/** An instant, in Unix ms, for clocks that are held. */
export const T = 1_700_000_000_000;

export const TWITTER = "timestamp:41|datacenter:5|worker:5|sequence:12@1288834974657/1ms";

/** So many IDs a tick that a held clock never runs out of them. */
export const ROOMY = "timestamp:30|worker:8|sequence:25@1577203200000/1s";

let node = 100;

/** A node of twitter's that no other test of this process uses: those of a built-in clock share a cursor. */
export function freshNode() {
  node += 1;
  return node;
}

/** Checks that `call` is refused with `code` and a message in which all of `says` stand; gives the error. */
export function refused(call, code, ...says) {
  return checkRefusal(thrownBy(call), code, says);
}

/** As `refused`, for a promise that rejects. */
export async function refusedLater(promise, code, ...says) {
  const error = await promise.then(
    () => assert.fail(`nothing was thrown; expected ${code}`),
    (reason) => reason,
  );
  return checkRefusal(error, code, says);
}

export function thrownBy(call) {
  try {
    call();
  } catch (error) {
    return error;
  }
  return assert.fail("nothing was thrown");
}

function checkRefusal(error, code, says) {
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

/** A test for each of `cases`, of which each has its name first. */
export function each(test, name, cases, run) {
  for (const [what, ...values] of cases) test(`${name}: ${what}`, () => run(...values));
}
