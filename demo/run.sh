#!/usr/bin/env bash
# demo/run.sh [OPTIONS of demo.py]: builds the Python package with only the SQLite store, and runs the demo with it. It
# does not use .venv, where the tests install the package with every store.
set -euo pipefail
cd "$(dirname "$0")/.."
made=$PWD/target/demo
if [ ! tests/requirements.txt -ot "$made/venv/ready" ]; then
  mkdir -p "$made"
  grep '^tqdm==' tests/requirements.txt >"$made/requirements.txt"
  tools/venv "$made/venv" "$made/requirements.txt"
  touch "$made/venv/ready"
fi
stores=$(POLYFLAKE_STORES=sqlite tools/stores)
# Built the way maturin does, without Python's own library.
CARGO_TARGET_DIR=$PWD/target PYO3_BUILD_EXTENSION_MODULE=1 PYO3_PYTHON=$made/venv/bin/python \
  cargo build --locked --profile demo -p polyflake-python $stores
mkdir -p "$made/package"
cp -R bindings-python/python/polyflake "$made/package/"
cp "$made/lib_polyflake.so" "$made/package/polyflake/_polyflake.abi3.so"
PYTHONPATH=$made/package exec "$made/venv/bin/python" demo/demo.py "$@"
