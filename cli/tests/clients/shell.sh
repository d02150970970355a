#!/usr/bin/env bash
# redis-cli, curl, and the requests that users of Leaf send with curl.
set -uo pipefail
passed=0 failed=0

# says PATTERN COMMAND...: the whole output matches this regular expression.
says() {
  local pattern=$1 said
  shift
  said=$("$@" 2>&1)
  if [[ $said =~ ^($pattern)$ ]]; then passed=$((passed + 1)); else
    echo "FAILED: $*: it says: $said"
    failed=$((failed + 1))
  fi
}
cli() { redis-cli -h "${CLOSED%:*}" -p "${CLOSED##*:}" "$@"; }
with() { REDISCLI_AUTH=$SECRET cli "$@"; }
open() { redis-cli -h "${OPEN%:*}" -p "${OPEN##*:}" "$@"; }
number='[1-9][0-9]*'
id='[1-9][0-9]{15,18}'
line=$'\n'
parts='.*1541815603606036480.*2022-06-28T16:07:40.105Z.*378.*'

for run in open with; do
  for version in -2 -3; do
    says "$id" $run $version incr snowflake
    says "$number" $run $version incrby orders 10
    says "46116860184[0-9]{8}" $run $version incr large
    says "$id$line$id$line$id" $run $version pf.next snowflake 3
    says "[0-9]{19,20}" $run $version pf.next wide
    says "$number" $run $version pf.seq inbox alice
    says "$parts" $run $version pf.decode 1541815603606036480
    says "ERR unknown_generator: .*" $run $version incr other
    for n in 0 -1 1152921504606846976; do
      says "ERR invalid_option: n is $n; it takes .*" $run $version incrby orders $n
      says "ERR invalid_option: n is $n; it takes .*" $run $version pf.next orders $n
    done
    says "\[$number,$number\]" $run $version --json pf.next orders 2
  done
done
says "AUTH failed: WRONGPASS .*NOAUTH Authentication required\." cli -a wrong --no-auth-warning incr orders
says "NOAUTH Authentication required\." cli incr orders
says "HELLO 3 failed: NOAUTH .*NOAUTH Authentication required\." cli -3 incr orders
says "$number" cli -3 --user anybody --pass "$SECRET" --no-auth-warning incr orders
# Commands line by line, as in a terminal, and all at once.
lines() { printf 'incr orders\nincr other\nhello 3\nping\n' | with; }
says "$number${line}ERR unknown_generator.*proto.*PONG" lines
# At a terminal, redis-cli first asks for the commands (COMMAND DOCS), and discards anything typed
# before the prompt, so everything is typed repeatedly until it has taken effect.
typed() {
  local log
  log=$(mktemp)
  {
    until grep -q '(integer)' "$log" && grep -q unknown_generator "$log"; do
      for keys in 'incr orders' 'incr other'; do printf '%s\r' "$keys" && sleep 0.2; done
    done
    while printf 'quit\r'; do sleep 0.2; done
  } | timeout 60 script -qefc "stty cols 80; redis-cli -h ${OPEN%:*} -p ${OPEN##*:}" "$log" | tr '\r' ' '
  rm -f "$log"
}
says ".*(\(integer\) [1-9].*ERR unknown_generator|ERR unknown_generator.*\(integer\) [1-9]).*" typed
many() { for _ in {1..2000}; do printf '*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n'; done | with --pipe; }
says ".*errors: 0, replies: 2000" many

http() { curl -sS "$@"; }
bearer=(-H "Authorization: Bearer $SECRET")
for of in OPEN CLOSED; do
  host=${of}_HTTP url=http://${!of}
  url=http://${!host}
  [ $of = OPEN ] && header=() || header=("${bearer[@]}")
  ask() { http "${header[@]}" "$@"; }
  says "\{\"ids\":\[\"$id\"\]\}" ask "$url/v1/ids/snowflake"
  says "\{\"ids\":\[\"$id\",\"$id\"\]\}" ask "$url/v1/ids/snowflake?n=2"
  says "$id$line$id" ask -H 'Accept: text/plain' "$url/v1/ids/snowflake?n=2"
  says "$number$line$number" ask "$url/v1/ids/orders?n=2&format=text"
  says "24 application/octet-stream" ask -o /dev/null -w '%{size_download} %{content_type}' "$url/v1/ids/orders?n=3&format=bytes"
  says "\{\"ids\":\[\"$number\"\]\}" ask -G --data-urlencode "key=ü &" "$url/v1/ids/inbox"
  says "\{\"id\":\"1541815603606036480\",\"time\":\"2022-06-28T16:07:40.105Z\",.*" ask "$url/v1/decode/1541815603606036480"
  for n in 0 -1 1152921504606846976; do
    says "\{\"error\":\"invalid_option\",\"message\":\"n is $n; it takes .*400" ask -w '%{http_code}' "$url/v1/ids/orders?n=$n"
  done
  says "\{\"error\":\"unknown_generator\",.*404" ask -w '%{http_code}' "$url/v1/ids/other"
  # As users of Leaf request it: the number alone, without a line break.
  says "$id 200" ask -w ' %{http_code}' "$url/api/snowflake/get/leaf-test"
  says "$number 200" ask -w ' %{http_code}' "$url/api/segment/get/orders"
  # One connection for all requests.
  says "10" ask -o /dev/null -w '%{num_connects}' "$url/v1/ids/orders" -o /dev/null "$url/v1/ids/orders"
  says "ready" ask "$url/readyz"
done
url=http://$CLOSED_HTTP
for token in "" "Bearer wrong" "Bearer ${SECRET}x" "Basic $SECRET"; do
  says "\{\"error\":\"unauthorized\",.*401" http -w '%{http_code}' -H "Authorization: $token" "$url/v1/ids/orders"
  says "\{\"error\":\"unauthorized\",.*401" http -w '%{http_code}' -H "Authorization: $token" "$url/api/segment/get/orders"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
