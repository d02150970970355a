#!/usr/bin/env bash
# Shows what takes up space in the WebAssembly module, function by function (with twiggy), and its size. Run
# bindings-node/build.sh first.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
made=$CARGO_TARGET_DIR/wasm-report
twiggy=$(tools/cargo-tool twiggy 0.8.0 twiggy)

# The module as shipped, but with function names.
CARGO_PROFILE_WASM_STRIP=none CARGO_TARGET_DIR=$made \
  tools/cargo-for wasm32-unknown-unknown std,panic_abort build -q --locked --profile wasm -p polyflake-wasm
cargo run -q --locked -p polyflake-bindgen -- "$made/wasm32-unknown-unknown/wasm/polyflake_wasm.wasm" "$made/glue" \
  --keep-debug
bindings-node/node_modules/.bin/wasm-opt -Oz -g --skip-pass=memory-packing "$made/glue/polyflake_bg.wasm" \
  -o "$made/names.wasm"
"$twiggy" top -n "${1:-40}" "$made/names.wasm" | grep -vE 'subsection|custom section'

shipped=bindings-node/dist/polyflake.wasm
echo "shipped: $(stat -c %s $shipped) bytes, $(gzip -9cn $shipped | wc -c) gzipped"
