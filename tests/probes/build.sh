#!/usr/bin/env bash
# tests/probes/build.sh: installs what the probes need, and builds the adapters in compiled languages in
# $CARGO_TARGET_DIR/probes. C, Go and Java need libpolyflake, which pkg-config must find (PKG_CONFIG_PATH).
# The programs record its folder, so that they run without LD_LIBRARY_PATH.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/../../target}
built=$CARGO_TARGET_DIR/probes
mkdir -p "$built"
"$here/../../tools/need" '/usr/lib/*/faketime/libfaketime.so.1' libfaketime redis-server redis-server \
  cgi-fcgi libfcgi-bin php php-cli '/usr/sbin/php-fpm*' php-fpm

# This program uses the versions pinned by the workspace, whose lease tests have already built them.
cp "$here/../../Cargo.lock" "$here/adapters/rust/Cargo.lock"
cargo build -q --manifest-path "$here/adapters/rust/Cargo.toml"
cp "$CARGO_TARGET_DIR/debug/polyflake-probe" "$built/rust"

library=$(pkg-config --variable=libdir polyflake)
read -ra flags < <(pkg-config --cflags --libs polyflake)
"${CC:-gcc}" -std=gnu99 -Wall -Wextra -Werror -O2 "$here/adapters/c/polyflake_adapter.c" -o "$built/c" \
  "${flags[@]}" -pthread "-Wl,-rpath,$library"

if jdk=$("$here/../../bindings-c/java/jdk"); then
  # `make test` starts many short-lived JVMs, and the second compiler would use more processor time than it saves.
  options="-XX:+UseSerialGC --enable-native-access=ALL-UNNAMED"
  [ "${PROFILE:-}" != dev ] || options+=" -XX:TieredStopAtLevel=1"
  "$jdk/bin/javac" -Xlint:-options --release 22 -d "$built/java-classes" \
    "$here"/../../bindings-c/java/src/main/java/io/polyflake/*.java "$here/adapters/java/PolyflakeAdapter.java"
  cat > "$built/java" <<SH
#!/bin/sh
exec "$jdk/bin/java" $options \
  "-Dpolyflake.library=$library/libpolyflake.so.0" -cp "$built/java-classes" PolyflakeAdapter "\$@"
SH
  chmod +x "$built/java"
else
  echo "skipped: the Java adapter: there is no JDK 22 or later"
fi

if command -v go >/dev/null; then
  cd "$here/adapters/go"
  GOTOOLCHAIN=local CGO_ENABLED=1 CGO_LDFLAGS="-Wl,-rpath,$library" go build -o "$built/go" .
else
  echo "skipped: the Go adapter: Go is not installed"
fi
