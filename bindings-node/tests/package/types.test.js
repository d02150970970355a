// Strict TypeScript over the installed package, without the types of DOM or Node. `@ts-expect-error` shows that the types
// are not just `any`.
import path from "node:path";
import { before, test } from "node:test";
import { project, root, run } from "./project.js";

let cwd;

before(async () => {
  cwd = await project();
});

for (const resolution of ["nodenext", "bundler"]) {
  test(`module resolution ${resolution}`, async () => {
    await run(path.join(root, "node_modules/.bin/tsc"), ["-p", path.join("types", resolution)], { cwd });
  });
}
