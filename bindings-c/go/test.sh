#!/usr/bin/env bash
# The Go package's checks: gofmt, vet, tests, tests under the race detector and cgo's pointer checks, and a short fuzz.
# The library is found as anybody finds it: by PKG_CONFIG_PATH when it is built and LD_LIBRARY_PATH when it runs.
set -uo pipefail
cd "$(dirname "$0")"

skip() {
  echo "skipped: the Go package's tests: $1"
  echo "0 passed, 0 failed"
  exit 0
}
command -v go >/dev/null 2>&1 || skip "there is no Go (1.24 or later is needed)"
# An older Go must not fetch a newer one.
export GOTOOLCHAIN=local CGO_ENABLED=1
version=$(go env GOVERSION)
minor=$(sed -nE 's/^go1\.([0-9]+).*/\1/p' <<<"$version")
[ -z "$minor" ] || [ "$minor" -ge 24 ] || skip "this is $version, and 1.24 or later is needed"

# For its leases; without it, and the servers that the Makefile installs, those tests are skipped.
../../tools/need redis-server redis-server || true
passed=0
failed=0

# Go's build cache does not look at C headers: with the header's checksum among the flags, another header is another
# build.
if ! header=$(pkg-config --print-errors --variable=includedir polyflake 2>&1)/polyflake.h; then
  echo "FAILED: pkg-config does not find the library: ${header%/polyflake.h}"
  echo "0 passed, 1 failed"
  exit 1
fi
CGO_CFLAGS="$(go env CGO_CFLAGS) -DPOLYFLAKE_HEADER_CHECKSUM=$(cksum <"$header" | cut -d ' ' -f 1)"
export CGO_CFLAGS

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# check NAME COMMAND...: one check that says something only where it fails.
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

# tests NAME COMMAND...: a run of go test -v, whose tests are counted, cases of the vectors among them.
tests() {
  local name=$1 good bad over status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  good=$(grep -cE '^ *--- PASS' "$log")
  bad=$(grep -cE '^ *--- FAIL' "$log")
  over=$(grep -cE '^ *--- SKIP|passed over:' "$log")
  # One that did not build, or crashed, has no line of its own.
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
# Without what the race detector cannot see: its own memory, and other processes. The stores are not Go's.
tests "tests with -race and cgocheck2" env GOEXPERIMENT=cgocheck2 \
  go test -count=1 -race -skip 'TestMemoryComesBack|TestReadmePrograms|TestBuildWithoutCgo|TestLeaseStores' -v ./...
# By count: a fuzzer that is ended by the clock may call that a failure (context deadline exceeded).
check "fuzzing layouts" go test -run '^$' -fuzz '^FuzzLayout$' -fuzztime 100000x .
check "fuzzing the texts of IDs" go test -run '^$' -fuzz '^FuzzParseID$' -fuzztime 100000x .

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
