#!/bin/sh
# carma gpus --watch goes on when the daemon is away for a while. Usage: test_watch.sh CARMA SOURCE
. "$(dirname "$0")/lib.sh"
gpu() {
    printf '[200, {"gpus": [{"index": 0, "name": "Virtual", "kind": "whole", "total_bytes": 1073741824, "jobs": [%s]}]}]' "$1"
}
printf '{"GET /v1/gpus": [%s, [500, "close"], [500, "close"], [503, {"error": "not now"}], %s]}' "$(gpu 7)" "$(gpu 8)" >"$T/answers.json"
start_fake "$T/answers.json"
# On a pipe: blocks with an empty line in between. Two times two lines, and one more.
"$CARMA" gpus --watch=0.01 2>"$T/err" | head -n 5 >"$T/out"
[ "$(sed -n 2p "$T/out" | awk '{ print $NF }')" = 7 ] && [ "$(sed -n 5p "$T/out" | awk '{ print $NF }')" = 8 ] ||
    fail "not job 7 and then job 8: $(cat "$T/out")"
[ -z "$(sed -n 3p "$T/out")" ] || fail "no empty line between blocks: $(cat "$T/out")"
grep -q 'not now' "$T/err" || fail "the error meanwhile was not told: $(cat "$T/err")"
[ "$(wc -l <"$T/err")" -ge 2 ] || fail "a lost answer was not said: $(cat "$T/err")"

# One that never was there is not waited for.
expect_error 1 "$T/nobody" --socket "$T/nobody" gpus --watch=0.01
expect_error 2 "not a number of seconds" gpus --watch=often
expect_error 2 "not a number of seconds" gpus --watch=0
