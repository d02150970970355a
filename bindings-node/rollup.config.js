// Bundles the output of tsc and wasm-bindgen (see build.sh) into dist/ and index.d.ts.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import dts from "rollup-plugin-dts";

const made = fileURLToPath(new URL("../target/npm", import.meta.url));
const read = (path, encoding) => readFileSync(new URL(path, import.meta.url), encoding);
const { version } = JSON.parse(read("package.json", "utf8"));

/** Provides the modules that exist only by name, including the glue for one of the two WebAssembly modules. */
const names = (glue = "glue") => ({
  name: "names",
  resolveId(source) {
    if (source === "polyflake/glue") return `${made}/${glue}/polyflake.js`;
    if (source === "polyflake/facts" || source === "polyflake/presets")
      return `${made}/facts/${source.slice(10)}.js`;
    if (source === "polyflake/host") return `${made}/js/bindings-wasm/js/host.js`;
    if (source === "polyflake/wasm" || source === "polyflake/version") return `\0${source}`;
    return null;
  },
  load(id) {
    if (id === "\0polyflake/wasm")
      return `export default "${readFileSync(`${made}/browser.wasm`, "base64")}"`;
    if (id === "\0polyflake/version") return `export default "${version}"`;
    return null;
  },
});

const typeNames = {
  name: "type-names",
  resolveId: (source) => (source === "polyflake/presets" ? `${made}/facts/presets.d.ts` : null),
};

/** Gives Node the same instance whether the package is imported or required. */
const nodeImport = {
  name: "node-import",
  generateBundle(_, { "node.cjs": { exports } }) {
    const source = `import cjs from "./node.cjs";\nexport const { ${exports.join(", ")} } = cjs;\n`;
    this.emitFile({ type: "asset", fileName: "node.mjs", source });
  },
};

const entry = (name, glue) => ({
  input: `${made}/js/bindings-node/js/${name}.js`,
  plugins: [names(glue)],
  onwarn: fail,
});
const file = (name, format) => ({ file: `dist/${name}`, format });

const types = (file, name, module) => ({
  input: `${made}/js/bindings-node/js/${name}.d.ts`,
  plugins: [typeNames, dts()],
  onwarn: fail,
  output: ["ts", "cts"].map((end) => ({
    file: `${file}.d.${end}`,
    banner: `// Generated from js/ by build.sh.\n\n/**\n * @module ${module}\n */\n`,
  })),
});

function fail(warning) {
  throw new Error(warning.message);
}

export default [
  {
    ...entry("node"),
    external: /^node:/,
    output: { dir: "dist", entryFileNames: "node.cjs", format: "cjs", plugins: [nodeImport] },
  },
  { ...entry("browser", "browser-glue"), output: [file("browser.mjs", "es"), file("browser.cjs", "cjs")] },
  { ...entry("workerd"), external: "./polyflake.wasm", output: file("workerd.mjs", "es") },
  {
    ...entry("decode"),
    // From the modules shared with the other entry points, keep only the parts that this one uses.
    treeshake: { moduleSideEffects: false },
    output: [file("decode.mjs", "es"), file("decode.cjs", "cjs")],
  },
  types("index", "node", "polyflake"),
  types("decode", "decode", "polyflake/decode"),
];
