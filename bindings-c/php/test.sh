#!/usr/bin/env bash
# bindings-c/php/test.sh: the PHP package's tests. They find libpolyflake as the package does (POLYFLAKE_LIBRARY, or
# LD_LIBRARY_PATH). Installs missing packages of the distribution with tools/need; if that is not possible, says which
# tests it skips. The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")" || exit 1

../../tools/need php php-cli phpunit phpunit cgi-fcgi libfcgi-bin redis-server redis-server || true
if [ -z "$(PATH="$PATH:/usr/sbin" compgen -c php-fpm)" ]; then ../../tools/need php-fpm php-fpm || true; fi

passed=0
failed=0
skip() { echo "skipped: $*"; }
step() { # NAME COMMAND...: one test, whose output is shown if it fails
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    passed=$((passed + 1))
    echo "ok: $name"
  else
    failed=$((failed + 1))
    printf '%s\nFAILED: %s\n' "$output" "$name"
  fi
}
unit() { # PHP OPTIONS...: PHPUnit's tests, each counted
  local log tests bad skipped
  log=$(mktemp)
  php "$@" "$(command -v phpunit)" --log-junit "$log" | grep -v '^[.SRWIEF]* *[0-9]* / [0-9]* ('
  read -r tests bad skipped < <(php -d display_errors=0 -r '
    $suite = @simplexml_load_file($argv[1])->testsuite ?? exit("0 1 0");
    echo "$suite[tests] ", $suite["errors"] + $suite["failures"] + $suite["warnings"], " ", (int) $suite["skipped"];
  ' "$log"; echo)
  rm -f "$log"
  : "${tests:=0}" "${bad:=1}" "${skipped:=0}"
  passed=$((passed + tests - bad - skipped))
  failed=$((failed + bad))
  [ "$skipped" -eq 0 ] || skip "$skipped of PHPUnit's tests, which lack something here: phpunit --verbose names it"
}

if ! command -v php >/dev/null; then
  skip "all tests of the PHP package: there is no php here, and it could not be installed"
elif ! php -r 'exit(PHP_VERSION_ID >= 80100 && class_exists("FFI") ? 0 : 1);'; then
  skip "all tests of the PHP package: this php is older than 8.1 or lacks the extension ffi"
else
  for file in $(find . -name '*.php'); do php -l "$file" >/dev/null || failed=$((failed + 1)); done
  step 'the example runs' php examples/quick-start.php
  benchmark=../../benchmarks/php/bench.php
  step 'the benchmark lists what it measures' test -n "$(php $benchmark)"
  while IFS=$'\t' read -r table subject _; do
    case $subject in
      godruoyi*) ;; # Composer installs it.
      *) step "the benchmark measures $subject, $table" php $benchmark "$table" "$subject" <<<round ;;
    esac
  done < <(php $benchmark)
  if command -v phpunit >/dev/null; then
    unit
    # `make test` leaves this to `make test-release`.
    [ "${PROFILE:-}" = dev ] || unit -d opcache.enable_cli=1
  else
    skip "PHPUnit's tests: there is no phpunit here"
  fi
  if command -v composer >/dev/null; then
    step 'composer.json is valid' env COMPOSER_ALLOW_SUPERUSER=1 composer validate --strict --no-interaction
  else
    skip 'composer validate: there is no composer here'
  fi
  if command -v phpstan >/dev/null; then step phpstan phpstan analyse --no-progress; else skip 'phpstan: it is not here'; fi
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
