#!/usr/bin/env node
// Runs the program for this platform, which npm has installed beside this package.
"use strict";

const { spawnSync } = require("node:child_process");
const { constants } = require("node:os");

function program() {
  const name = `@polyflake/cli-${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/polyflake${process.platform === "win32" ? ".exe" : ""}`);
  } catch {
    console.error(
      `polyflake: there is no program for ${process.platform} on ${process.arch}: ${name} is not installed. ` +
        "It is one of the optional dependencies, which `npm install --no-optional` leaves out; " +
        "`cargo install polyflake-cli` builds it where there is none.",
    );
    return process.exit(1);
  }
}

// What ends this process from the keyboard ends the program, which says with what code.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {});
}
const { status, signal, error } = spawnSync(program(), process.argv.slice(2), { stdio: "inherit" });
if (error) {
  console.error(`polyflake: it cannot be started: ${error.message}`);
}
process.exit(status ?? (signal ? 128 + constants.signals[signal] : 1));
