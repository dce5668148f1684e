#!/bin/sh
# Usage: test_mps.sh CARMA SOURCE BUILD [VERSION]
# Jobs under MPS with domains of carma's own on a virtual node, whose control program speaks the protocol VERSION (2): they
# come up when jobs need them, survive the daemon, are adopted, fault and recover, and go when nobody needs them.
# shellcheck source-path=SCRIPTDIR disable=SC1091
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/node.sh"
cd "$T" || exit 99
start_node a100x4-40g 100
ln -s "$BUILD/src/vnode/nvidia-cuda-mps-control" "$PREFIX/lib/carma/vnode"
CONTROL=$PREFIX/lib/carma/vnode/nvidia-cuda-mps-control
CUDA_MPS_PROTOCOL_VERSION=${4-2}
export CUDA_MPS_PROTOCOL_VERSION
DOMAINS=$T/mps

# start ARGUMENT...: with domains of carma's own.
start() {
    start_daemon --set policy=first-fit --set memory_view=monitor --set memory_floor=1G --set settle=0s \
        --set mps_pipe_directory= --set mps_control="$CONTROL" --set share=mps "$@"
}

# The control daemons and servers of this test that run.
controls() {
    for environment in /proc/[0-9]*/environ; do
        pid=${environment#/proc/}
        pid=${pid%/environ}
        case $(cat "/proc/$pid/comm" 2>/dev/null) in
        nvidia-cuda-mps*) grep -qF "CARMA_VNODE=$CARMA_VNODE" "$environment" 2>/dev/null && echo "$pid" ;;
        esac
    done
}

# until_controls COUNT: waits for so many of them, at most 20 s.
until_controls() {
    tries=0
    while count=$(controls | wc -l) && [ "$count" -ne "$1" ]; do
        tries=$((tries + 1))
        if [ "$tries" -gt 200 ]; then
            fail "$count control daemons and servers, not $1: $(controls | xargs -r ps -o pid,args -p)"
            return 1
        fi
        sleep 0.1
    done
}

start
# shellcheck disable=SC2016 # for the job's shell
run submit --parsable -W --mps-threads 50 --mps-memory-limit 12G -- sh -c \
    'echo "$CUDA_MPS_PIPE_DIRECTORY"; echo "$CUDA_MPS_LOG_DIRECTORY"; stat -c %a "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
     echo "$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT $CUDA_VISIBLE_DEVICES"'
expect_status 0
gpu=$(sed -n 5p carma-1.out | cut -d' ' -f3)
printf '%s\n' "$DOMAINS/$gpu/pipe" "$DOMAINS/$gpu/log" 755 755 "50 0=12288M $gpu" | diff - carma-1.out >&2 ||
    fail "the environment of a job under MPS"

until_controls 2 # one control daemon, with its server
[ "$(cat "$DOMAINS/$gpu/gpus")" = "$gpu" ] || fail "a domain does not say whose it is"

# An exclusive job, and one that shares otherwise, are told of no control daemon.
# shellcheck disable=SC2016
run submit --parsable -W --exclusive -- sh -c 'ls "$CUDA_MPS_PIPE_DIRECTORY" | wc -l; echo "$CUDA_MPS_LOG_DIRECTORY"'
[ "$(cat carma-2.out)" = 0 ] || fail "an exclusive job has: $(cat carma-2.out)"

# Two jobs on one GPU are clients of one server; the daemon dies, and the next finds them and their domain.
control() { # WORD... in either language: server list, client list
    case $CUDA_MPS_PROTOCOL_VERSION in
    3) CUDA_MPS_PIPE_DIRECTORY=$DOMAINS/$gpu/pipe "$CONTROL" "$1" list $2 ;;
    *) echo ps | CUDA_MPS_PIPE_DIRECTORY=$DOMAINS/$gpu/pipe "$CONTROL" ;;
    esac
}
until_clients() {
    tries=0
    while count=$(control client --all | sed 1d | wc -l) && [ "$count" -ne "$1" ]; do
        tries=$((tries + 1))
        [ "$tries" -le 100 ] || { fail "$count clients of $gpu, not $1: $(control client --all)"; return 1; }
        sleep 0.1
    done
}
stop_daemon
[ "$daemon_status" -eq 0 ] || fail "carmad ended with status $daemon_status"
until_controls 0 # no job uses one
start
run submit --parsable -G 3 --exclusive -- sleep 300 # so that the others have one GPU
until_field 3 state RUNNING
run submit --parsable -- "$TRAIN" --memory 4G --sm-activity 0.3 --seconds 6000
until_field 4 placements.0.observed_bytes $((4 << 30))
run submit --parsable -- "$TRAIN" --memory 4G --sm-activity 0.3 --seconds 6000
until_field 5 placements.0.observed_bytes $((4 << 30))
expect_field 5 placements.0.index "$(field 4 placements.0.index)"
gpu=$(field 4 placements.0.uuid)
until_clients 2
before=$(cat "$DOMAINS/$gpu/pipe/nvidia-cuda-mps-control.pid")
stop_daemon KILL
start
until_clients 2
[ "$(cat "$DOMAINS/$gpu/pipe/nvidia-cuda-mps-control.pid")" = "$before" ] || fail "the domain was not adopted"

# A client's fault takes the other with it: both fail, the GPU is closed until the server serves again, then open.
run submit --parsable -- "$TRAIN" --memory 2G --sm-activity 0.3 --seconds 6000 --fail illegal-access
until_field 6 state FAILED
tries=0
until grep -q 'it serves again\|it was stopped' "$T/daemon.log"; do
    tries=$((tries + 1))
    [ "$tries" -le 200 ] || { fail "the domain does not serve again"; break; }
    sleep 0.1
done
grep -q "MPS on $gpu: .*FAULT" "$T/daemon.log" || fail "no word of the fault"
[ "$(grep -c "MPS on $gpu: .*FAULT" "$T/daemon.log")" -eq 1 ] || fail "the fault was told more than once"
expect_field 6 exit_cause failed # who caused it
for job in 4 5; do
    until_field $job launches 2 # who was taken along runs again
    expect_field $job exit_cause mps_fault
done
run cancel 4 5
run wait 4 5

# The GPU takes jobs again. One that is cancelled leaves its server before it is killed.
run submit --parsable -- "$TRAIN" --memory 2G --sm-activity 0.3 --seconds 6000
until_field 7 state RUNNING
expect_field 7 placements.0.uuid "$gpu"
until_clients 1
run cancel 7
run wait 7
expect_field 7 state CANCELLED
grep -q 'the MPS client has been terminated by the server' carma-7.out || fail "job 7 was killed with work outstanding"
run cancel 3
run wait 3

# A job on several GPUs has one server for all of them; another on one of these joins it.
run submit --parsable --exclusive -- sleep 300
run submit --parsable -G 3 -- "$TRAIN" --gpus 3 --memory 4G --sm-activity 0.3 --seconds 6000
until_field 9 placements.2.observed_bytes $((4 << 30))
set -- "$DOMAINS"/set-*
[ "$(tr ',' ' ' <"$1/gpus" | wc -w)" -eq 3 ] || fail "the domain of job 9 is for $(cat "$1/gpus")"
for job in 10 11; do
    # shellcheck disable=SC2016
    run submit --parsable --gpu-memory 30G -- sh -c 'echo "$CUDA_MPS_PIPE_DIRECTORY"; exec "$@"' sh "$TRAIN" --memory 1G \
        --sm-activity 0.3 --seconds 6000
    until_field $job placements.0.observed_bytes $((1 << 30))
done
joined=0
for job in 10 11; do
    if grep -qF "$(field $job placements.0.uuid)" "$1/gpus"; then
        joined=$((joined + 1))
        wanted=$1/pipe
    else
        wanted=$DOMAINS/$(field $job placements.0.uuid)/pipe
    fi
    [ "$(head -1 carma-$job.out)" = "$wanted" ] || fail "job $job uses $(head -1 carma-$job.out), not $wanted"
done
[ "$joined" -ge 1 ] || fail "no job was placed beside job 9"
gpu=${1##*/}
until_clients $((1 + joined))

# One that does not come through MPS, though it should, is told of.
run submit --parsable --gpu-memory 1G -- env CUDA_MPS_PIPE_DIRECTORY=/nowhere "$TRAIN" --memory 1G --sm-activity 0.1 \
    --seconds 60000
until_field 12 placements.0.observed_bytes $((1 << 30))
tries=0
until field 12 message | grep -q '^MPS requested but not attached: '; do
    tries=$((tries + 1))
    [ "$tries" -le 250 ] || { fail "job 12 is not told of: $(field 12 message)"; break; }
    sleep 0.1
done
[ "$(grep -c 'MPS requested but not attached' "$T/daemon.log")" -eq 1 ] || fail "jobs that are not attached: $(cat "$T/daemon.log")"
expect_field 9 message None
run cancel 8 9 10 11 12
run wait 8 9 10 11 12
stop_daemon
[ "$daemon_status" -eq 0 ] || fail "carmad ended with status $daemon_status"
until_controls 0

# Without the control program nothing is run that asks for MPS, and it is said how to help.
start --set mps_control="$T/no-such-program"
run submit --parsable -W -- true
expect_field 13 state FAILED
field 13 message | grep -qF "there is no MPS control program '$T/no-such-program'" || fail "job 13: $(field 13 message)"
run submit --parsable -W --exclusive -- true
expect_field 14 state COMPLETED
stop_daemon

# A daemon that somebody else runs is used, and left alone; where it is not there, nothing is run.
start --set mps_pipe_directory="$T/theirs"
run submit --parsable -W -- true
field 15 message | grep -qF "no control daemon has its pipe in '$T/theirs'" || fail "job 15: $(field 15 message)"
mkdir "$T/theirs" && mkfifo "$T/theirs/control"
# shellcheck disable=SC2016
run submit --parsable -W -- sh -c 'echo "$CUDA_MPS_PIPE_DIRECTORY"'
[ "$(cat carma-16.out)" = "$T/theirs" ] || fail "job 16 uses $(cat carma-16.out)"
stop_daemon
until_controls 0

# Inside a MIG instance.
CARMA_VNODE=$T/mig-node
STATE=$T/mig-state
start_node a100x2-mig 100
start
run submit --parsable --gpu-memory 1G -- "$TRAIN" --memory 1G --sm-activity 0.1 --seconds 6000
until_field 1 placements.0.observed_bytes $((1 << 30))
gpu=$(field 1 placements.0.uuid)
case $gpu in
MIG-*) ;;
*) fail "job 1 is on $gpu" ;;
esac
until_clients 1
run cancel 1
run wait 1
stop_daemon
until_controls 0
finish_node
