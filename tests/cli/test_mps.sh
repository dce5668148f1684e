#!/bin/sh
# Jobs under MPS with domains of carma's own on a virtual node. Each user has one on all GPUs. It comes up when jobs need it, survives the daemon, is adopted, faults and
# recovers, and goes when nobody needs it.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 100
. "$SOURCE/tests/cli/mps.sh"

start
run submit --parsable -W --mps-threads 50 --mps-memory-limit 12G -- sh -c \
    'echo "$CUDA_MPS_PIPE_DIRECTORY"; echo "$CUDA_MPS_LOG_DIRECTORY"; stat -c %a "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
     echo "$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT $CUDA_VISIBLE_DEVICES"'
expect_status 0
gpu=$(sed -n 5p carma-1.out | cut -d' ' -f3)
domain=$(cd "$DOMAINS" && echo uid-*)
printf '%s\n' "$DOMAINS/$domain/pipe" "$DOMAINS/$domain/log" 755 755 "50 0=12288M $gpu" | diff - carma-1.out >&2 ||
    fail "the environment of a job under MPS"

until_controls 2 # one control daemon, with its server
expr "$domain" : "uid-$(id -u)-[0-9a-f]\{16\}\$" >"$T/said" || fail "the domain is called $domain"
"$CARMA" gpus --json | python3 -c 'import json, sys
print(",".join(sorted(gpu["uuid"] for gpu in json.load(sys.stdin)["gpus"])), end="")' | cmp - "$DOMAINS/$domain/gpus" ||
    fail "the domain is for $(cat "$DOMAINS/$domain/gpus")"

# An exclusive job, and one that shares otherwise, are told of no control daemon.
run submit --parsable -W --exclusive -- sh -c 'ls "$CUDA_MPS_PIPE_DIRECTORY" | wc -l; echo "$CUDA_MPS_LOG_DIRECTORY"'
[ "$(cat carma-2.out)" = 0 ] || fail "an exclusive job has: $(cat carma-2.out)"

# Two jobs on one GPU are clients of one server; the daemon dies, and the next finds them and their domain.
end_daemon
until_controls 0 # no job uses one
start
runs 3 -G 2 --exclusive -- sleep 100000
run submit --parsable -- "$TRAIN" --memory 4G --sm-activity 0.3 --seconds 1000000
until_field 4 placements.0.observed_bytes $((4 << 30))
run submit --parsable -- sh -c 'echo $$; exec "$@"' sh "$TRAIN" --memory 4G --sm-activity 0.3 --seconds 1000000
until_field 5 placements.0.observed_bytes $((4 << 30))
run submit --parsable -- "$TRAIN" --memory 4G --sm-activity 0.3 --seconds 1000000
until_field 6 placements.0.observed_bytes $((4 << 30))
expect_field 6 placements.0.index "$(field 4 placements.0.index)"
"$CARMA" gpus --json | python3 -c 'import json, sys
gpu = json.load(sys.stdin)["gpus"][int(sys.argv[1])]
assert gpu["free_bytes"] <= gpu["total_bytes"] - (8 << 30), gpu' "$(field 4 placements.0.index)" ||
    fail "memory that two jobs hold is shown as free, while nothing waits"
gpu=$(field 4 placements.0.uuid)
[ "$(field 5 placements.0.uuid)" != "$gpu" ] || fail "job 5 is on $gpu, too"
until_clients 3
until_controls 2
before=$(cat "$DOMAINS/$domain/pipe/nvidia-cuda-mps-control.pid")
stop_daemon KILL

# A daemon that knows the GPUs and cannot start, as it cannot listen there, leaves the domains alone; the next takes them up.
timeout 60 "$PREFIX/bin/carmad" --state "$STATE" --socket "$STATE" --set mps_control="$CONTROL" 2>second.err
[ $? = 1 ] || fail "a daemon that cannot listen: $(cat second.err)"
start
until_clients 3
[ "$(cat "$DOMAINS/$domain/pipe/nvidia-cuda-mps-control.pid")" = "$before" ] || fail "the domain was stopped, or not adopted"

# A client's fault takes the other of its GPU with it: both fail; nobody starts until the server is back. Others go on.
run submit --parsable -- "$TRAIN" --memory 2G --sm-activity 0.3 --seconds 1000000 --fail illegal-access
until_field 7 state FAILED
wait_for 'grep -q "it serves again\|it was stopped" "$T/daemon.log"' || fail "the domain does not serve again"
grep -q "MPS of user $(id -u): .*FAULT" "$T/daemon.log" || fail "no word of the fault"
[ "$(grep -c "MPS of user $(id -u): .*FAULT" "$T/daemon.log")" -eq 1 ] || fail "the fault was told more than once"
expect_field 7 exit_cause failed # the cause
for job in 4 6; do
    until_field $job attempts 2 # the victim runs again
    expect_field $job exit_cause mps_fault crashes 0
done
expect_field 5 attempts 1 state RUNNING
cancel 4 6
until_clients 1
sleep 6 # until it is seen among the clients of the server that serves again
kill "$(head -1 carma-5.out)"
until_field 5 state FAILED
expect_field 5 exit_cause signalled

# The GPU takes jobs again. One that is cancelled leaves its server before it is killed.
runs 8 -- "$TRAIN" --memory 2G --sm-activity 0.3 --seconds 1000000
expect_field 8 placements.0.uuid "$gpu"
until_clients 1
cancel 8
expect_field 8 state CANCELLED
grep -q 'the MPS client has been terminated by the server' carma-8.out || fail "job 8 was killed with work outstanding"

# So does one at its time limit.
run submit --parsable --time 10:00 -- "$TRAIN" --memory 2G --sm-activity 0.3 --seconds 6000
until_clients 1
until_field 9 exit_cause timeout
grep -q 'the MPS client has been terminated by the server' carma-9.out || fail "job 9 was killed with work outstanding"
# The server's log names the cause of a fault, where its victim tells of it and it does not.
run submit --parsable -- sh -c "echo \$\$; exec $TRAIN --memory 2G --sm-activity 0.3 --seconds 1000000 2>/dev/null"
run submit --parsable -- "$TRAIN" --memory 2G --sm-activity 0.3 --seconds 1000000 # on the other GPU
for job in 10 11; do until_field "$job" placements.0.observed_bytes $((2 << 30)); done
run submit --parsable -- sh -c "$TRAIN --memory 2G --sm-activity 0.3 --seconds 1000000
    echo 'CUDA error: unspecified launch failure' >&2; exit 1"
until_field 12 placements.0.observed_bytes $((2 << 30))
expect_field 12 placements.0.uuid "$(field 10 placements.0.uuid)"
"$PREFIX/bin/carma-vnode" inject mps-fault --pid "$(head -1 carma-10.out)" >"$T/said"
until_field 10 state FAILED
expect_field 10 attempts 1
until_field 12 attempts 2
expect_field 12 exit_cause mps_fault
cancel 11 12

# Both say the same, and the server was never seen to have failed: the second is a victim once, and then its own.
runs 13 --exclusive -- sleep 100000 # one GPU is left
after() { # FILE: a job that fails once the file is there
    run submit --parsable -- sh -c "until [ -e '$T/$1' ]; do sleep 0.05; done
        echo 'RuntimeError: CUDA error: unspecified launch failure'; exit 1"
}
after first-ended
after both-run
until_field 14 state RUNNING
until_field 15 state RUNNING
touch both-run
run wait 15
touch first-ended
run wait 14
expect_field 15 attempts 1 exit_cause failed
expect_field 14 attempts 2 exit_cause failed
cancel 3 13
end_daemon
until_controls 0

# A carmad that is killed while it tries the control program leaves its trial's daemon to the next one.
mkdir trials
printf '#!/bin/sh\n"%s" "$@"\n[ ! -e "%s/slow" ] || { touch "%s/tried"; sleep 60; }\n' "$CONTROL" "$T" "$T" >slow-control
chmod 755 slow-control
touch slow
for _ in 1 2 3 4; do
    TMPDIR=$T/trials "$PREFIX/bin/carmad" --state "$STATE" --socket "$CARMA_SOCKET" --set share=auto \
        --set mps_control="$T/slow-control" 2>>"$T/daemon.log" &
    daemon=$!
    wait_for '[ -e tried ] && [ -e "$STATE/mps-trial" ]' # the trial's daemon is on its own
    stop_daemon KILL
    until_controls 1
    rm tried
done
rm slow
TMPDIR=$T/trials SHARE=auto start --set mps_control="$T/slow-control"
until_controls 0
[ -z "$(ls trials)" ] && [ ! -e "$STATE/mps-trial" ] || fail "trials are left: $(ls trials)"
stop_daemon

# A control daemon that does not start keeps its jobs waiting, which is said, and fails none.
printf '#!/bin/sh\n[ ! -e "%s/broken" ] || [ "$1" != -d ] || exit 1\nexec "%s" "$@"\n' "$T" "$CONTROL" >late-control
chmod 755 late-control
start --set mps_control="$T/late-control"
touch broken
waits=$(submitted --gpu-memory 2G -- "$TRAIN" --memory 1G --seconds 20)
wait_for '"$CARMA" queue | grep -q "waits for its MPS server: .* ended with status 1"' || fail "the queue says: $("$CARMA" queue)"
shows "job $waits is being started: it waits for its MPS server: " explain "$waits"
rm broken
expect_ok wait "$waits"
expect_field "$waits" attempts 1 message null
stop_daemon
