#!/bin/sh
# Jobs whose shepherd does not answer: carmad ends them itself, by SIGTERM and grace; one started meanwhile goes on so.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/faults.sh"
export CARMA_CGROUP_ROOT="$T/none" # else a job's control group has all of its processes
start_all a100x4-40g 60 --set grace=8s

# job NAME COMMAND: it runs, and its shepherd's pid is in $shepherd.
job() {
    number=$(submitted -o "$1.out" --gpu-memory 2G --time "${3-1-0}" -- sh -c "$2" "$TRAIN")
    until_field "$number" state RUNNING
    wait_for '[ -s "$1.pid" ]' "$1" || fail "$1: no process"
    shepherd=$(sed -n 's/^shepherd \([0-9]*\).*/\1/p' "$STATE/runs/$number-1-1/status")
}

# gone NAME: no process of it is left.
gone() {
    ! kill -0 "$(cat "$1.pid")" 2>/dev/null || fail "$1: process $(cat "$1.pid") is left"
}

{
    job deaf 'trap "" TERM; env -i setsid sh -c "echo \$\$ >deaf.pid; while :; do sleep 1; done" & while :; do sleep 1; done'
    kill -STOP "$shepherd"
    job polite 'trap "sleep 4; echo saved; exit" TERM; echo $$ >polite.pid; while :; do sleep 0.1; done'
    polite=$shepherd
    kill -STOP "$polite"
    job late 'echo $$ >late.pid; exec "$0" --memory 1G --seconds 100000' 5:00
    kill -STOP "$shepherd"
    job killed '"$0" --memory 1G --seconds 100000 & echo $! >killed.pid; wait'
    kill -KILL "$shepherd"
}
setsid sleep 1000 &
stranger=$!
until_field 4 state LOST
gone killed
expect_ok cancel 1 2
again_after_kill --set grace=8s
for number in 1 2; do until_field "$number" state CANCELLED; done
until_field 3 exit_cause timeout
for name in deaf polite late; do gone "$name"; done
grep -qx saved polite.out || fail "a job that heeds SIGTERM said: $(cat polite.out)"
said 1 "job 2: its shepherd $polite is stopped: carmad ends its processes"
said 3 "is stopped: carmad ends its processes"
expect_field 2 message "its shepherd $polite is stopped, so carmad ended its processes"
until_gpu 0 used_bytes "$(gpu 3 used_bytes)"
kill "$stranger" || fail "a stranger was ended"
wait_for '! kill -0 "$1" 2>/dev/null' "$polite" || fail "a shepherd is left"
