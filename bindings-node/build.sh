#!/usr/bin/env bash
# Builds the npm packages: the native addon in npm/, the WebAssembly module and the bundles in dist/, and the types in
# index.d.ts and decode.d.ts. `npm pack` in both folders then packs what users install. With the argument `wasm`, builds
# everything except the addon.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=$PWD/target
here=bindings-node
made=$CARGO_TARGET_DIR/npm
mkdir -p "$made" $here/dist
# Only one build at a time: two parts of `make test-release` may need the packages at once.
exec 9<$here/build.sh
! command -v flock >/dev/null || flock 9
newer() { [ ! -e "$2" ] || [ "$1" -nt "$2" ]; }

tools/need node nodejs npm npm
if newer $here/package-lock.json $here/node_modules/.package-lock.json; then
  # Not `npm ci`: it rejects a lock file written with a registry that lacks other platforms' packages.
  npm install --prefix $here --no-save --no-audit --no-fund
  touch $here/node_modules/.package-lock.json
fi

# The native addon. It is replaced rather than overwritten, because a running process may have the old one open.
platform=$(node -p '`${process.platform}-${process.arch}`')
if [ "${1:-}" = wasm ]; then
  :
elif [ "$platform" = linux-x64 ]; then
  addon=$here/npm/linux-x64-gnu/polyflake.linux-x64-gnu.node
  stores=$(tools/stores)
  profile=${PROFILE:-release}
  cargo build -q --locked --profile $profile -p polyflake-node $stores
  # Always strip: if cargo restores an earlier build, made for other stores, the file keeps its older date.
  tools/need strip binutils
  strip -o $addon.new "$CARGO_TARGET_DIR/${profile/#dev/debug}/libpolyflake_node.so"
  mv $addon.new $addon
else
  echo "there is no platform package for $platform yet: building only the WebAssembly module"
fi

# A WebAssembly module, and its glue from wasm-bindgen.
cargo build -q --locked -p polyflake-bindgen
bindgen=$CARGO_TARGET_DIR/debug/polyflake-bindgen
wasm() { # MODULE GLUE FEATURES
  local built=$CARGO_TARGET_DIR/wasm32-unknown-unknown/wasm/polyflake_wasm.wasm
  # It exports its stack pointer, which bindings-wasm/js/wasm.ts restores after a call that used up JavaScript's stack.
  tools/cargo-for wasm32-unknown-unknown core,alloc rustc -q --locked --profile wasm -p polyflake-wasm --features "$3" -- \
    -C link-arg=--export=__stack_pointer
  if newer "$built" "$1" || newer "$bindgen" "$1"; then
    "$bindgen" "$built" "$2"
    $here/node_modules/.bin/wasm-opt -Oz --skip-pass=memory-packing --strip-producers --strip-target-features \
      "$2/polyflake_bg.wasm" -o "$1"
  fi
}
wasm "$made/browser.wasm" "$made/browser-glue" ""
wasm $here/dist/polyflake.wasm "$made/glue" public-ids

# The facts about the core that the entry point `polyflake/decode` uses.
"$CARGO_TARGET_DIR/debug/polyflake-facts" >"$made/facts.json"
mkdir -p "$made/facts"
if newer $here/facts.js "$made/facts/presets.js" || ! cmp -s "$made/facts.json" "$made/facts/made-of.json"; then
  node $here/facts.js "$made/facts.json" "$made/facts"
  mv "$made/facts.json" "$made/facts/made-of.json"
fi

# npm packs only what is in the package's folder.
cp LICENSE $here/
cp LICENSE $here/npm/linux-x64-gnu/

cd $here
# Bundles, if any source is newer than the last file that bundling writes.
if [ -n "$(find js ../bindings-wasm/js dist/polyflake.wasm "$made/browser.wasm" "$made"/{browser-,}glue "$made/facts" package.json tsconfig*.json rollup.config.js \
  node_modules/.package-lock.json -newer index.d.cts 2>&1)" ]; then
  npm run --silent bundle
fi
