// A user's project: the packages as npm packs them, installed in an empty folder together with the fixtures.
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);

const atEnds = [];
after(async () => {
  for (const undo of atEnds.reverse()) await undo();
});

/** Calls `undo` after all tests in the file; an `after` inside a `before` would be called after the `before`. */
export function atEnd(undo) {
  atEnds.push(undo);
}

export const root = fileURLToPath(new URL("../..", import.meta.url));
export const repository = path.dirname(path.resolve(root));
export const platform = path.join(root, "npm/linux-x64-gnu");
const fixtures = fileURLToPath(new URL("fixtures", import.meta.url));

/** Runs a program, and returns its output, or throws the output if the program fails. */
export async function run(program, args, options) {
  try {
    return await execute(program, args, { ...options, maxBuffer: 2 ** 24 });
  } catch (error) {
    throw new Error(`${program} ${args.join(" ")}: ${error.message}\n${error.stdout}\n${error.stderr}`);
  }
}

/** Packs the package in `folder` with `npm pack`. Returns the tarball's path, sizes and files. */
export async function pack(folder, into) {
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", into], {
    cwd: folder,
  });
  const [packed] = JSON.parse(stdout);
  return { ...packed, tarball: path.join(into, packed.filename) };
}

/** Creates an empty folder, which is removed after the tests. */
export async function folder() {
  const made = await mkdtemp(path.join(tmpdir(), "polyflake-"));
  atEnd(() => rm(made, { recursive: true, force: true }));
  return made;
}

/** Creates a project with polyflake installed, and its platform package unless `native` is false. */
export async function project({ native = true } = {}) {
  const made = await folder();
  const tarballs = [await pack(root, made)];
  if (native) tarballs.push(await pack(platform, made));
  await writeFile(path.join(made, "package.json"), JSON.stringify({ name: "project", private: true }));
  const options = ["--offline", "--no-audit", "--no-fund", "--ignore-scripts"];
  if (!native) options.push("--omit=optional");
  await run("npm", ["install", ...options, ...tarballs.map(({ tarball }) => tarball)], { cwd: made });
  await cp(fixtures, made, { recursive: true });
  return made;
}
