#!/usr/bin/env bash
# recipes/test.sh [PART...]: runs the tests of the recipes (python, sql; all, if none is named) with
# the packages as they are installed, and with databases that it starts, and that end with it. What a part says ends
# with "N passed, M failed".
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
root=$PWD
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
# What is installed for the tests.
made=$CARGO_TARGET_DIR/recipes
mkdir -p "$made"
[ $# -gt 0 ] || set -- python sql

inputs=()
processes=()
stop() { # a database ends when its input does
  for input in "${inputs[@]}"; do exec {input}>&-; done
  for process in "${processes[@]}"; do wait "$process"; done
}
trap stop EXIT
start() { # KIND: its address in the environment's RECIPES_KIND
  local input address=$made/$1.address
  : >"$address"
  exec {input}> >(exec "$CARGO_TARGET_DIR/debug/examples/store_server" "$1" >"$address")
  processes+=($!)
  inputs+=("$input")
  until [ -s "$address" ]; do
    kill -0 "${processes[-1]}" 2>/dev/null || { echo "$1 has not started"; exit 1; }
    sleep 0.1
  done
  export "RECIPES_${1^^}=$(head -n 1 "$address")"
}

venv() {
  local packages=recipes/requirements.txt wheel
  wheel=$(ls dist/polyflake-[0-9]*-abi3-*.whl) || return
  if [ ! "$made/venv/ready" -nt $packages ]; then
    rm -rf "$made/venv"
    .venv/bin/python -m venv "$made/venv"
    "$made/venv/bin/pip" install -q --disable-pip-version-check -r $packages || return
    touch "$made/venv/ready"
  fi
  "$made/venv/bin/pip" install -q --disable-pip-version-check --no-deps --force-reinstall "$wheel"
}

python() { venv && PYTHONPATH=recipes/python "$made/venv/bin/python" -m pytest -q --timeout 300 -c recipes/pytest.ini recipes/python; }
sql() { venv && "$made/venv/bin/python" -m pytest -q --timeout 300 -c recipes/pytest.ini recipes/sql; }

status=0
start postgres
start mariadb
for part in "$@"; do
  echo "recipes: $part"
  "$part" || status=1
done
exit $status
