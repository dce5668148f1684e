#!/bin/sh
# Under MPS the driver's limit keeps a job to its request: it runs itself out of memory, and no other job.
. "$(dirname "$0")/node.sh"
start_node h200x1 20
. "$SOURCE/tests/cli/mps.sh"

start_daemon --set mps_pipe_directory= --set mps_control="$CONTROL" --set share=mps --set shrink_after=0s
run submit --gpu-memory 60G -- "$TRAIN" --memory 58G --sm-activity 0.3 --seconds 100000
run submit --gpu-memory 10G -- "$TRAIN" --memory 30G --sm-activity 0.3 --seconds 60
expect_field 1 fence_bytes $(((60 << 30) + (512 << 20) + (60 << 30) / 16))
expect_field 2 fence_bytes $(((10 << 30) + (512 << 20) + (10 << 30) / 16))
shows "^Memory limit  *11.1 GiB per GPU, for each process (enforced by MPS)" show 2
run wait 2
expect_field 2 state COMPLETED # by retries with a raised request
[ "$(field 2 crashes)" -ge 1 ] || fail "a declared fence is not charged"
expect_field 1 attempts 1 # its neighbour noticed nothing
expect_field 1 victim_of null

run submit --parsable -W -- sh -c 'echo "$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"'
# The need of 98% of workloads, and the headroom: less than the two jobs have left.
[ "$(cat carma-3.out)" = "0=65792M" ] || fail "the fence of a job whose need nobody knows: $(cat carma-3.out)"
run cancel 1

# A wrong guess is carma's error: the need of earlier runs of the command is not this one's. It is retried at once
# without a fence, is not charged, and counts as an out-of-memory error.
exposition="python3 -B $SOURCE/tests/cli/exposition.py"
ooms() { # in carma stats, and in the metrics by cause and by user
    "$CARMA" stats --csv | python3 -c 'import csv, sys
print(next(csv.DictReader(sys.stdin))["oom_crashes"])'
    $exposition fetch "$CARMA_SOCKET" | sed -n 's/^carma_oom_total{cause="gpu_oom"} //p; s/^carma_user_oom_total{.*} //p'
}
guessed() {
    run submit --parsable -- sh -c 'exec "$0" --memory "$(cat need)" --sm-activity 0.3 --seconds 60' "$TRAIN"
    cat "$T/out"
}
echo 8G >need
first=$(guessed)
run wait "$first"
before=$(ooms)
echo 20G >need
second=$(guessed)
until_field "$second" attempts 2
expect_field "$second" fence_bytes null
field "$second" last_end | grep -qF 'at the limit of the node default, not on the GPU; it is retried before the queue' ||
    fail "why it was retried: $(field "$second" last_end)"
run wait "$second"
expect_field "$second" state COMPLETED attempts 2 crashes 0
expected=$(for count in $before; do echo $((count + 1)); done)
[ "$(ooms)" = "$expected" ] || fail "counted: $(ooms), not $expected"

# MPS gives the least of all limits, and that is shown, also by a carmad with other settings.
small=$(submitted -W --gpu-memory 10G --mps-memory-limit 5G -- sh -c 'echo "$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"')
grep -q "0=5120M" "carma-$small.out" || fail "its limit: $(cat "carma-$small.out")"
expect_field "$small" process_limit_bytes $((5 << 30)) fence_bytes $(((10 << 30) + (512 << 20) + (10 << 30) / 16))
shows "^Memory limit  *5.0 GiB per GPU, for each process (enforced by MPS; set by mps_memory_limit or --mps-memory-limit)" \
    show "$small"
# What may be a lack of memory is one beside little that its limit leaves, however much the GPU has.
near=$(submitted --gpu-memory 10G -- sh -c '"$0" --memory 9G --sm-activity 0.3 --seconds 60
    echo "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution"; exit 1' "$TRAIN")
until_field "$near" attempts 2
run cancel "$near"
restart_daemon --set mps_pipe_directory= --set mps_control="$CONTROL" --set share=mps --set mps_memory_limit=2G
expect_field "$small" process_limit_bytes $((5 << 30))
restart_daemon --set mps_pipe_directory= --set mps_control="$CONTROL" --set share=mps --set memory_fence=off
free=$(submitted --gpu-memory 5G -- "$TRAIN" --memory 9G --sm-activity 0.3 --seconds 60)
run wait "$free"
expect_field "$free" fence_bytes null process_limit_bytes null attempts 1

# The third client may use 70% of the threads, a job's own limit being less; those before it all.
restart_daemon --set mps_pipe_directory= --set mps_control="$CONTROL" --set share=mps --set max_slowdown=0
first=$(submitted --gpu-memory 4G -- "$TRAIN" --memory 2G --sm-activity 0.1 --seconds 1000000)
second=$(submitted --gpu-memory 4G -- "$TRAIN" --memory 2G --sm-activity 0.1 --seconds 1000000)
third=$(submitted -W --gpu-memory 4G -- sh -c 'echo "$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"')
grep -qx 70 "carma-$third.out" || fail "the third client's threads: $(cat "carma-$third.out")"
expect_field "$first" threads_percent null
expect_field "$third" threads_percent 70
shows "^Threads  *at most 70% of a GPU's (enforced by MPS)" show "$third"
run cancel "$first" "$second"
