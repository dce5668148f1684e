#!/bin/sh
# A job that uses a GPU which it was not given is named, and its memory there is charged to it and to its user.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/faults.sh"
exposition="python3 -B $SOURCE/tests/cli/exposition.py"
start_all a100x4-40g 100 --set max_gpu_memory_per_user=30G --set settle=0s

run submit --gpu-memory 9G -- sh -c 'until [ -e astray ]; do sleep 0.05; done
    CUDA_VISIBLE_DEVICES=2 exec "$0" --memory 8G --seconds 100000' "$TRAIN"
until_field 1 placements.0.index 0

touch astray
until_said "of job 1 of $(id -un) holds"

until_gpu 2 unmanaged_bytes $((8 << 30))
pid=$(gpu 2 unmanaged.0.pid)
[ "$(gpu 2 unmanaged.0.job) $(gpu 2 unmanaged.0.user)" = "1 $(id -un)" ] || fail "GPU 2 does not name job 1: $(gpu 2 unmanaged)"
run gpus
grep -qxF "GPU 2: process $pid (carma-train of $(id -un)) holds 8.0 GiB and is job 1's, which was not given this GPU" \
    "$T/out" || fail "gpus: $(cat "$T/out")"
grep -q "^ *2 .* stray 1 8.0 GiB$" "$T/out" || fail "gpus, in the table: $(cat "$T/out")"
shows "^Also on *GPU 2, which it was not given: process $pid (carma-train) holds 8.0 GiB" show 1
[ "$(grep -c "GPU 2: process $pid (carma-train) of job 1 of $(id -un) holds .* there, and the job was not given this GPU" "$T/daemon.log")" = 1 ] ||
    fail "the log: $(cat "$T/daemon.log")"
$exposition fetch "$CARMA_SOCKET" >metrics || fail "no metrics"
grep "^carma_job_stray_memory_bytes{" metrics | grep 'hpc_job="1"' | grep "user=\"$(id -un)\"" | grep "pid=\"$pid\"" |
    grep 'gpu="2"' | grep -q " 8589934592$" || fail "metrics: $(grep stray metrics)"

# Of 30 GiB its user has 9 reserved and 8 taken elsewhere: 14 more are too much until that job has ended.
run submit --gpu-memory 14G -- true
expect_field 2 reason.code user-memory
run submit --gpu-memory 12G -- true
until_field 3 state COMPLETED
run cancel 1
until_field 2 state COMPLETED
until_gpu 2 unmanaged_bytes 0

# Many at once are a line in the log, and their sum a minute later; of the table they fill a cell and five lines.
run submit --parsable --gpu-memory 2G -- sh -c 'for size in 1 1 1 1 1 2; do
    CUDA_VISIBLE_DEVICES=2 "$0" --memory ${size}G --seconds 100000 & done; wait' "$TRAIN"
many=$(cat "$T/out")
until_gpu 2 unmanaged_bytes $((7 << 30))
until_said "GPU 2: 5 more of the processes of job $many came there, and the job was not given this GPU"
said 1 "of job $many of $(id -un) holds"
shows "^ *2 .* stray $many 7.0 GiB$" gpus
grep "^GPU 2: " "$T/out" >lines
head -1 lines | grep -q "holds 2.0 GiB and is job $many's" || fail "gpus: not the largest first: $(cat lines)"
[ "$(wc -l <lines)" -eq 5 ] && tail -1 lines | grep -q "^GPU 2: 2 more processes with 2.0 GiB, unmanaged or of jobs" ||
    fail "gpus: $(cat lines)"
run cancel "$many"
until_gpu 2 unmanaged_bytes 0

# Unmanaged processes are named as before.
CUDA_VISIBLE_DEVICES=3 "$TRAIN" --memory 3G --seconds 100000 >/dev/null &
foreign=$!
until_gpu 3 unmanaged_bytes $((3 << 30))
[ "$(gpu 3 unmanaged.0.job)" = None ] || fail "a process of no job: $(gpu 3 unmanaged)"
shows "^GPU 3: process $foreign (carma-train of $(id -un)) holds 3.0 GiB and is unmanaged$" gpus
kill "$foreign"
wait "$foreign" 2>/dev/null

# A job that runs out of memory beside a stray is its victim, though the stray has no part of that GPU.
restart_daemon --set settle=0s
run submit --parsable --gpu-memory 32G -- sh -c 'until [ -e go ]; do sleep 0.05; done; exec "$0" --memory 30G --seconds 100' "$TRAIN"
victim=$(cat "$T/out")
until_field "$victim" state RUNNING
theirs=$(field "$victim" placements.0.index)
run submit --parsable --gpu-memory 9G -- sh -c 'CUDA_VISIBLE_DEVICES=$1 exec "$0" --memory 15G --seconds 100000' "$TRAIN" "$theirs"
stray=$(cat "$T/out")
until_gpu "$theirs" unmanaged_bytes $((15 << 30))
touch go
until_field "$victim" victim_of "$stray"
expect_field "$victim" crashes 0
expect_field "$stray" victims 1
run wait "$victim"
expect_field "$victim" state COMPLETED attempts 2
run cancel "$stray"
