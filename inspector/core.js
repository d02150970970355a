// The package as the page uses it: errors become values, so that each can be shown in the right place.
import { Layout, PolyflakeError } from "./polyflake.js";

/**
 * @template Value
 * @typedef {{ value: Value, error?: undefined } | { value?: undefined, error: PolyflakeError }} Outcome
 */

/**
 * @template Value
 * @param {() => Value} call
 * @returns {Outcome<Value>}
 */
export function attempt(call) {
  try {
    return { value: call() };
  } catch (error) {
    if (error instanceof PolyflakeError) return { error };
    throw error;
  }
}

export const PRESETS = Layout.presets.map((name) => ({ name, layout: new Layout(name) }));

/** @param {Layout} layout */
export const presetOf = (layout) => PRESETS.find((preset) => preset.layout.equals(layout))?.name;

/** @param {Layout} layout */
export const nameOf = (layout) => presetOf(layout) ?? String(layout);

/** @param {{ name: string }} field */
export const isNode = (field) => field.name !== "timestamp" && field.name !== "sequence";

/** @param {import("./polyflake.js").Field} field */
export const greatest = (field) => field.mask >> BigInt(field.shift);
