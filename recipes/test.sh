#!/usr/bin/env bash
# recipes/test.sh [PART...]: runs the tests of the recipes (python, sql, node, go, java, rust, php; all, if none is
# named) with the packages as users install them. It starts the databases and stops them at the end. The output of each
# part ends with "N passed, M failed".
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
root=$PWD
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
# The packages installed for the tests.
made=$CARGO_TARGET_DIR/recipes
mkdir -p "$made"
[ $# -gt 0 ] || set -- python sql node go java rust php

inputs=()
processes=()
stop() { # a database stops when its input is closed
  for input in "${inputs[@]}"; do exec {input}>&-; done
  for process in "${processes[@]}"; do wait "$process"; done
}
trap stop EXIT
start() { # KIND: puts its address in the environment variable RECIPES_KIND
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

# The wheel as users install it, and the packages that the requirements pin.
venv() {
  local packages=recipes/requirements.txt
  if [ ! "$made/venv/ready" -nt $packages ]; then
    rm -rf "$made/venv"
    .venv/bin/python -m venv "$made/venv"
    # pip compiles uWSGI.
    tools/need cc gcc "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" python3-dev || return
    "$made/venv/bin/pip" install -q --disable-pip-version-check -r $packages || return
    touch "$made/venv/ready"
  fi
  "$made/venv/bin/pip" install -q --disable-pip-version-check --force-reinstall --no-deps --no-index --find-links dist polyflake
}

pytest() { "$made/venv/bin/python" -m pytest -q --timeout 300 -c recipes/pytest.ini "$@"; }
test_python() {
  venv || return
  (cd recipes/python && "$made/venv/bin/python" -m mypy --strict --cache-dir "$made/mypy" polyflake_*.py shop*.py) || return
  start redis
  PYTHONPATH=recipes/python pytest recipes/python
}
test_sql() { venv && pytest recipes/sql; }

# A user's project: the packages as npm packs them, and those that the lock file pins.
test_node() {
  local project=$made/node
  mkdir -p "$project"
  rm -rf "$project"/*.ts "$project"/*.tgz "$project/out" "$project/prisma-client"
  cp recipes/node/*.ts recipes/node/*.json recipes/node/*.prisma "$project"
  npm pack --silent --ignore-scripts --pack-destination "$project" ./bindings-node ./bindings-node/npm/linux-x64-gnu || return
  # Not `npm ci`: see bindings-node/build.sh. Prisma's scripts would fetch its schema engine, and so would `generate`,
  # which does not use it.
  (cd "$project" && npm install --no-save --no-audit --no-fund --ignore-scripts --loglevel=error ./*.tgz &&
    PRISMA_SCHEMA_ENGINE_BINARY=/bin/true npx --no-install prisma generate --schema schema.prisma >/dev/null &&
    npx --no-install tsc) || return
  node --test --test-reporter=./bindings-node/tests/reporter.js "$project"/out/*.test.js
}

test_go() {
  local log=$made/go.log status=0 bad
  # An older Go must not fetch a newer one.
  export GOTOOLCHAIN=local
  if ! (cd recipes/go && go list -m) >"$log" 2>&1; then
    cat "$log"
    echo "skipped: Go 1.24 or later is needed"
    return
  fi
  (cd recipes/go && go vet ./... && go test -count=1 -v ./...) >"$log" 2>&1 || status=1
  [ $status -eq 0 ] || cat "$log"
  # A test that did not build, or that crashed, leaves no line.
  bad=$(grep -cE '^ *--- FAIL' "$log") || bad=$status
  echo "$(grep -cE '^ *--- PASS' "$log") passed, $bad failed"
  return $status
}

test_rust() { cargo test -q --locked --manifest-path recipes/rust/Cargo.toml; }

test_php() {
  local log=$made/php.xml
  local share=/usr/share/php
  tools/need php php-cli phpunit phpunit $share/Doctrine/ORM/autoload.php php-doctrine-orm \
    $share/Doctrine/DBAL/autoload.php php-doctrine-dbal $share/Illuminate/Foundation/helpers.php php-laravel-framework \
    $share/Symfony/Bundle/FrameworkBundle/autoload.php php-symfony-framework-bundle \
    $share/Symfony/Component/Messenger/autoload.php php-symfony-messenger || return
  php -r 'exit((int) !extension_loaded("pdo_mysql"));' || tools/need pdo_mysql php-mysql || return
  rm -f "$log"
  # A worker that is not given a node waits for one.
  timeout 300 phpunit --do-not-cache-result --fail-on-warning --fail-on-risky --bootstrap recipes/php/tests/bootstrap.php --log-junit "$log" \
    recipes/php/tests
  php -r '
    $suite = @simplexml_load_file($argv[1])->testsuite ?? exit("0 passed, 1 failed\n");
    $bad = $suite["errors"] + $suite["failures"] + $suite["warnings"];
    echo $suite["tests"] - $bad, " passed, $bad failed\n";
    exit((int) ($bad > 0));
  ' "$log"
}

test_java() {
  local log=$made/java.log reports=$made/java/surefire-reports status=0 tests bad
  JAVA_HOME=$(bindings-c/java/jdk) || { echo "skipped: a JDK of Java 22 or later is needed"; return; }
  export JAVA_HOME
  tools/need mvn maven redis-server redis-server redis-cli redis-tools || return
  # Polyflake's package is installed there too, and not in the user's own repository.
  local maven=(mvn -B -q "-Dmaven.repo.local=$made/maven")
  rm -rf "$reports"
  {
    "${maven[@]}" -f bindings-c/java/pom.xml -Dmaven.test.skip -Dbuilt="$made/polyflake-java" install &&
      "${maven[@]}" -f recipes/java/pom.xml -Dbuilt="$made/java" -Dpolyflake.version="$(tools/metadata version)" test
  } >"$log" 2>&1 || status=1
  if [ ! -e "$reports" ] && grep -q 'Could not transfer artifact' "$log"; then
    echo "skipped: Maven could not fetch what the recipes need: $(grep -m 1 -o 'Could not transfer artifact.*' "$log")"
    return
  fi
  [ $status -eq 0 ] || cat "$log"
  read -r tests bad < <(cat "$reports"/*.xml 2>/dev/null | awk '
    /<testsuite / { match($0, / tests="[0-9]+"/); tests += substr($0, RSTART + 8) }
    /<(failure|error)[ >]/ { bad++ }
    END { print tests + 0, bad + 0 }')
  # A test that did not compile, or that crashed, leaves no report.
  [ "$tests" -gt 0 ] || status=1
  [ "$bad" -gt 0 ] || bad=$status
  echo "$((tests > bad ? tests - bad : 0)) passed, $bad failed"
  return $status
}

status=0
start postgres
start mariadb
for part in "$@"; do
  echo "recipes: $part"
  "test_$part" || status=1
done
exit $status
