#!/usr/bin/env bash
# Checks the Go package with gofmt, vet, tests and, unless PROFILE is dev, tests under the race detector and cgo's
# pointer checks, and a short fuzz run. As for any user, PKG_CONFIG_PATH points to the library at build time, and
# LD_LIBRARY_PATH at run time.
set -uo pipefail
cd "$(dirname "$0")"

skip() {
  echo "skipped: the Go package's tests: $1"
  echo "0 passed, 0 failed"
  exit 0
}
command -v go >/dev/null 2>&1 || skip "there is no Go (1.24 or later is needed)"
# An older Go must not download a newer one.
export GOTOOLCHAIN=local CGO_ENABLED=1
version=$(go env GOVERSION)
minor=$(sed -nE 's/^go1\.([0-9]+).*/\1/p' <<<"$version")
[ -z "$minor" ] || [ "$minor" -ge 24 ] || skip "this is $version, and 1.24 or later is needed"

# For the tests of leases. They are skipped if this server, or one of those that the Makefile installs, is missing.
../../tools/need redis-server redis-server || true
passed=0
failed=0

# Go's build cache ignores C headers. With the header's checksum among the flags, a changed header causes a rebuild.
if ! header=$(pkg-config --print-errors --variable=includedir polyflake 2>&1)/polyflake.h; then
  echo "FAILED: pkg-config does not find the library: ${header%/polyflake.h}"
  echo "0 passed, 1 failed"
  exit 1
fi
CGO_CFLAGS="$(go env CGO_CFLAGS) -DPOLYFLAKE_HEADER_CHECKSUM=$(cksum <"$header" | cut -d ' ' -f 1)"
export CGO_CFLAGS

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# check NAME COMMAND...: runs one check, whose output is shown only if it fails.
check() {
  local name=$1
  shift
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    echo "ok: $name"
  else
    failed=$((failed + 1))
    cat "$log"
    echo "FAILED: $name"
  fi
}

# tests NAME COMMAND...: runs go test -v and counts its tests, including the cases of the vectors.
tests() {
  local name=$1 good bad over status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  good=$(grep -cE '^ *--- PASS' "$log")
  bad=$(grep -cE '^ *--- FAIL' "$log")
  over=$(grep -cE '^ *--- SKIP|passed over:' "$log")
  # If the tests did not build, or crashed, no line says FAIL.
  [ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
  passed=$((passed + good))
  failed=$((failed + bad))
  [ "$bad" -eq 0 ] || grep -vE '^ *(=== |--- (PASS|SKIP))' "$log"
  echo "$name: $good passed, $bad failed, $over passed over (no Go value holds their numbers)"
}

unformatted() {
  local files
  files=$(gofmt -l . ../../benchmarks/go ../../recipes/go) && [ -z "$files" ] || { echo "not as gofmt writes it: $files"; return 1; }
}

check "gofmt" unformatted
check "go vet" go vet ./...
tests "tests" go test -count=1 -v ./...
# Each of these recompiles Go's standard library, so `make test` leaves them to `make test-release`.
if [ "${PROFILE:-}" != dev ]; then
  # Skips the tests that the race detector cannot check or would disturb: those of memory use, other processes and the
  # stores, whose clients are not written in Go.
  tests "tests with -race and cgocheck2" env GOEXPERIMENT=cgocheck2 \
    go test -count=1 -race -skip 'TestMemoryComesBack|TestReadmePrograms|TestBuildWithoutCgo|TestLeaseStores' -v ./...
  # Limited by count: a fuzzer stopped by a time limit may report that as a failure (context deadline exceeded).
  check "fuzzing layouts" go test -run '^$' -fuzz '^FuzzLayout$' -fuzztime 100000x .
  check "fuzzing the texts of IDs" go test -run '^$' -fuzz '^FuzzParseID$' -fuzztime 100000x .
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
