#!/bin/sh
# The daemon's messages about GPUs on a virtual node: jobs that do not use theirs, faults of the driver, each once.
. "$(dirname "$0")/node.sh"
start_all h100x8-80g 60 --set idle_report=120s

# said TEXT: how many lines of the daemon's log have it.
said() {
    grep -c -e "$1" "$T/daemon.log"
}

# until_said TEXT: waits for it.
until_said() {
    wait_for 'grep -q -e "$1" "$T/daemon.log"' "$@" || fail "never said: $1"
}

# gpu N EXPRESSION: of carma's GPU N as `g`, by the daemon's JSON.
gpu() {
    "$CARMA" gpus --json | python3 -c 'import json, sys
g = next(g for g in json.load(sys.stdin)["gpus"] if g["index"] == int(sys.argv[1]))
print(eval(sys.argv[2]))' "$1" "$2"
}

until_gpu() {
    wait_for '[ "$(gpu "$1" "$2")" = True ]' "$@" || fail "GPU $1: never $2"
}

until_gpu 0 'g["metrics"]["sm_activity"]["source"] == "gpm" and g["metrics"]["sm_activity"]["window"]["samples"] > 0'

# A job that only holds its GPU is told of once.
run submit --parsable -- sleep 100000
until_said 'job 1 of .* holds 1 GPU and has not used it for'
until_gpu "$(field 1 placements.0.index)" 'g["jobs"] == [1]'
shows 'GPU [0-7], unused' queue
shows '^Note .*not used its GPUs since' show 1
# That its GPU is away for a while makes no news of it.
"$PREFIX/bin/carma-vnode" inject driver-reload
until_said 'lost its driver'
"$PREFIX/bin/carma-vnode" clear
seen=$(gpu 0 'g["observed_ns"]')
until_gpu 0 "g['observed_ns'] > $seen + 30e9" # 30 readings later
cancel 1

# Faults of the driver, each told once.
"$PREFIX/bin/carma-vnode" inject xid --xid 31 --gpu 2
until_said 'GPU 2 (GPU-.*): the driver reports Xid 31; no job was there'
shows '^GPU-.*: Xid 31, GPU memory page fault at ' gpus
"$PREFIX/bin/carma-vnode" inject gpu-lost --gpu 5
until_said 'GPU 5 (GPU-.*) is lost'
until_gpu 5 'g["lost"]'
run submit --parsable -- "$TRAIN" --memory 1G --sm-activity 0.2 --seconds 60
expect_ok wait 2 # jobs elsewhere go on
"$PREFIX/bin/carma-vnode" inject no-permission
until_said 'metrics: .*permission'
until_said 'sm_activity is NVML.s utilisation'
shows '^~ NVML' gpus
"$PREFIX/bin/carma-vnode" clear
until_said 'GPU 5 (GPU-.*) is there'
for text in 'Xid 31' 'GPU 5 (GPU-.*) is lost' 'holds 1 GPU and has' 'sm_activity is NVML' 'cannot be measured any more'; do
    [ "$(said "$text")" -eq 1 ] || fail "said $(said "$text") times: $text"
done
