#!/bin/sh
# Usage: test_faults.sh CARMA SOURCE BUILD
# The driver of a virtual node misbehaves under the daemon (carma-vnode inject): GPUs are drained or a metric degrades,
# jobs elsewhere go on, and it is said once.
# shellcheck source-path=SCRIPTDIR disable=SC1091
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/node.sh"
cd "$T" || exit 99
VNODE=$PREFIX/bin/carma-vnode

# gpu INDEX NAME: of a GPU, by the daemon's JSON.
gpu() {
    "$CARMA" gpus --json | python3 -c 'import json, sys
value = json.load(sys.stdin)["gpus"][int(sys.argv[1])]
for key in sys.argv[2].split("."):
    value = value[key]
print(value)' "$1" "$2"
}

# until_gpu INDEX NAME VALUE: waits for it, at most 10 s.
until_gpu() {
    tries=0
    while value=$(gpu "$1" "$2") && [ "$value" != "$3" ]; do
        tries=$((tries + 1))
        if [ "$tries" -gt 60 ]; then
            fail "GPU $1: $2 stays '$value', never '$3'"
            return 1
        fi
        sleep 0.1
    done
}

# said COUNT TEXT: so many lines of the log have the text.
said() {
    count=$(grep -cF -- "$2" "$T/daemon.log")
    [ "$count" -eq "$1" ] || fail "'$2' is in the log $count times, not $1"
}

# until_said TEXT: at most 30 s.
until_said() {
    tries=0
    until grep -qF -- "$1" "$T/daemon.log"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 300 ]; then
            fail "the log does not say '$1'"
            return 1
        fi
        sleep 0.1
    done
}

# new_log: what was said before counts no more.
new_log() {
    cat "$T/daemon.log" >>"$T/earlier.log"
    : >"$T/daemon.log"
}

start() {
    start_daemon --set policy=round-robin --set share=streams --set settle=1s --set decide_period=0s "$@"
}

start_node a100x4-40g 60
start
run submit --parsable -J elsewhere -- "$TRAIN" --memory 5G --sm-activity 0.3 --seconds 100000
expect_output 1
run submit --parsable -J there -- "$TRAIN" --memory 6G --sm-activity 0.5 --seconds 100000
expect_output 2
until_field 2 placements.0.observed_bytes $((6 << 30))
expect_field 2 placements.0.index 1

# A GPU falls off the bus: its job is told from one that failed by itself and runs elsewhere; nothing is placed there
# until it is back.
"$VNODE" inject gpu-lost --gpu 1
until_gpu 1 lost True
until_field 2 launches 2
until_field 2 placements.0.observed_bytes $((6 << 30))
expect_field 2 placements.0.index 2
expect_field 2 exit_cause gpu_error
field 2 last_end | grep -qF "its GPU failed" || fail "job 2: $(field 2 last_end)"
run submit --parsable -G 4 -- true
run explain 3
grep -qF "needs 4 GPUs, 3 of the node's are there" "$T/out" || fail "explain 3: $(cat "$T/out")"
expect_field 3 state QUEUED
said 1 "is lost (NVML's error 15): nothing is placed there"
said 1 "the driver reports Xid 79"
"$VNODE" clear
until_gpu 1 lost False
said 1 "GPU 1 ($(gpu 1 uuid)) is there"
run cancel 3

# Metrics are denied, or missing: SM activity is what NVML's coarse utilisation says; all the rest goes on.
new_log
"$VNODE" inject no-permission
until_gpu 0 metrics.sm_activity.source utilization
until_gpu 0 metrics.sm_activity.value $(($(gpu 0 metrics.sm_activity.value))) # coarse: more than the 300 of the job
[ "$(gpu 0 metrics.sm_activity.value)" -gt 300 ] || fail "utilisation is $(gpu 0 metrics.sm_activity.value) permille"
until_said "GPU 0, 1, 2, 3: sm_activity is NVML's utilisation from now on"
said 1 "metrics: no permission for GPM metrics"
"$VNODE" clear
until_gpu 0 metrics.sm_activity.source gpm
until_gpu 0 metrics.sm_activity.value 300

# Values that are none are not taken for values: too much, or nothing, or zeros that stay after an Xid.
for fault in over-range blank-values stuck-zero; do
    "$VNODE" inject $fault --gpu 0
    sleep 0.5
    case $(gpu 0 metrics.sm_activity.source) in
    gpm) [ "$(gpu 0 metrics.sm_activity.value)" -eq 300 ] || fail "$fault: $(gpu 0 metrics.sm_activity)" ;;
    esac
    [ "$(gpu 0 used_bytes)" -eq $((5 << 30)) ] || fail "$fault: $(gpu 0 used_bytes) bytes are used"
    [ "$(gpu 0 power_mw)" -lt 400000 ] || fail "$fault: $(gpu 0 power_mw) mW"
    [ "$(gpu 2 metrics.sm_activity.value)" -eq 500 ] || fail "$fault: another GPU: $(gpu 2 metrics.sm_activity)"
    "$VNODE" clear
    until_gpu 0 metrics.sm_activity.source gpm
done
said 1 "the driver reports Xid 43; there were the jobs 1"

# A driver without power or energy: they are not shown as zero.
"$VNODE" inject no-power --gpu 3
"$VNODE" inject no-energy --gpu 3
until_gpu 3 power_mw None
expect_field 1 state RUNNING
"$VNODE" clear
until_gpu 3 power_mw 53800

# A driver that hides what processes hold, or the processes themselves, as in a container: why is said, and the memory in
# use counts all the same.
"$VNODE" inject hide-memory
run submit --parsable -J hidden -- "$TRAIN" --memory 7G --sm-activity 0.2 --seconds 100000
expect_output 4
until_field 4 state RUNNING
at=$(field 4 placements.0.index)
until_gpu "$at" used_bytes $((7 << 30))
until_gpu "$at" foreign_why "the driver does not say how much memory the processes of job 4 hold"
"$VNODE" clear
until_field 4 placements.0.observed_bytes $((7 << 30))
until_gpu "$at" foreign_why None
"$VNODE" inject hide-processes
until_gpu "$at" foreign_why "memory is in use, but the driver lists no process"
[ "$(gpu "$at" free_bytes)" -lt $((33 << 30)) ] || fail "memory in use counts as free"
"$VNODE" clear
until_gpu "$at" foreign_why None
run cancel 4
run wait 4

# Some 535 drivers write lists of processes in another layout: both jobs of a GPU are seen with what they hold.
"$VNODE" inject r535
run submit --parsable -- "$TRAIN" --memory 3G --sm-activity 0.1 --seconds 100000
expect_output 5
until_field 5 placements.0.observed_bytes $((3 << 30))
"$VNODE" clear
run cancel 5
run wait 5

# The driver is loaded anew, which no job survives: nothing is placed meanwhile, and the energy that was counted stays.
new_log
before=$(gpu 0 energy_mj)
"$VNODE" inject driver-reload --for 60
until_said "GPUs cannot be read, nothing is placed"
until_field 1 state FAILED
until_said "GPUs can be read again"
until_gpu 0 used_bytes 0
[ "$(gpu 0 energy_mj)" -lt "$before" ] || fail "the driver's counter goes on: $(gpu 0 energy_mj) after $before mJ"
[ "$(field 1 modelled_energy_mj)" -gt 0 ] || fail "job 1 has used $(field 1 modelled_energy_mj) mJ"
said 0 "is lost" # told once for all
run submit --parsable -J elsewhere -- "$TRAIN" --memory 5G --sm-activity 0.3 --seconds 100000
expect_output 6
until_field 6 placements.0.observed_bytes $((5 << 30))

# Calls hang: the monitor is given up after ten seconds and replaced, the daemon answers, what runs goes on and what is
# new waits; and it can be restarted meanwhile.
new_log
"$VNODE" inject hang
until_said "fell silent"
run queue
expect_status 0
run submit --parsable -- true
expect_output 7
sleep 0.5
expect_field 7 state QUEUED
expect_field 6 state RUNNING
stop_daemon
[ "$daemon_status" -eq 0 ] || fail "carmad ended with status $daemon_status while the driver hangs"
"$PREFIX/bin/carmad" --state "$STATE" --socket "$CARMA_SOCKET" --set policy=round-robin --set share=streams \
    --set settle=1s --set decide_period=0s --set nvml_library="$PREFIX/lib/carma/vnode/libnvidia-ml.so.1" 2>>"$T/daemon.log" &
daemon=$!
tries=0
until "$CARMA" queue >/dev/null 2>&1 || [ "$tries" -gt 100 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
expect_field 7 state QUEUED
expect_field 6 state RUNNING
"$VNODE" clear
until_field 7 state COMPLETED
expect_field 6 launches 1
said 1 "fell silent"

# Indices change with the next start of the driver: a GPU is known by its UUID, and so are its jobs.
new_log
uuid=$(gpu 1 uuid)
"$VNODE" inject reindex
stop_daemon
start
[ "$(gpu 1 uuid)" = "$uuid" ] || fail "GPU 1 is $(gpu 1 uuid), was $uuid"
expect_field 6 state RUNNING
until_gpu "$(field 6 placements.0.index)" used_bytes $((5 << 30))
[ "$(gpu "$(field 6 placements.0.index)" jobs)" = "[6]" ] || fail "its GPU has the jobs $(gpu "$(field 6 placements.0.index)" jobs)"

finish_node
