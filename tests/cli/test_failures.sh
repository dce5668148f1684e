#!/bin/sh
# The causes of failures, on a virtual node: by the output and by the daemon's view of the GPU.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/faults.sh"
start_node h200x1 100
CARMA_CGROUP_ROOT=$T/cgroup
events=$CARMA_CGROUP_ROOT$(sed -n 's/^0:://p' /proc/self/cgroup)/memory.events
export CARMA_CGROUP_ROOT VNODE TRAIN events
mkdir -p "$(dirname "$events")"
echo "oom_kill 0" >"$events"
start_daemon --set policy=round-robin --set memory_view=monitor --set share=time-slice --set settle=0s \
    --set decide_period=0s --set max_retries=2

# ends_by CAUSE ARGUMENT...: a job submitted with these ends so; its number is left in $job.
ends_by() {
    wanted=$1
    shift
    expect_ok submit --parsable "$@"
    job=$(cat "$T/out")
    "$CARMA" wait "$job" >/dev/null 2>&1
    expect_field "$job" exit_cause "$wanted"
}

# says ID TEXT: its message does.
says() {
    field "$1" message | grep -qF -e "$2" || fail "job $1 says '$(field "$1" message)', not '$2'"
}

# Its own, for any text; the host's memory, by the kernel's counter and by its own words.
ends_by failed -- sh -c 'echo "step 3: no OOM so far"; exit 4'
expect_field "$job" failure.output nothing
ends_by signalled -- sh -c 'kill -KILL $$'
ends_by host_oom -- sh -c 'sleep 0.5; echo "oom_kill 1" >"$events"; kill -KILL $$'
expect_field "$job" state FAILED
ends_by host_oom -- sh -c 'echo MemoryError; exit 1'
ends_by failed -- "$TRAIN" --memory 1G --seconds 60 --fail bug
ends_by completed -- "$TRAIN" --memory 8G --seconds 60 --fail recovered-oom

# The GPU: an application's Xid is told, and blames nobody else (first: one soon after a hardware's is its consequence);
# by its Xid alone; by CUDA's message.
ends_by failed -- sh -c '"$VNODE" inject xid --xid 31 --gpu 0
    echo "RuntimeError: CUDA error: an illegal memory access was encountered"; exit 1'
says "$job" 'GPU 0 reported Xid 31 (GPU memory page fault)'
expect_field "$job" attempts 1
ends_by gpu_error -- sh -c '"$VNODE" inject xid --xid 95 --gpu 0; exit 1'
says "$job" 'GPU 0 reported Xid 95 (uncontained memory error)'
expect_field "$job" attempts 3
ends_by gpu_error -- "$TRAIN" --memory 1G --seconds 100 --fail hardware
says "$job" 'uncorrectable ECC error encountered; GPU 0 reported Xid 48 (double-bit memory error)'
shows 'its GPU failed' show "$job"

# A library's handle: a failure that may be one of memory counts as such only where memory was short.
ends_by failed -- sh -c 'sleep 0.5; echo "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED"; exit 1'
says "$job" 'GiB were free'
full_mib=$(($(gpu 0 free_bytes) / 1048576 - 100))
full=$(submitted -- "$TRAIN" --memory "${full_mib}M" --sm-activity 0.2 --seconds 1000000)
until_gpu 0 used_bytes $((full_mib * 1048576))
maybe=$(submitted -- sh -c 'echo "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED"; sleep 1; exit 1')
until_crashed "$maybe"
expect_field "$maybe" exit_cause gpu_handle retry true
says "$maybe" '100 MiB were free'
shows '1 idle GPU needed, 0 are idle' explain "$maybe"
cancel "$maybe" "$full"

# Its message's facts about others; the observed use.
ends_by gpu_oom -- sh -c 'echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 200.00 GiB. GPU 0 has a total" \
    "capacity of 139.00 GiB of which 1.00 GiB is free. Process 4711 has 20.00 GiB memory in use."; exit 1'
expect_field "$job" failure.tenants '[{"pid": 4711, "used_bytes": 21474836480}]'
shows 'Asked for  200.0 GiB of GPU memory; 1.0 GiB were free, it said;' show "$job"
grep -qF 'Beside it  process 4711 held 20.0 GiB' "$T/out" || fail "show: $(cat "$T/out")"
ends_by completed -- "$TRAIN" --memory 1G --seconds 30
expect_field "$job" failure null
run submit --parsable -- "$TRAIN" --memory 1G --seconds 1000 --fail false-oom --fail-at 500
until_crashed "$(cat "$T/out")"
false=$(cat "$T/out")
expect_field "$false" failure.requested_bytes $((512 * 1048576)) retry false
shows '^Last run   it printed that GPU memory ran out, which the memory in use does not bear out' show "$false"
run cancel "$false"

# Its output is shown, also where it is not UTF-8.
ends_by failed -- sh -c 'printf "RuntimeError: CUDA error: device-side assert triggered \\377\\376\\n" >&2; exit 1'
says "$job" "device-side assert triggered ??"
shows 'failed: .*assert triggered ??' explain "$job"
