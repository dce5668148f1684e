#!/bin/sh
# The driver of a virtual node misbehaves under the daemon (carma-vnode inject): a GPU is lost, metrics are denied or wrong,
# processes are hidden. GPUs are drained or a metric degrades, jobs elsewhere go on, and it is said once.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/faults.sh"

start_node a100x4-40g 60
start
expect_id 1 -J elsewhere -- "$TRAIN" --memory 5G --sm-activity 0.3 --seconds 100000
expect_id 2 -J there -- "$TRAIN" --memory 6G --sm-activity 0.5 --seconds 100000
until_field 2 placements.0.observed_bytes $((6 << 30))
expect_field 2 placements.0.index 1

# A GPU falls off the bus: its job is known from one that failed itself, and runs elsewhere. The GPU stays empty.
"$VNODE" inject gpu-lost --gpu 1
until_gpu 1 lost True
until_field 2 attempts 2
until_field 2 placements.0.observed_bytes $((6 << 30))
expect_field 2 placements.0.index 2 exit_cause gpu_error
field 2 last_end | grep -qF "its GPU failed" || fail "job 2: $(field 2 last_end)"
"$CARMA" show 2 | grep -q '^Attempts  *2$' || fail "show: $("$CARMA" show 2)" # a 0 of another cause would be no verdict
run submit --parsable -G 4 -- true
shows "4 GPUs needed, 3 of the node's are usable" explain 3
expect_field 3 state QUEUED
said 1 "is lost: NVML answers GPU is lost (15): nothing is placed there"
"$CARMA" gpus | grep -q "^GPU 1 takes no job: NVML answers GPU is lost (15); its figures are [0-9:]* old" || fail "gpus: $("$CARMA" gpus)"
said 1 "the driver reports Xid 79"
shows '^GPU-.*: Xid 79, .* at ' gpus
"$VNODE" clear
until_gpu 1 lost False
said 1 "GPU 1 ($(gpu 1 uuid)) is there"
run cancel 3

# Metrics are denied, or missing: SM activity is NVML's coarse utilisation; all the rest goes on.
new_log
"$VNODE" inject no-permission
until_gpu 0 metrics.sm_activity.source utilization
until_gpu 0 metrics.sm_activity.value $(($(gpu 0 metrics.sm_activity.value))) # coarse: more than the 300 of the job
[ "$(gpu 0 metrics.sm_activity.value)" -gt 300 ] || fail "utilisation is $(gpu 0 metrics.sm_activity.value) permille"
until_said "GPU 0, 1, 2, 3: sm_activity is NVML's utilisation from now on"
said 1 "metrics: no permission for GPM metrics"
shows '^~ NVML' gpus
"$VNODE" clear
until_gpu 0 metrics.sm_activity.source gpm
until_gpu 0 metrics.sm_activity.value 300

# A driver that hides processes or their memory, as in a container. The reason is told; memory in use counts.
"$VNODE" inject hide-memory
runs 4 -J hidden -- "$TRAIN" --memory 7G --sm-activity 0.2 --seconds 100000 --fail double-fork --fail-at 1000000 # a grandchild
at=$(field 4 placements.0.index)
until_gpu "$at" used_bytes $((7 << 30))
until_gpu "$at" unmanaged_why "the driver does not say how much memory the processes of job 4 hold"
"$VNODE" clear
until_field 4 placements.0.observed_bytes $((7 << 30))
until_gpu "$at" unmanaged_why None
"$VNODE" inject hide-processes
until_gpu "$at" unmanaged_why "memory is in use, but the driver lists no process"
[ "$(gpu "$at" free_bytes)" -lt $((33 << 30)) ] || fail "memory in use counts as free"
run submit --parsable -G 4 --exclusive -- true
shows '(memory counted by reservations: memory is in use, but the driver lists no process)' explain 5
run cancel 5
"$VNODE" clear
until_gpu "$at" unmanaged_why None
cancel 4

# An Xid of the hardware's, then another on another GPU: the second is taken for the job's doing.
run cancel 1 2
expect_id 6 -G 4 --gpu-memory 1G -- sh -c '"$0" inject xid --xid 119 --gpu "$CARMA_RESTART_COUNT"; exit 1' "$VNODE"
run wait 6
expect_field 6 state FAILED attempts 2 exit_cause gpu_error
field 6 message | grep -qF "GPU 1 reported Xid 119 (the GPU's firmware does not answer); GPU 0 failed under this" ||
    fail "job 6: $(field 6 message)"
