// Modules that rollup.config.js provides.

/** The WebAssembly module for browsers, in base64. */
declare module "polyflake/wasm" {
  const base64: string;
  export default base64;
}

/** The package's version. */
declare module "polyflake/version" {
  const version: string;
  export default version;
}

declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}
