#!/bin/sh
# A row of a job that cannot be read, or is missing, sets that job aside. carmad starts, says so with the remedy, and
# the others go on. One that runs is left to end, and is not started again.
. "$(dirname "$0")/node.sh"
start_all a100x4-40g 600

for name in text member gone state elsewhere; do
    run submit --parsable --hold -J "$name" -- touch ran-aside
done
run submit --parsable -J runs -- sh -c 'until [ -e go ]; do sleep 0.05; done; exit 3'
run submit --parsable -J runs-again -- sh -c '[ -e again ] || { touch again; echo "CUDA error: out of memory" >&2; exit 1; }
    until [ -e go ]; do sleep 0.05; done'
run submit --parsable -J early -- true
run submit --parsable --hold -J good -- touch ran-good
until_field 6 state RUNNING
until_field 7 attempts 2
until_field 7 state RUNNING
until_field 8 state COMPLETED

# A snapshot, so that there are rows of states: each of these is submitted, held, released and cancelled.
for i in 1 2 3 4 5 6 7 8; do
    for _ in 1 2 3 4 5 6 7 8; do run submit --parsable --hold -- true; done
    run release "$((8 * i + 2))-$((8 * i + 9))"
    run hold "$((8 * i + 2))-$((8 * i + 9))"
    run cancel "$((8 * i + 2))-$((8 * i + 9))"
done
stop_daemon
sql "UPDATE spec SET body = '{' WHERE job = 1" \
    "UPDATE spec SET body = json_set(body, '\$.colour', 'red') WHERE job = 2" \
    "DELETE FROM spec WHERE job = 3" \
    "UPDATE job SET body = '{}' WHERE job = 4" \
    "UPDATE job SET body = json_set(body, '\$.state', 3) WHERE job = 5" \
    "UPDATE spec SET body = '[]' WHERE job = 6" \
    "DELETE FROM job WHERE job = 7" \
    "UPDATE job SET body = 'x' WHERE job = 8" || fail "nothing was damaged"
expect_error 1 "the submission of job 1 is damaged" admin verify --state "$STATE"
echo "state_directory = $STATE" >carma.conf
run doctor --json --config carma.conf
grep -q "the submission of job 1 is damaged" out || fail "carma doctor does not name it: $(cat out)"

start_daemon
for job in 1 2 3 4 5; do
    expect_field "$job" state CANCELLED
    "$CARMA" show "$job" | grep -q "set aside: .*: submit it again, or restore the store from a backup" ||
        fail "job $job: $("$CARMA" show "$job")"
    [ "$(grep -c "job $job is set aside: " daemon.log)" = 1 ] || fail "the log does not name job $job once: $(cat daemon.log)"
done
grep -q "job 1 is set aside: its submission cannot be read: not JSON" daemon.log || fail "of job 1 not why"
grep -q "job 2 is set aside: its submission cannot be read: .*colour" daemon.log || fail "of job 2 not why"
grep -q "job 3 is set aside: its submission is missing" daemon.log || fail "of job 3 not why"
grep -q "job 4 is set aside: its state cannot be read" daemon.log || fail "of job 4 not why"
grep -q "job 5 is set aside: its stored state does not follow from its records" daemon.log || fail "of job 5 not why"
grep -q "job 8 has ended and is not shown: its state cannot be read" daemon.log || fail "of job 8 not a word"
for job in 6 7; do
    expect_field "$job" state RUNNING
    "$CARMA" show "$job" | grep -q "Note *set aside, and not started again: " || fail "job $job: $("$CARMA" show "$job")"
done
expect_ok queue --all

# Sound jobs go on.
run release 9
until_field 9 state COMPLETED
[ -e ran-good ] || fail "a job that can be read has not run"
touch go
until_field 6 state FAILED
expect_field 6 exit_status 3
until_field 7 state COMPLETED
expect_field 7 attempts 2

# All of it is in the store: the next start says nothing of these jobs.
stop_daemon
: >daemon.log
start_daemon
grep "is set aside" daemon.log && fail "jobs that have ended are set aside again"
expect_field 1 state CANCELLED
expect_field 6 exit_status 3
run submit --parsable -J after -- true
until_field 74 state COMPLETED

# One that runs out of GPU memory comes back, and is not started without its submission.
runs 75 -J oom -- sh -c 'until [ -e go2 ]; do sleep 0.05; done; echo "RuntimeError: CUDA error: out of memory" >&2; exit 1'
stop_daemon
sql "UPDATE spec SET body = 1 WHERE job = 75" || fail "nothing was damaged"
start_daemon
touch go2
until_field 75 state FAILED
expect_field 75 attempts 2
field 75 message | grep -q "its submission cannot be read" || fail "job 75: $(field 75 message)"
[ -e "$STATE/runs/75-2-1" ] && fail "it was launched again"
[ -e ran-aside ] && fail "a job was started that had been set aside"
stop_daemon
