// Run by ../fake-timers.test.js.
import { Layout, Snowflake } from "polyflake";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

const T = 1_700_000_000_000;

beforeEach(() => vi.useFakeTimers({ now: T }));
afterEach(() => vi.useRealTimers());

test("IDs follow the fake time", () => {
  const ids = new Snowflake({ node: 7, clock: () => Date.now() });
  expect(ids.decode(ids.nextId()).time).toEqual(new Date(T));
  vi.advanceTimersByTime(60_000);
  expect(ids.decode(ids.nextId()).time).toEqual(new Date(T + 60_000));
  vi.setSystemTime(T - 1000);
  expect(() => ids.nextId()).toThrow(
    expect.objectContaining({ code: "CLOCK_MOVED_BACKWARDS", behindMs: 61_000 }),
  );
});

test("a built-in clock is the real one", async () => {
  const ids = new Snowflake({ node: 7 });
  const issued = [await ids.nextIdAsync(), ids.nextId(), ...(await ids.nextIdsAsync(5000))];
  expect(new Set(issued).size).toBe(5002);
  expect(ids.decode(issued[0]).timestampMs).not.toBe(BigInt(T));
});

test("fake Dates are instants", () => {
  const layout = new Layout("twitter");
  expect(layout.minId(new Date())).toBe(layout.minId(T));
});
