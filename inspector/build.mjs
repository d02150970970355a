// Assembles the page: its own files and the package's browser build.
// node build.mjs [folder]   (default: target/inspector/site)
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

const page = import.meta.dirname;
const repository = resolve(page, "..");
const site = resolve(process.argv[2] ?? join(repository, "target/inspector/site"));
const bundle = process.env.POLYFLAKE_BROWSER_BUILD ?? join(repository, "bindings-node/dist/browser.mjs");

rmSync(site, { recursive: true, force: true });
mkdirSync(site, { recursive: true });
for (const file of readdirSync(page).filter((name) => /\.(html|css|js)$/.test(name))) {
  copyFileSync(join(page, file), join(site, file));
}
copyFileSync(bundle, join(site, "polyflake.js"));
console.log(site);
