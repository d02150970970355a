#!/usr/bin/env bash
# PREFIX=... bindings-c/tests/run.sh: tests the library installed in PREFIX with C programs: vectors, threads,
# misuse, leases, counters, sequences, reloading, the header, sanitizers, the examples and, unless PROFILE is dev,
# valgrind.
set -uo pipefail
: "${PREFIX:?set it to where libpolyflake is installed}"
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
c=$here/c
examples=$here/../examples
readme=$here/../README.md
export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig LD_LIBRARY_PATH=$PREFIX/lib
CC=${CC:-gcc}
CXX=${CXX:-g++}
"$root/tools/need" "$CC" gcc "$CXX" g++ pkg-config pkg-config cmake cmake make make readelf binutils \
  valgrind valgrind redis-server redis-server /usr/include/cjson/cJSON.h libcjson-dev || exit

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strict=(-Wall -Wextra -Werror -pedantic)
c99=(-std=c99 -D_POSIX_C_SOURCE=200809L "${strict[@]}")
read -ra flags < <(pkg-config --cflags --libs polyflake)
read -ra compile_only < <(pkg-config --cflags polyflake)
read -ra static_flags < <(pkg-config --static --cflags --libs polyflake)
# A folder that contains only the archive, so that the linker does not find the shared library instead.
mkdir "$work/archive"
ln -s "$PREFIX/lib/libpolyflake.a" "$work/archive/"

passed=0
failed=0

# check NAME COMMAND ...: runs one test, which passes if the command succeeds; otherwise, its output is shown.
check() {
  local name=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED $name"
    sed 's/^/  /' "$work/log"
  fi
}

# count NAME COMMAND ...: runs a program that must print "N passed, N failed", and adds these numbers to the totals.
count() {
  local name=$1 status numbers
  shift
  "$@" >"$work/log" 2>&1
  status=$?
  numbers=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/log" | tail -n 1)
  read -r program_passed program_failed <<<"${numbers:-0 0}"
  passed=$((passed + program_passed))
  failed=$((failed + program_failed))
  if [ "$status" -ne 0 ] || [ -z "$numbers" ]; then
    [ "$program_failed" -gt 0 ] || failed=$((failed + 1))
    echo "FAILED $name (exit status $status)"
    sed 's/^/  /' "$work/log"
  else
    echo "$name: $(tr '\n' ';' <"$work/log" | sed 's/;$//; s/;/; /g')"
  fi
}

# build OUTPUT SOURCE FLAG ...: builds a test program from the folder c.
build() {
  local output=$1 source=$2
  shift 2
  check "build $output" "$CC" "${c99[@]}" -g "$c/$source.c" "$c/check.c" -o "$work/$output" "$@"
}

## The test programs, under sanitizers, then under valgrind.
libraries() { # the libraries a test program is linked with: reload loads libpolyflake itself
  case $1 in
  vectors) printf '%s\n' "${flags[@]}" -lcjson ;;
  threads | lease | counter | sequences) printf '%s\n' "${flags[@]}" -pthread ;;
  reload) printf '%s\n' "${compile_only[@]}" -ldl ;;
  *) printf '%s\n' "${flags[@]}" ;;
  esac
}
vectors=("$root/tests/vectors.json" "$root/tests/public_ids.json")
sanitize=(-O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all)
memcheck=(valgrind -q --leak-check=full --errors-for-leak-kinds=definite,indirect,possible --error-exitcode=1)
for program in vectors threads misuse lease counter sequences reload; do
  mapfile -t linked < <(libraries $program)
  build "$program-sanitized" $program "${sanitize[@]}" "${linked[@]}"
  build $program $program -O1 "${linked[@]}"
done
export UBSAN_OPTIONS=print_stacktrace=1
count "vectors, sanitized" "$work/vectors-sanitized" "${vectors[@]}"
count "threads, sanitized" "$work/threads-sanitized" 500000
count "misuse, sanitized" "$work/misuse-sanitized"
# A lease stays in memory until the process exits, even if nothing points to it, and would be reported as a leak.
count "leases, sanitized" env ASAN_OPTIONS=detect_leaks=0 "$work/lease-sanitized"
count "counters, sanitized" env ASAN_OPTIONS=detect_leaks=0 "$work/counter-sanitized"
count "sequences, sanitized" env ASAN_OPTIONS=detect_leaks=0 "$work/sequences-sanitized"
cp "$PREFIX/lib/libpolyflake.so" "$work/copy.so"
count "reload, sanitized" "$work/reload-sanitized" libpolyflake.so.0 "$work/copy.so"
# `make test` leaves these to `make test-release`.
if [ "${PROFILE:-}" != dev ]; then
  check "vectors under valgrind" "${memcheck[@]}" "$work/vectors" "${vectors[@]}"
  check "threads under valgrind" "${memcheck[@]}" "$work/threads" 10000
  check "misuse under valgrind" "${memcheck[@]}" "$work/misuse"
  check "leases under valgrind" "${memcheck[@]}" --leak-check=no "$work/lease"
  check "counters under valgrind" "${memcheck[@]}" --leak-check=no "$work/counter"
  check "sequences under valgrind" "${memcheck[@]}" --leak-check=no "$work/sequences"
  check "reload under valgrind" "${memcheck[@]}" "$work/reload" libpolyflake.so.0 "$work/copy.so"
fi
build vectors-archive vectors -O1 "-L$work/archive" "${static_flags[@]}" -lcjson
check "vectors with the static library" env -u LD_LIBRARY_PATH "$work/vectors-archive" "${vectors[@]}"

## The shared library itself.
library=$PREFIX/lib/libpolyflake.so
dynamic() {
  readelf -dW "$library" | grep -E "$1"
}
exports() { # exactly what the header declares
  diff <(nm -D --defined-only "$library" | awk '{ print $3 }' | sort) \
    <(grep -oE '\bpolyflake_[a-z_]+\(' "$PREFIX/include/polyflake.h" | tr -d '(' | sort -u)
}
tested() { # misuse.c calls every function
  local name untested=0
  for name in $(nm -D --defined-only "$library" | awk '{ print $3 }'); do
    grep -qE "\b$name\(" "$c/misuse.c" || { echo "misuse.c does not call $name"; untested=1; }
  done
  return $untested
}
check "the SONAME is libpolyflake.so.0" dynamic 'SONAME.*\[libpolyflake\.so\.0\]'
check "it is never unloaded" dynamic 'FLAGS_1.*NODELETE'
check "it exports what the header declares, and nothing else" exports
check "every function is misused" tested

## The header, included twice, from two units, as C and as C++.
both_units=("$c/header.c" "$c/header_other.c")
header() {
  "$@" "${strict[@]}" "${both_units[@]}" -o "$work/header" "${flags[@]}" && "$work/header"
}
check "the header as C99" header "$CC" -std=c99
check "the header as C++17" header "$CXX" -std=c++17 -x c++
if command -v clang >/dev/null; then
  check "the header as C99, clang" header clang -std=c99
  check "the header as C++17, clang" header clang -std=c++17 -x c++ -Wno-deprecated
else
  echo "skipped: the header with clang, which is not there"
fi

## The examples and the README's programs, built as a user would build them.
says() { # says EXPECTED COMMAND ...: the output must match the file EXPECTED or, without such a file, contain an ID
  local expected=$1
  shift
  "$@" >"$work/said" || return
  if [ -f "$expected" ]; then diff "$expected" "$work/said"; else grep -qE '^[0-9]{19}$' "$work/said"; fi
}
for example in quickstart clock range; do
  source=$examples/$example.c
  expected=$examples/$example.expected
  check "build $example" "$CC" "${c99[@]}" "$source" -o "$work/$example" "${flags[@]}"
  check "$example" says "$expected" "$work/$example"
  check "build $example, archive" "$CC" "${c99[@]}" "$source" -o "$work/$example" "-L$work/archive" "${static_flags[@]}"
  check "$example, archive" says "$expected" env -u LD_LIBRARY_PATH "$work/$example"
  check "build $example, -static" "$CC" "${c99[@]}" -static "$source" -o "$work/$example-static" "${static_flags[@]}"
  check "$example, -static" says "$expected" env -u LD_LIBRARY_PATH "$work/$example-static"
done
check "build quickstart as C++" "$CXX" -std=c++17 "${strict[@]}" -x c++ "$examples/quickstart.c" \
  -o "$work/quickstart-c++" "${flags[@]}"
check "quickstart as C++" says none "$work/quickstart-c++"
for static in OFF ON; do
  check "CMake, static $static: configure" \
    cmake -S "$examples" -B "$work/cmake-$static" -DPOLYFLAKE_STATIC=$static -DCMAKE_C_FLAGS="${strict[*]}"
  check "CMake, static $static: build" cmake --build "$work/cmake-$static"
  for example in quickstart clock range; do
    check "CMake, static $static: $example" says "$examples/$example.expected" "$work/cmake-$static/$example"
  done
done
linked_archive() {
  ! readelf -dW "$work/cmake-ON/quickstart" | grep libpolyflake
}
check "CMake, static ON: needs no libpolyflake.so" linked_archive

awk -v folder="$work" '
  /^```c$/ { n++; inside = 1; next }
  /^```$/ { inside = 0 }
  inside { print > (folder "/readme-" n ".c") }' "$readme"
programs=0
for source in "$work"/readme-*.c; do
  name=$(basename "$source" .c)
  check "build the README's $name" "$CC" "${c99[@]}" "$source" -o "$work/$name" "${flags[@]}"
  check "the README's $name" says none "$work/$name"
  programs=$((programs + 1))
done
check "the README has its two programs" [ "$programs" -eq 2 ]

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
