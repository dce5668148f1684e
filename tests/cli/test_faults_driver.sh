#!/bin/sh
# The driver goes away, does not answer, or comes back with other indices. Nothing is placed while GPUs cannot be read;
# jobs go on. The daemon answers and can be started again, and a GPU is known by its UUID.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/faults.sh"

start_node a100x4-40g 60
start --set idle_report=120s
expect_id 1 -J elsewhere -- "$TRAIN" --memory 5G --sm-activity 0.3 --seconds 100000
until_field 1 placements.0.observed_bytes $((5 << 30))

# A job that only holds its GPU is told of, once.
expect_id 2 -- sleep 100000
until_said 'holds 1 GPU and has not used it for'
shows 'GPU [0-3], unused' queue
shows '^Note .*not used its GPUs since' show 2

# The driver is loaded anew, which no job survives: nothing is placed meanwhile, and the energy that was counted stays.
new_log
sleep 4 # the counter before has to exceed its count until the next look
index=$(field 1 placements.0.index)
before=$(gpu "$index" energy_mj)
"$VNODE" inject driver-reload
until_said "GPUs cannot be read, nothing is placed"
"$VNODE" clear
until_said "GPUs can be read again"
until_field 1 attempts 2 # the driver's failure, not its own
expect_field 1 exit_cause gpu_error
cancel 1
until_gpu "$index" used_bytes 0
after=$(gpu "$index" energy_mj)
[ "$after" -lt "$before" ] || fail "the driver's counter goes on: $after after $before mJ"
[ "$(field 1 modelled_energy_mj)" -gt 0 ] || fail "job 1 has used $(field 1 modelled_energy_mj) mJ"
said 0 "is lost" # told once for all
seen=$(gpu 0 observed_ns)
wait_for '[ "$(gpu 0 observed_ns)" -gt "$1" ]' $((seen + 30000000000)) # 30 readings
said 0 "holds 1 GPU" # that its GPU was away for a while makes no news of job 2
cancel 2
expect_id 3 -J elsewhere -- "$TRAIN" --memory 5G --sm-activity 0.3 --seconds 100000
until_field 3 placements.0.observed_bytes $((5 << 30))

# Calls hang: the monitor is replaced after ten seconds, the daemon says so, answers and can be restarted; new jobs wait.
new_log
"$VNODE" inject hang
until_said "fell silent"
expect_ok queue
expect_id 4 -- true
until_said "no GPU could be read for 30 s"
shows "0 of the node's are usable" explain 4
expect_field 4 state QUEUED
expect_field 3 state RUNNING
end_daemon
"$PREFIX/bin/carmad" --state "$STATE" --socket "$CARMA_SOCKET" --set policy=round-robin --set share=time-slice \
    --set settle=1s --set decide_period=0s --set nvml_library="$PREFIX/lib/carma/vnode/libnvidia-ml.so.1" 2>>"$T/daemon.log" &
daemon=$!
wait_for '"$CARMA" queue >/dev/null 2>&1'
expect_field 4 state QUEUED
expect_field 3 state RUNNING
"$VNODE" clear
until_field 4 state COMPLETED
expect_field 3 attempts 1
said 1 "fell silent"
said 1 "no GPU could be read"

# Indices change with the next start of the driver: a GPU is known by its UUID, and so are its jobs.
new_log
uuid=$(gpu 1 uuid)
"$VNODE" inject reindex
stop_daemon
start
order="GPU 0 is nvidia-smi's 3, GPU 1 is nvidia-smi's 0, GPU 2 is nvidia-smi's 1, GPU 3 is nvidia-smi's 2: "
said 1 "$order"
"$CARMA" doctor | tr -s '\n ' ' ' | grep -qF "warn GPUs $order" || fail "doctor does not say that numbers differ"
[ "$(gpu 1 uuid)" = "$uuid" ] || fail "GPU 1 is $(gpu 1 uuid), was $uuid"
expect_field 3 state RUNNING
until_gpu "$(field 3 placements.0.index)" used_bytes $((5 << 30))
[ "$(gpu "$(field 3 placements.0.index)" jobs)" = "[3]" ] || fail "its GPU has the jobs $(gpu "$(field 3 placements.0.index)" jobs)"
