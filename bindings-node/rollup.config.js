// Bundles the output of tsc and wasm-bindgen (see build.sh) into dist/ and index.d.ts.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import dts from "rollup-plugin-dts";

const made = fileURLToPath(new URL("../target/npm", import.meta.url));
const read = (path, encoding) => readFileSync(new URL(path, import.meta.url), encoding);
const { version } = JSON.parse(read("package.json", "utf8"));

/** Modules that exist by name only. */
const names = {
  name: "names",
  resolveId(source) {
    if (source === "polyflake/glue") return `${made}/glue/polyflake.js`;
    if (source === "polyflake/host") return `${made}/js/bindings-wasm/js/host.js`;
    if (source === "polyflake/wasm" || source === "polyflake/version") return `\0${source}`;
    return null;
  },
  load(id) {
    if (id === "\0polyflake/wasm") return `export default "${read("dist/polyflake.wasm", "base64")}"`;
    if (id === "\0polyflake/version") return `export default "${version}"`;
    return null;
  },
};

/** The same instance in Node, whether it is imported or required. */
const nodeImport = {
  name: "node-import",
  generateBundle(_, { "node.cjs": { exports } }) {
    const source = `import cjs from "./node.cjs";\nexport const { ${exports.join(", ")} } = cjs;\n`;
    this.emitFile({ type: "asset", fileName: "node.mjs", source });
  },
};

const entry = (name) => ({ input: `${made}/js/bindings-node/js/${name}.js`, plugins: [names], onwarn: fail });
const file = (name, format) => ({ file: `dist/${name}`, format });

function fail(warning) {
  throw new Error(warning.message);
}

export default [
  {
    ...entry("node"),
    external: /^node:/,
    output: { dir: "dist", entryFileNames: "node.cjs", format: "cjs", plugins: [nodeImport] },
  },
  { ...entry("browser"), output: [file("browser.mjs", "es"), file("browser.cjs", "cjs")] },
  { ...entry("workerd"), external: "./polyflake.wasm", output: file("workerd.mjs", "es") },
  {
    input: `${made}/js/bindings-node/js/api.d.ts`,
    plugins: [dts()],
    onwarn: fail,
    output: ["index.d.ts", "index.d.cts"].map((file) => ({
      file,
      banner: "// Generated from js/ by build.sh.\n",
    })),
  },
];
