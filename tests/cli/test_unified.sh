#!/bin/sh
# A GPU without memory of its own (DGX Spark): jobs fit into the host's. One with its own (GH200) is like any other.
. "$(dirname "$0")/node.sh"

# gpu EXPRESSION: of the GPU as `g`, figures in MiB by m(name).
gpu() {
    "$CARMA" gpus --json | python3 -c 'import json, sys
g = json.load(sys.stdin)["gpus"][0]
m = lambda name: g[name] // 2**20
print(eval(sys.argv[1]))' "$1"
}

expect_gpu() {
    [ "$(gpu "$1")" = True ] || fail "not $1: $("$CARMA" gpus --json)"
}

start_all gh200x1 60
expect_gpu 'not g["unified_memory"] and g["unknown"] is None and m("total_bytes") == 97871 - 615'
stop_daemon
rm -rf "$STATE" "$CARMA_VNODE"
start_all gb10x1 60 --set settle=0s --set max_slowdown=0 --set gate=memory
# Seven eighths of MemTotal are for jobs; what the host itself uses lies within the eighth.
expect_gpu 'g["unified_memory"] and not g["lost"] and g["unknown"] is None and m("total_bytes") == 109033'
expect_gpu 'm("used_bytes") == 0 and m("unmanaged_bytes") == 0'
# It is idle: a job that wants it alone runs.
run submit --parsable --exclusive --gpu-memory 4G -- true
expect_ok wait 1
# Two of 45 GiB fit, a third waits for what is there.
for _ in 2 3 4; do
    run submit --parsable --gpu-memory 45G -- "$TRAIN" --memory 44G --sm-activity 0.2 --seconds 36000
done
until_field 2 state RUNNING
until_field 3 state RUNNING
wait_for '[ "$(gpu "m(\"used_bytes\") == 2 * 44 * 1024")" = True ]' || fail "never in use: 2 x 44 GiB: $("$CARMA" gpus --json)"
expect_gpu 'm("unmanaged_bytes") == 0'
expect_field 4 state QUEUED
shows '45.0 GiB needed' explain 4
run submit --gpu-memory 110G -- true
grep -q '106.5 GiB' "$T/err" || fail "more than there is: $(cat "$T/err")"
run cancel 2 3 4
