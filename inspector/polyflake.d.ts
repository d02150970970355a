// The types of ./polyflake.js, which the build puts beside the page.
export * from "../bindings-node/index.d.ts";
