// Makes the modules `polyflake/presets` and `polyflake/facts`, with their types, of the core's facts: the JSON that
// polyflake-facts (bindings-wasm/bindgen) prints.
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
/** A preset as an object, which \`new Layout\` of the entry \`polyflake\` takes too. */
export interface Preset {
  /** Each field's width in bits, by its name, the highest field first. */
  readonly fields: Readonly<Record<string, number>>;
  /** The instant of tick 0, in Unix ms. */
  readonly epochMs: number;
  /** The length of a tick, in ms. */
  readonly tickMs: number;
}

/** Every preset by its name. A program that imports this bundles all of them. */
export declare const presets: Readonly<Record<string, Preset>>;
`,
  presets.map(
    ({ name, text }) =>
      `/** The preset \`${name}\`: \`${text}\`. */\nexport declare const ${camelCase(name)}: Preset;\n`,
  ),
);

// The text formats and the errors -------------------------------------------------------------------------------

/** The digits of each place, or of the first only if they are the same in all. */
const digitsOf = (places) => (new Set(places).size === 1 ? places.slice(0, 1) : places);

const UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** All letters where the first of them are read as their lower case: gzip then finds one text again and again. */
const alphabets = (read, as) =>
  read && UPPER.startsWith(read) && read.toLowerCase() === as
    ? { read: UPPER, as: UPPER.toLowerCase() }
    : { read, as };

write(
  "facts.js",
  Object.entries(errors).map(
    ([name, number]) => `export const ${name.toUpperCase()} = [${number}, ${text(name)}];`,
  ),
  // Without what other objects inherit, such as `toString`.
  "export const formats = {",
  "  __proto__: null,",
  formats.map(({ name, digits, sorts, same }) => {
    const [read, as] = [Object.keys(same), Object.values(same)].map((characters) => characters.join(""));
    const format = {
      digits: digitsOf(digits),
      length: digits.length,
      // JSON leaves out what is undefined.
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
/** A format for texts. */
export interface FormatFacts {
  /** The digits of each place, from 0 up. If there is one only, they are those of every place. */
  readonly digits: readonly string[];
  /** How many characters the longest text has. */
  readonly length: number;
  /** Whether every text has them. */
  readonly sorts?: boolean;
  /** The characters that are read as another. */
  readonly read: string;
  /** As which, in the same order. */
  readonly as: string;
}
export declare const formats: Readonly<Record<string, FormatFacts>>;

/** An error's number and name. */
export type ErrorFacts = readonly [number: number, name: string];`,
  Object.keys(errors).map((name) => `export declare const ${name.toUpperCase()}: ErrorFacts;`),
);
