#!/bin/sh
# Usage: test_held_memory.sh CARMA SOURCE BUILD HELD_MEMORY
# A process of which nobody can read the command line or the environment, as the lock of its memory is held for ever,
# holds up nobody: neither carmad, at its start or later, nor the end of a lost job.
held_memory=$(realpath "$4") || exit 99
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/faults.sh"
at_end='let_go; end_node' # before others look at what is left

let_go() {
    # shellcheck disable=SC2046 # a list of pids
    kill -KILL $(cat ./*.held 2>/dev/null) 2>/dev/null
}

until_held() { # NAME
    wait_for '[ -e "$1.held" ] || [ -e "$1.none" ]' "$@" || { fail "$1: neither held nor not"; exit 1; }
}

# named WHEN: carma gpus tells whose memory it is.
named() {
    shows "^GPU 3: process $holder (carma-train of $(id -un)) holds 3.0 GiB and is unmanaged$" gpus
}

export CARMA_CGROUP_ROOT="$T/none" # the last job's processes are looked for
start_all a100x4-40g 100 --set settle=0s
HELD_MEMORY=$T/alone LD_PRELOAD=$held_memory CUDA_VISIBLE_DEVICES=3 "$TRAIN" --memory 3G --seconds 100000 >/dev/null &
holder=$!
until_held alone
if [ -e alone.none ]; then
    kill -KILL "$holder"
    skip "this user cannot mount a file system of its own (FUSE)"
fi
until_gpu 3 unmanaged_bytes $((3 << 30))
named "beside it"
restart_daemon --set settle=0s
until_gpu 3 unmanaged_bytes $((3 << 30))
named "started beside it"
# Where MPS is tried at the start, what an earlier trial has left is looked for.
stop_daemon
began=$(date +%s)
start_daemon --set settle=0s --set share=auto --set mps_pipe_directory= --set mps_control="$BUILD/src/vnode/nvidia-cuda-mps-control"
[ $(($(date +%s) - began)) -lt 9 ] || fail "carmad begins only after $(($(date +%s) - began)) s"

# The shepherd of a job with such a process dies: what else has left its session goes.
run submit --parsable -- sh -c 'HELD_MEMORY=$1 LD_PRELOAD=$2 setsid "$0" --memory 1G --seconds 100000 &
    setsid sh -c "echo \$\$ >stray; exec sleep 1000" & exec sleep 1000' "$TRAIN" "$T/job" "$held_memory"
until_held job
until_field 1 state RUNNING
kill -KILL "$(sed -n 's/^shepherd \([0-9]*\).*/\1/p' "$STATE/runs/1-1-1/status")"
until_field 1 state LOST
! kill -0 "$(cat stray)" 2>/dev/null || fail "the job's process outlives it"
named "after a lost job"
