#!/bin/sh
# A job that uses more than it asked for is shown so, and its reservation grows. Who runs out by it is a victim.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/faults.sh"
start_all h200x1 5 --config /dev/null --set share=mps --set memory_fence=off --set shrink_after=0s

run submit --gpu-memory 10G -- "$TRAIN" --memory 100G --sm-activity 0.3 --seconds 100000
sleep 1 # five seconds of node time: it climbs behind the first, and fails before its last step
run submit --gpu-memory 60G -- "$TRAIN" --memory 58G --sm-activity 0.3 --seconds 30
until_field 2 victim_of 1
until_field 1 over_reservation_bytes 96636764160
expect_field 1 reserved_bytes 107374182400 reservation_source observed request_bytes 10737418240
expect_field 1 state RUNNING # it is not killed for it
expect_field 1 victims 1
expect_field 2 crashes 0 reserved_bytes 64424509440 reservation_source declared
shows " !100.0 GiB" queue
shows "^Over  *it uses 90.0 GiB more than was reserved for it at its start" show 1
grep -q "^Harm  *1 job ran out of memory" "$T/out" || fail "show 1: $(cat "$T/out")"
run explain 2
grep -q "job 1 used more GPU memory than was reserved for it, and this job ran out; it is retried before the queue" \
    "$T/out" || fail "explain 2: $(cat "$T/out")"
restart_daemon --config /dev/null --set share=mps --set memory_fence=off --set shrink_after=0s
expect_field 2 victim_of 1
expect_field 1 victims 1
run cancel 1
run wait 2
expect_field 2 state COMPLETED attempts 2
expect_field 2 victim_of 1 # it was, however it ended since
expect_field 2 last_end null
shows "^Harmed by  *job 1: it ran out of memory, as that used more than was reserved for it" show 2

# A job that used more than it declared, and completed: the next run of the command has that reserved.
train() {
    run submit --parsable --gpu-memory 4G -- "$TRAIN" --memory 12G --sm-activity 0.3 --seconds 30
    cat "$T/out"
}
first=$(train)
run wait "$first"
expect_field "$first" state COMPLETED
next=$(train)
until_field "$next" state RUNNING
expect_field "$next" reserved_bytes $((12 << 30)) reservation_source learned
shows "12.0 GiB on each GPU, as the last run of this command used; that was more than the 4.0 GiB declared" \
    explain "$next"
run wait "$next"
expect_field "$next" over_reservation_bytes null

# A message alone, of a run between two readings: the memory in use, by the one before it, does not bear it out.
index=$(field "$next" placements.0.index)
until_gpu "$index" used_bytes 0
last=$(submitted --gpu-memory 4G -- sh -c 'echo "torch.OutOfMemoryError: CUDA out of memory."; exit 1')
run wait "$last"
expect_field "$last" state FAILED
