#!/usr/bin/env bash
# Starts two servers, one of them with a token, and uses them from real clients. Each program beside this file ends with
# "N passed, N failed". With names, such as redis_py, it runs only these.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
root=$(cd ../../.. && pwd)
built=${CARGO_TARGET_DIR:-$root/target}
polyflake=${POLYFLAKE:-$built/debug/polyflake}

work=$(mktemp -d)
pids=()
end() {
  kill "${pids[@]}" 2>/dev/null
  wait
  rm -rf "$work"
}
trap end EXIT

# server NAME ARGUMENTS...: starts one, and sets NAME to its address for clients of Redis, and NAME_HTTP.
server() {
  local name=$1 log=$work/$1.log
  shift
  : >"$log"
  "$polyflake" serve --config "$work/config.toml" --log json "$@" 2>"$log" &
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

# Beyond what a double holds.
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
server OPEN --lease "sqlite://$work/leases.db?init=yes"
POLYFLAKE_TOKEN=$SECRET server CLOSED --lease "redis://127.0.0.1:$port/0?init=yes"

passed=0 failed=0
# clients NAME COMMAND...
clients() {
  local name=$1 status=0 numbers good bad
  shift
  [ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " = *" $name "* ]] || return 0
  timeout 120 "$@" >"$work/out" 2>&1 || status=$?
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
reporter=$root/bindings-node/tests/reporter.js
python=$built/clients/python/bin/python
clients redis_py "$python" redis_py.py
clients redis_py_hiredis env PYTHONPATH="$built/clients/hiredis" "$python" redis_py.py
clients ioredis node --test --test-reporter="$reporter" ioredis.mjs
clients goredis "$built/clients/goredis"
clients phpredis php phpredis.php
clients shell ./shell.sh
clients http_python python3 http_python.py
clients http_node node --test --test-reporter="$reporter" http_node.mjs

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
