#!/bin/sh
# Usage: test_full.sh CARMA SOURCE BUILD
# A store that may not grow: new jobs are refused, running ones go on, and requests made meanwhile are done after.
# shellcheck source-path=SCRIPTDIR disable=SC1091
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/node.sh"
cd "$T" || exit 99
start_node a100x4-40g 600
limit=$(ulimit -S -f)
ulimit -S -f 400 # blocks of 512 bytes (some shells: of 1024)
start_daemon --set settle=0s
ulimit -S -f "$limit"

run submit --parsable -- "$TRAIN" --memory 2G --seconds 1800
expect_output 1
run submit --parsable --hold -- true
until_field 1 state RUNNING
argument=$(printf '%04000d' 0)
accepted=2
while [ $accepted -lt 200 ]; do
    run submit --parsable --hold -- true "$argument"
    [ "$status" -eq 0 ] || break
    accepted=$((accepted + 1))
done
expect_status 1
grep -q '^carma: cannot store .*store\.db: .*try again later$' "$T/err" || fail "$said: $(cat "$T/err")"
expect_error 1 "it takes effect once that works" release 2
expect_error 1 "try again later" submit -- true
kill -0 "$daemon" || fail "carmad has ended: $(cat "$T/daemon.log")"

# Running jobs do not notice, and their end is not lost.
tries=0
until grep -q 'done' carma-1.out || [ $tries -gt 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
python3 -c 'import resource, sys
hard = resource.prlimit(int(sys.argv[1]), resource.RLIMIT_FSIZE)[1]
resource.prlimit(int(sys.argv[1]), resource.RLIMIT_FSIZE, (hard, hard))' "$daemon"
run wait 1,2
expect_status 0
expect_field 1 attempts 1

# Refused jobs have not come back.
run submit --parsable -W -- true
expect_status 0
"$CARMA" queue --json | python3 -c 'import json, sys
held = [job["id"] for job in json.load(sys.stdin)["jobs"]]
assert held == list(range(3, int(sys.argv[1]) + 1)), held' "$accepted" || fail "not the jobs that were accepted"
stop_daemon
finish_node
