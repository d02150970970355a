// Generates the modules `polyflake/presets` and `polyflake/facts`, with their types, from the core's facts: the JSON
// that polyflake-facts (bindings-wasm/bindgen) prints.
// node facts.js JSON FOLDER
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [json, folder] = process.argv.slice(2);
const { presets, formats, errors } = JSON.parse(readFileSync(json, "utf8"));
const text = JSON.stringify;

function write(name, ...parts) {
  writeFileSync(
    join(folder, name),
    `// Generated from the core's facts by facts.js.\n${parts.flat().join("\n")}\n`,
  );
}

// The presets ---------------------------------------------------------------------------------------------------

const camelCase = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
const all = presets.map(({ name }) => `${text(name)}: ${camelCase(name)}`).join(", ");

write(
  "presets.js",
  presets.map(({ name, fields, epochMs, tickMs }) => {
    const layout = { fields: Object.fromEntries(fields), epochMs, tickMs };
    return `export const ${camelCase(name)} = ${text(layout)};`;
  }),
  `export const presets = { ${all} };`,
);

write(
  "presets.d.ts",
  `
/** A preset as an object. \`new Layout\` in \`polyflake\` accepts it too. */
export interface Preset {
  /** Each field's width in bits, keyed by its name, highest field first. */
  readonly fields: Readonly<Record<string, number>>;
  /** The instant of tick 0, in Unix ms. */
  readonly epochMs: number;
  /** The length of a tick, in ms. */
  readonly tickMs: number;
}

/** Every preset, keyed by its name. A program that imports this bundles all of them. */
export declare const presets: Readonly<Record<string, Preset>>;
`,
  presets.map(
    ({ name, text }) =>
      `/** The preset \`${name}\`: \`${text}\`. */\nexport declare const ${camelCase(name)}: Preset;\n`,
  ),
);

// The text formats and the errors -------------------------------------------------------------------------------

/** Returns the digits of each position, or just the first position's if all positions have the same ones. */
const digitsOf = (places) => (new Set(places).size === 1 ? places.slice(0, 1) : places);

const UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** Returns all letters if the first few are read as lower case, because gzip then finds the same string repeatedly. */
const alphabets = (read, as) =>
  read && UPPER.startsWith(read) && read.toLowerCase() === as
    ? { read: UPPER, as: UPPER.toLowerCase() }
    : { read, as };

write(
  "facts.js",
  Object.entries(errors).map(
    ([name, number]) => `export const ${name.toUpperCase()} = [${number}, ${text(name)}];`,
  ),
  // No prototype, so that it inherits no properties such as `toString`.
  "export const formats = {",
  "  __proto__: null,",
  formats.map(({ name, digits, sorts, same }) => {
    const [read, as] = [Object.keys(same), Object.values(same)].map((characters) => characters.join(""));
    const format = {
      digits: digitsOf(digits),
      length: digits.length,
      // JSON leaves out undefined values.
      sorts: sorts || undefined,
      ...alphabets(read, as),
    };
    return `  ${text(name)}: ${text(format)},`;
  }),
  "};",
);

write(
  "facts.d.ts",
  `
/** A text format. */
export interface FormatFacts {
  /** The digits of each position, from 0 up. A single entry applies to every position. */
  readonly digits: readonly string[];
  /** The length of the longest string, in characters. */
  readonly length: number;
  /** True if every string has this length. Strings then sort like the IDs. */
  readonly sorts?: boolean;
  /** The characters that are read as other characters. */
  readonly read: string;
  /** The characters to read instead, in the same order. */
  readonly as: string;
}
export declare const formats: Readonly<Record<string, FormatFacts>>;

/** An error's number and name. */
export type ErrorFacts = readonly [number: number, name: string];`,
  Object.keys(errors).map((name) => `export declare const ${name.toUpperCase()}: ErrorFacts;`),
);
