// The types of ./polyflake.js, which the build copies next to the page.
export * from "../bindings-node/index.d.ts";
