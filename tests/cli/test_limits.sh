#!/bin/sh
# A user's limits and a job's retries by the daemon: time limits, a shepherd that dies, memory that no GPU has.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 100
start_daemon --set max_queued_per_user=3 --set max_running_per_user=2 --set max_gpus_per_user=3 --set max_requeues=1 \
    --set settle=0s

# A possible request runs, one that is too large waits and names its reason, one that is far too large is refused.
run submit --parsable --gpu-memory 1G -- sleep 100000
run submit --parsable --gpu-memory 1G -- sleep 100000
run submit --parsable --gpu-memory 1G -- true
until_field 1 state RUNNING
until_field 2 state RUNNING
expect_field 3 reason.code user-jobs
shows "2 jobs of its user run, the limit (max_running_per_user)" explain 3
expect_error 1 "you have 3 unfinished jobs and submit 1, a user may have 3" submit -- true
expect_error 1 "a user may have 3" submit --gpus 4 -- true
run cancel 1
until_field 3 state COMPLETED
shows '^job 3 has completed$' explain 3
run cancel 2
until_field 2 state CANCELLED
expect_error 1 "4 GPUs needed, a user's limit is 3 (max_gpus_per_user)" submit --gpus 4 --gpu-memory 1G -- true

# Its time is up twice, and it begins again once.
run submit --parsable --gpu-memory 1G --time 20s --requeue -o runs.out -- sh -c 'echo run; exec sleep 600'
until_field 4 state TIMEOUT
ends 124 wait 4
expect_field 4 attempts 2
[ "$(grep -c run runs.out)" -eq 2 ] || fail "it ran as often: $(cat runs.out)"
[ "$(field 4 relaunch_ns)" -ge 0 ] || fail "how long it waited is not known: $(field 4 relaunch_ns)"
shows "Time limit 0:20; started again after it" show 4
expect_out "^Relaunched"

# The shepherd of one that asked for it dies: another run.
runs 5 --gpu-memory 1G --requeue -o lost.out -- sh -c 'echo $PPID >>shepherds; exec sleep 600'
wait_for '[ -s shepherds ]'
kill -KILL "$(head -1 shepherds)"
until_field 5 attempts 2
until_field 5 state RUNNING
expect_field 5 exit_cause lost
run cancel 5

# Memory that no GPU has is not tried for.
run submit --parsable -o big.out -- sh -c 'echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 45.00 GiB."; exit 1'
until_field 6 state GPU_OOM
expect_field 6 attempts 1
shows "it needs at least 45.0 GiB, the largest GPU has 39.6 GiB" show 6

# Options that count under MPS are shown as not in force elsewhere.
for how in '--share time-slice' --exclusive; do
    # shellcheck disable=SC2086 # words
    run submit --parsable --hold $how --mps-memory-limit 5G -- true
    shows '^  *not in force, as it does not run by MPS: ' show "$(cat "$T/out")"
done
