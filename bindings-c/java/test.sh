#!/usr/bin/env bash
# The Java package's checks: the compiler's warnings, the tests, Javadoc, and the jar. The tests find the library
# through LD_LIBRARY_PATH, as users do. Maven fetches JUnit and its plugins once. The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")" || exit 1

skip() {
  echo "skipped: the Java package's tests: $1"
  echo "0 passed, 0 failed"
  exit 0
}
JAVA_HOME=$(./jdk) || skip "there is no JDK 22 or later"
export JAVA_HOME
../../tools/need mvn maven || skip "there is no Maven"
# The lease tests need Redis and the servers that the Makefile installs; without them, those tests are skipped.
../../tools/need redis-server redis-server || true

# `make test` starts many short-lived JVMs, and the second compiler would use more processor time than it saves.
[ "${PROFILE:-}" != dev ] || export JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1

built=${CARGO_TARGET_DIR:-$PWD/../../target}/java
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

check() { # NAME COMMAND...: one check, whose output is printed only if it fails
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

maven() {
  mvn -B -q -Dbuilt="$built" -Dstrict=true "$@"
}

# Count each test, and each case in the vectors.
rm -rf "$built/surefire-reports"
status=0
maven package >"$log" 2>&1 || status=$?
if [ ! -e "$built/surefire-reports" ] && grep -q 'Could not transfer artifact' "$log"; then
  skip "Maven could not fetch its plugins: $(grep -m 1 -o 'Could not transfer artifact.*' "$log")"
fi
read -r tests bad over < <(cat "$built"/surefire-reports/*.xml 2>/dev/null | awk '
  /<testsuite / { match($0, / tests="[0-9]+"/) && tests += substr($0, RSTART + 8); }
  /<(failure|error)[ >]/ { bad++ }
  /<skipped/ { over++ }
  END { print tests + 0, bad + 0, over + 0 }')
# If the code did not compile, or the JVM crashed, no report shows it.
[ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
[ "$tests" -gt 0 ] || bad=1
passed=$((passed + tests - bad - over))
failed=$((failed + bad))
[ "$bad" -eq 0 ] || cat "$log"
[ "$tests" -ge $((bad + over)) ] || passed=0
echo "tests: $((tests - bad - over)) passed, $bad failed, $over passed over (their numbers fit no Java type, or a" \
  "server is missing)"

check "Javadoc" "$JAVA_HOME/bin/javadoc" -quiet -Xdoclint:all -Werror --release 22 -d "$built/apidocs" \
  --module-source-path "io.polyflake=src/main/java" --module io.polyflake
check "the jar is a module" "$JAVA_HOME/bin/java" --module-path "$built/polyflake-$(../../tools/metadata version).jar" \
  --describe-module io.polyflake

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
