#!/bin/sh
# Usage: test_failures.sh CARMA SOURCE BUILD
# What a failure was, and whose process is whose, on a virtual node: each by what the daemon sees of the GPU.
# shellcheck source-path=SCRIPTDIR disable=SC1091,SC2016 # single quotes: for the jobs' shells
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/node.sh"
cd "$T" || exit 99
start_node h200x1 100
CARMA_CGROUP_ROOT=$T/cgroup
VNODE=$PREFIX/bin/carma-vnode
events=$CARMA_CGROUP_ROOT$(sed -n 's/^0:://p' /proc/self/cgroup)/memory.events
export CARMA_CGROUP_ROOT VNODE TRAIN events
mkdir -p "$(dirname "$events")"
echo "oom_kill 0" >"$events"
start_daemon --set policy=round-robin --set memory_view=monitor --set share=streams --set settle=0s \
    --set decide_period=0s --set max_recoveries=2

# ends CAUSE ARGUMENT...: a job submitted with these ends so; its number is left in $job.
ends() {
    wanted=$1
    shift
    run submit --parsable "$@"
    expect_status 0
    job=$(cat "$T/out")
    "$CARMA" wait "$job" >/dev/null 2>&1
    expect_field "$job" exit_cause "$wanted"
}

# says ID TEXT: its message does.
says() {
    field "$1" message | grep -qF -e "$2" || fail "job $1 says '$(field "$1" message)', not '$2'"
}

# gpu NAME: of GPU 0, by the daemon's JSON.
gpu() {
    "$CARMA" gpus --json | python3 -c 'import json, sys
value = json.load(sys.stdin)["gpus"][0]
for key in sys.argv[1].split("."):
    value = value[int(key)] if key.isdigit() else value[key]
print(value)' "$1" 2>/dev/null
}

# until_gpu NAME VALUE: waits for it, at most 20 s.
until_gpu() {
    tries=0
    while value=$(gpu "$1"); [ "$value" != "$2" ]; do
        tries=$((tries + 1))
        if [ "$tries" -gt 200 ]; then
            fail "GPU 0: $1 stays '$value', never '$2'"
            return 1
        fi
        sleep 0.1
    done
}

# Its own, whatever the text looks like; the host's memory, as the kernel's counter has it and as it says itself.
ends failed -- sh -c 'echo "step 3: no OOM so far"; exit 4'
expect_field "$job" failure.output nothing
ends signalled -- sh -c 'kill -KILL $$'
ends host_oom -- sh -c 'sleep 0.5; echo "oom_kill 1" >"$events"; kill -KILL $$'
expect_field "$job" state FAILED
ends host_oom -- sh -c 'echo MemoryError; exit 1'
ends failed -- "$TRAIN" --memory 1G --seconds 60 --fail bug
ends completed -- "$TRAIN" --memory 8G --seconds 60 --fail recovered-oom

# The GPU: by its Xid alone, and by what CUDA says. An application's Xid is told, and blames nobody else.
ends gpu_error -- sh -c '"$VNODE" inject xid --xid 95 --gpu 0; exit 1'
says "$job" 'GPU 0 reported Xid 95 (uncontained memory error)'
expect_field "$job" launches 3
ends gpu_error -- "$TRAIN" --memory 1G --seconds 100 --fail hardware
says "$job" 'uncorrectable ECC error encountered; GPU 0 reported Xid 48 (double-bit memory error)'
ends failed -- sh -c '"$VNODE" inject xid --xid 31 --gpu 0
    echo "RuntimeError: CUDA error: an illegal memory access was encountered"; exit 1'
says "$job" 'GPU 0 reported Xid 31 (GPU memory page fault)'
expect_field "$job" launches 1

# A library's handle: what may be for want of memory is so only where memory was short.
ends failed -- sh -c 'sleep 0.5; echo "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED"; exit 1'
says "$job" 'GiB were free'
full_mib=$(($(gpu free_bytes) / 1048576 - 100))
run submit --parsable -- "$TRAIN" --memory "${full_mib}M" --sm-activity 0.2 --seconds 3000
full=$(cat "$T/out")
until_gpu used_bytes $((full_mib * 1048576))
run submit --parsable -- sh -c 'echo "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED"; sleep 1; exit 1'
maybe=$(cat "$T/out")
until_field "$maybe" crashes 1
expect_field "$maybe" exit_cause gpu_handle
expect_field "$maybe" recovery True
says "$maybe" '100 MiB were free'
run cancel "$maybe" "$full"
run wait "$maybe" "$full"

# What its message says of others; what was seen in use.
ends gpu_oom -- sh -c 'echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 200.00 GiB. GPU 0 has a total" \
    "capacity of 139.00 GiB of which 1.00 GiB is free. Process 4711 has 20.00 GiB memory in use."; exit 1'
expect_field "$job" failure.tenants "[{'pid': 4711, 'used_bytes': 21474836480}]"
run show "$job"
grep -qF 'Asked for  200.0 GiB of GPU memory; 1.0 GiB were free, it said;' "$T/out" || fail "show: $(cat "$T/out")"
grep -qF 'Beside it  process 4711 held 20.0 GiB' "$T/out" || fail "show: $(cat "$T/out")"
ends completed -- "$TRAIN" --memory 1G --seconds 30
expect_field "$job" failure None
run submit --parsable -- "$TRAIN" --memory 1G --seconds 100 --fail false-oom
until_field "$(cat "$T/out")" crashes 1
expect_field "$(cat "$T/out")" failure.requested_bytes $((512 * 1048576))
run cancel "$(cat "$T/out")"

# Whose process: a grandchild in a session of its own is the job's; a process that nobody submitted is nobody's.
run submit --parsable -- "$TRAIN" --memory 7G --seconds 3000 --fail double-fork --fail-at 100000
family=$(cat "$T/out")
until_field "$family" placements.0.observed_bytes $((7 << 30))
expect_gpu() {
    [ "$(gpu "$1")" = "$2" ] || fail "GPU 0: $1 is '$(gpu "$1")', not '$2'"
}
expect_gpu foreign '[]'
CUDA_VISIBLE_DEVICES=0 "$TRAIN" --memory 3G --sm-activity 0.2 --seconds 30000 >/dev/null &
foreign=$!
until_gpu foreign_bytes $((3 << 30))
expect_gpu foreign.0.pid "$foreign"
expect_gpu foreign.0.command carma-train
expect_gpu foreign.0.user "$(id -un)"
expect_gpu foreign.0.used_bytes $((3 << 30))
expect_gpu foreign_why None
run gpus
grep -qxF "GPU 0: process $foreign (carma-train of $(id -un)) holds 3.0 GiB and is no job's" "$T/out" ||
    fail "gpus: $(cat "$T/out")"

# What the driver hides is not guessed, and it is said why.
"$VNODE" inject hide-memory
until_gpu foreign_bytes None
expect_gpu foreign_why "the driver does not say how much memory the processes of job $family hold"
"$VNODE" clear
until_gpu foreign_bytes $((3 << 30))
"$VNODE" inject hide-processes
until_gpu foreign_why 'memory is in use, but the driver lists no process'
expect_gpu foreign_bytes None
run submit --parsable --exclusive -- true
run explain "$(cat "$T/out")"
grep -qF '(memory counted by claims: memory is in use, but the driver lists no process)' "$T/out" ||
    fail "explain: $(cat "$T/out")"
run cancel @
"$VNODE" clear
until_gpu foreign_bytes $((3 << 30))
kill "$foreign"
wait "$foreign" 2>/dev/null
until_gpu foreign_bytes 0
run cancel "$family"
run wait "$family"
stop_daemon

# Under MPS: who ends first with a kernel's fault caused it; the others are its victims, and run again.
ln -s "$BUILD/src/vnode/nvidia-cuda-mps-control" "$PREFIX/lib/carma/vnode"
start_daemon --set mps_pipe_directory= --set mps_control="$PREFIX/lib/carma/vnode/nvidia-cuda-mps-control" --set share=mps \
    --set policy=round-robin --set memory_view=monitor --set settle=0s --set decide_period=0s
run submit --parsable -- "$TRAIN" --memory 2G --sm-activity 0.2 --seconds 400
one=$(cat "$T/out")
run submit --parsable -- "$TRAIN" --memory 2G --sm-activity 0.2 --seconds 400
two=$(cat "$T/out")
until_field "$one" placements.0.observed_bytes $((2 << 30))
until_field "$two" placements.0.observed_bytes $((2 << 30))
run submit --parsable -- "$TRAIN" --memory 2G --sm-activity 0.2 --seconds 400 --fail illegal-access
culprit=$(cat "$T/out")
run wait "$culprit"
expect_status 1
expect_field "$culprit" state FAILED
expect_field "$culprit" exit_cause failed
says "$culprit" 'CUDA error: '
until_field "$one" exit_cause mps_fault
until_field "$two" exit_cause mps_fault
run wait "$one" "$two"
expect_status 0
for victim in "$one" "$two"; do
    expect_field "$victim" launches 2
    expect_field "$victim" crashes 0
done

# Both say the same, and the server was never seen to have failed: the second is a victim once, and then its own.
fault='echo "RuntimeError: CUDA error: unspecified launch failure"; exit 1'
run submit --parsable -- sh -c "sleep 1.2; $fault"
later=$(cat "$T/out")
run submit --parsable -- sh -c "sleep 0.8; $fault"
first=$(cat "$T/out")
run wait "$first" "$later"
expect_field "$first" launches 1
expect_field "$first" exit_cause failed
expect_field "$later" launches 2
expect_field "$later" exit_cause failed

finish_node
