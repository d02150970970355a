// The package as the page uses it: refusals become values, to be shown where they belong.
import { Layout, PolyflakeError } from "./polyflake.js";

/**
 * @template Value
 * @typedef {{ value: Value, refusal?: undefined } | { value?: undefined, refusal: PolyflakeError }} Outcome
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
    if (error instanceof PolyflakeError) return { refusal: error };
    throw error;
  }
}

export const PRESETS = Layout.presets.map((name) => ({ name, layout: new Layout(name) }));

/** @param {Layout} layout */
export const presetOf = (layout) => PRESETS.find((preset) => preset.layout.equals(layout))?.name;

/** @param {Layout} layout */
export const nameOf = (layout) => presetOf(layout) ?? String(layout);

/** @param {import("./polyflake.js").Field} field */
export const isNode = (field) => field.name !== "timestamp" && field.name !== "sequence";

/** @param {import("./polyflake.js").Field} field */
export const greatest = (field) => field.mask >> BigInt(field.shift);

/**
 * Which of the names a message of the core's is about.
 *
 * @param {string} message
 * @param {readonly string[]} names
 */
export function about(message, names) {
  const longestFirst = [...names].sort((a, b) => b.length - a.length);
  return longestFirst.find((name) =>
    [
      `field ${name} `,
      `\`${name}\` is no field name`,
      `the ${name} has`,
      `the ${name} is`,
      `the ${name} reaches`,
      `the ${name} stands`,
    ].some((words) => message.includes(words)),
  );
}
