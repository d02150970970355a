#!/usr/bin/env bash
# Installs the command in three ways, each in a separate folder, and compares what they print.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CARGO_TARGET_DIR=$PWD/target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(tools/metadata version)

cli/build.sh "$work/packages"
python3 -m venv "$work/pip"
"$work/pip/bin/pip" install -q --disable-pip-version-check --no-index "$work"/packages/*.whl
# The platform's package is an optional dependency, which is in no registry, so it is installed separately.
npm install --silent --no-audit --no-fund --omit=optional --prefix "$work/npm" \
  "$work/packages/polyflake-cli-$version.tgz" "$work/packages/polyflake-cli-linux-x64-$version.tgz"
cargo install -q --locked --profile command --path cli --root "$work/cargo" --no-track
programs=("$work/pip/bin/polyflake" "$work/npm/node_modules/.bin/polyflake" "$work/cargo/bin/polyflake")

passed=0 failed=0
# check CODE ARGUMENTS...: each program has the same output on both streams, and the same exit code.
check() {
  local expected=$1 first="" code
  shift
  for program in "${programs[@]}"; do
    code=0
    "$program" "$@" > "$work/out" 2> "$work/err" < /dev/null || code=$?
    if [ "$code" != "$expected" ] || { [ -n "$first" ] && [ "$(sha256sum < "$work/out")$(cat "$work/err")" != "$first" ]; }; then
      echo "FAILED: $program $*: exit code $code instead of $expected, or it prints something else"
      cat "$work/out" "$work/err"
      failed=$((failed + 1))
    else
      passed=$((passed + 1))
    fi
    first=${first:-$(sha256sum < "$work/out")$(cat "$work/err")}
  done
}
check 0 --version
check 0 decode --json 1541815603606036480
check 0 decode --layout discord 175928847299117063 --json
check 0 inspect --json 017F22E2-79B0-7CC3-98C4-DC0C0C07398F
check 0 layouts
check 15 decode x
check 2 decode --nothing
# The program contains the page that `polyflake serve` has at /: this is the page's policy for scripts.
page=$(grep -o '<meta http-equiv="Content-Security-Policy"[^>]*>' "$POLYFLAKE_INSPECTOR/index.html")
for program in "$work/pip/bin/polyflake" "$work/npm/node_modules/@polyflake/cli-linux-x64/polyflake" "$work/cargo/bin/polyflake"; do
  if grep -qaF "$page" "$program"; then passed=$((passed + 1)); else
    echo "FAILED: the inspector is not in $program"
    failed=$((failed + 1))
  fi
done
# A signal ends every process, and the exit code says so.
for program in "${programs[@]}"; do
  code=0
  timeout --preserve-status -s INT 2 "$program" next --forever --node 1 > /dev/null || code=$?
  if [ "$code" = 130 ]; then passed=$((passed + 1)); else
    echo "FAILED: $program ends with $code on SIGINT"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
