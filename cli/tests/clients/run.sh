#!/usr/bin/env bash
# Starts two servers, one of them with a token, and uses them from real clients. The last line of each program beside
# this file is "N passed, N failed". If names are given, such as redis_py, runs only those clients.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
root=$(cd ../../.. && pwd)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
made=$CARGO_TARGET_DIR/clients
mkdir -p "$made"
"$root/tools/need" redis-server redis-server redis-cli redis-tools script bsdutils curl curl haproxy haproxy \
  php php-cli '/usr/lib/php/*/redis.so' php-redis node nodejs npm npm chromium chromium ruby ruby \
  /usr/share/doc/ruby-redis ruby-redis mvn maven javac default-jdk-headless elixir elixir mcs mono-mcs \
  mono mono-runtime /usr/lib/mono/4.5/System.Net.Http.dll libmono-system-net-http4.0-cil || exit

work=$(mktemp -d)
pids=()
end() {
  kill "${pids[@]}" 2>/dev/null
  wait
  rm -rf "$work"
}
trap end EXIT

## The service, with the inspector in it, and the clients.
prepare() { "$@" >"$work/out" 2>&1 || { cat "$work/out"; echo "FAILED: $*"; exit 1; }; }
prepare env POLYFLAKE_INSPECTOR="$CARGO_TARGET_DIR/inspector/site" cargo build -q --locked \
  --manifest-path "$root/Cargo.toml" -p polyflake-cli
# Another build may replace the program.
polyflake=$work/polyflake
cp "$CARGO_TARGET_DIR/debug/polyflake" "$polyflake"
prepare python3 -m venv "$made/python"
prepare "$made/python/bin/pip" install -q --disable-pip-version-check -r requirements.txt
prepare "$made/python/bin/pip" install -q --disable-pip-version-check --upgrade --target "$made/hiredis" \
  -r requirements-hiredis.txt
prepare npm ci --silent --no-audit --no-fund

# server NAME ARGUMENTS...: starts a server. Sets NAME to its address for Redis clients, and NAME_HTTP for HTTP.
server() {
  local name=$1 log=$work/$1.log
  shift
  : >"$log"
  "$polyflake" serve --config "$work/config.toml" --log json --admin none "$@" 2>"$log" &
  pids+=($!)
  until grep -q '"message":"ready"' "$log"; do
    kill -0 "${pids[-1]}" || { cat "$log"; exit 1; }
    sleep 0.1
  done
  address() { sed -n 's/.*"listening","protocol":"'"$1"'","address":"\([^"]*\)".*/\1/p' "$log"; }
  export "$name=$(address resp)" "${name}_HTTP=$(address http)"
}

cat >"$work/config.toml" <<'TOML'
http = "127.0.0.1:0"
resp = "127.0.0.1:0"

[generators.orders]
kind = "counter"

# Its numbers are too large for a double to hold exactly.
[generators.large]
kind = "counter"
start = 4611686018427387905

[generators.inbox]
kind = "sequences"

[generators.uuid]
kind = "uuid"
version = 7

# Its IDs have 64 bits.
[generators.wide]
kind = "snowflake"
layout = "timestamp:40|node:10|sequence:14@946684800000/1ms"
node = 1
TOML
export SECRET=not-for-everybody
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
redis-server --port "$port" --bind 127.0.0.1 --dir "$work" --save "" --appendonly yes >"$work/redis.log" &
pids+=($!)
until redis-cli -p "$port" ping >/dev/null 2>&1; do sleep 0.1; done
server OPEN --lease "sqlite://$work/leases.db?init=always"
POLYFLAKE_TOKEN=$SECRET server CLOSED --lease "redis://127.0.0.1:$port/0?init=always"

passed=0 failed=0
# clients NAME COMMAND...
clients() {
  local name=$1 status=0 numbers good bad
  shift
  [ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " = *" $name "* ]] || return 0
  timeout 600 "$@" >"$work/out" 2>&1 || status=$?
  numbers=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/\1 \2/p' "$work/out" | tail -n 1)
  read -r good bad <<<"${numbers:-0 0}"
  if [ "$status" -ne 0 ] || [ -z "$numbers" ]; then
    [ "$bad" -gt 0 ] || bad=1
    cat "$work/out"
  fi
  echo "$name: $good passed, $bad failed"
  passed=$((passed + good)) failed=$((failed + bad))
}
wanted=("$@")
python=$made/python/bin/python
node=(node --test --test-reporter="$root/bindings-node/tests/reporter.js")

# With its own parser, and with the faster one that it uses if installed.
clients redis_py "$python" redis_py.py
clients redis_py_hiredis env PYTHONPATH="$made/hiredis" "$python" redis_py.py
clients ioredis "${node[@]}" ioredis.mjs
# An older Go must not fetch a newer one.
export GOTOOLCHAIN=local GOFLAGS=-mod=readonly
if (cd goredis && go list -m) >/dev/null 2>&1; then
  rm -f "$made/goredis"
  (cd goredis && test -z "$(gofmt -l .)" && go vet . && go build -o "$made/goredis" .)
  clients goredis "$made/goredis"
else
  echo "skipped: go-redis: there is no Go, or one that is older than goredis/go.mod says"
fi
clients phpredis php phpredis.php
clients shell ./shell.sh
clients http_python "$python" http_python.py
clients http_node "${node[@]}" http_node.mjs
clients inspector "${node[@]}" inspector.mjs
clients openapi "$python" openapi.py
clients languages python3 languages.py
clients balancer env POLYFLAKE="$polyflake" "$python" balancer.py

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
