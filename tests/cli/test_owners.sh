#!/bin/sh
# The owners of processes on a virtual node, and the message where the driver hides them.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/faults.sh"
start_node h200x1 100
start_daemon --set policy=round-robin --set memory_view=monitor --set share=time-slice --set settle=0s --set decide_period=0s

# Owners: a grandchild in a session of its own is the job's; a process outside all jobs is unmanaged.
family=$(submitted -- "$TRAIN" --memory 7G --seconds 3000 --fail double-fork --fail-at 100000)
until_field "$family" placements.0.observed_bytes $((7 << 30))
expect_gpu() {
    [ "$(gpu 0 "$1")" = "$2" ] || fail "GPU 0: $1 is '$(gpu 0 "$1")', not '$2'"
}
expect_gpu unmanaged '[]'
CUDA_VISIBLE_DEVICES=0 "$TRAIN" --memory 3G --sm-activity 0.2 --seconds 30000 >/dev/null &
foreign=$!
until_gpu 0 unmanaged_bytes $((3 << 30))
expect_gpu unmanaged.0.pid "$foreign"
expect_gpu unmanaged.0.command carma-train
expect_gpu unmanaged.0.user "$(id -un)"
expect_gpu unmanaged.0.used_bytes $((3 << 30))
expect_gpu unmanaged_why None
shows "^GPU 0: process $foreign (carma-train of $(id -un)) holds 3.0 GiB and is unmanaged$" gpus

# Hidden owners are not guessed, and the reason is given.
"$VNODE" inject hide-memory
until_gpu 0 unmanaged_bytes None
expect_gpu unmanaged_why "the driver does not say how much memory the processes of job $family hold"
"$VNODE" clear
until_gpu 0 unmanaged_bytes $((3 << 30))
"$VNODE" inject hide-processes
until_gpu 0 unmanaged_why 'memory is in use, but the driver lists no process'
expect_gpu unmanaged_bytes None
run submit --parsable --exclusive -- true
shows '(memory counted by reservations: memory is in use, but the driver lists no process)' explain "$(cat "$T/out")"
run cancel @
"$VNODE" clear
until_gpu 0 unmanaged_bytes $((3 << 30))
kill "$foreign"
wait "$foreign" 2>/dev/null
until_gpu 0 unmanaged_bytes 0
cancel "$family"
