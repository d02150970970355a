#!/usr/bin/env bash
# cli/build.sh FOLDER: builds the packages of the command in a folder: a wheel, and npm's two packages.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=$PWD/target
mkdir -p "$1"
to=$(cd "$1" && pwd)

tools/need npm npm strip binutils
stores=$(tools/stores)
cargo build -q --locked --profile command -p polyflake-cli $stores
strip -o cli/npm/linux-x64/polyflake.new "$CARGO_TARGET_DIR/command/polyflake"
mv cli/npm/linux-x64/polyflake.new cli/npm/linux-x64/polyflake
# npm packs only what is in the package's folder.
cp LICENSE cli/README.md cli/npm/polyflake-cli/
cp LICENSE cli/npm/linux-x64/
(cd cli/npm && npm pack --silent --pack-destination "$to" ./polyflake-cli ./linux-x64)
(cd cli && ../.venv/bin/maturin build -q --locked $stores --out "$to")
