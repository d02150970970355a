#!/usr/bin/env bash
# Tests the package as npm packs it in Bun and in Deno, with the native addon: the shared vectors, and those of Node's
# tests that do not start programs with Node's options.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
project=${CARGO_TARGET_DIR:-$PWD/target}/runtimes
names=(vectors decode bad-input decoding property first waiting)

# Copy the files that the tests read to the places where the tests look for them.
rm -rf "$project"/{package,tests} "$project"/*.tgz
mkdir -p "$project"/{package/tests,tests}
cp bindings-node/tests/runtimes/package*.json "$project"
cp bindings-node/index.d.ts "$project/package"
cp bindings-node/tests/{support,vectors}.js "$project/package/tests"
cp tests/vectors.json "$project/tests"
for name in "${names[@]}"; do cp "bindings-node/tests/$name.test.js" "$project/package/tests" || exit; done
npm pack --silent --ignore-scripts --pack-destination "$project" ./bindings-node ./bindings-node/npm/linux-x64-gnu || exit
cd "$project" || exit
# Not `npm ci`: see bindings-node/build.sh.
npm install --no-save --no-audit --no-fund --loglevel=error ./*.tgz || exit

cat >package/tests/native.test.js <<'JS'
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Snowflake } from "polyflake";

test("this is the native addon", () => {
  assert.ok(new Snowflake({ node: 1 }).nextId() > 0n);
  assert.match(readFileSync("/proc/self/maps", "utf8"), /polyflake\.linux-x64-gnu\.node/);
});
JS

passed=0 failed=0
# run NAME PATTERN COMMAND...: PATTERN captures how many tests passed or, with `fail` in place of `pass`, how many
# failed.
run() {
  local name=$1 pattern=$2 status=0 good bad
  shift 2
  NO_COLOR=1 "$@" >"$name.log" 2>&1 || status=$?
  good=$(sed -nE "s/$pattern/\1/p" "$name.log" | tail -n 1)
  bad=$(sed -nE "s/${pattern/pass/fail}/\1/p" "$name.log" | tail -n 1)
  [ "$status" -eq 0 ] && [ "${good:-0}" -gt 0 ] || { cat "$name.log"; [ "${bad:-0}" -gt 0 ] || bad=1; }
  echo "$name: ${good:-0} passed, ${bad:-0} failed"
  passed=$((passed + ${good:-0})) failed=$((failed + ${bad:-0}))
}
run bun '^ *([0-9]+) pass$' npx --no-install bun test --timeout 120000 ./package/tests
run deno '^.*[^0-9]([0-9]+) passed.*$' npx --no-install deno test --allow-all --no-check package/tests/
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
