// Checks the installed package with strict TypeScript, without the types of the DOM or Node. `@ts-expect-error` shows
// that the types are not just `any`.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { before, test } from "node:test";
import { project, repository, root, run } from "./project.js";

const TSC = path.join(root, "node_modules/.bin/tsc");
/** Pages whose JavaScript is also valid TypeScript, except for channel events, which have the type `unknown`. */
const PAGES = ["bindings-node/README.md", "docs/decoding.md", "docs/getting-started/node.md"];

let cwd;

before(async () => {
  cwd = await project();
});

for (const resolution of ["nodenext", "bundler"]) {
  test(`module resolution ${resolution}`, async () => {
    await run(TSC, ["-p", path.join("types", resolution)], { cwd });
  });
}

test("the examples of the pages compile in strict mode", async () => {
  const into = path.join(cwd, "examples");
  await mkdir(into);
  for (const page of PAGES) {
    const text = await readFile(path.join(repository, page), "utf8");
    for (const { 1: code, index } of text.matchAll(/^```js\n(.*?)^```$/gms)) {
      if (code.includes("diagnostics_channel")) continue;
      const line = text.slice(0, index).split("\n").length;
      await writeFile(path.join(into, `${path.basename(page, ".md")}.${line}.mts`), code);
    }
  }
  await writeFile(path.join(into, "others.d.ts"), 'declare module "sinon";');
  const compilerOptions = {
    target: "ES2024",
    module: "NodeNext",
    strict: true,
    noEmit: true,
    types: ["node"],
    typeRoots: [path.join(root, "node_modules/@types")],
  };
  await writeFile(
    path.join(into, "tsconfig.json"),
    JSON.stringify({ compilerOptions, include: ["*.ts", "*.mts"] }),
  );
  await run(TSC, ["-p", into], { cwd });
});
