#!/bin/sh
# Usage: test_dcgm.sh CARMA SOURCE BUILD FAKE_DCGM
# MIG instances that only DCGM can measure, and a DCGM that cannot, for the whole system on a virtual node. The DCGM is the
# tests' own.
FAKE_DCGM_LIBRARY=$(realpath "$4") || exit 99
. "$(dirname "$0")/node.sh"

# until_gpus CONDITION: a Python expression on `gpus`, the daemon's list; waits for it.
until_gpus() {
    wait_for '"$CARMA" gpus --json >gpus.json && python3 -c "import json, sys
node = json.load(open(\"gpus.json\"))
gpus = node[\"gpus\"]
sys.exit(not eval(sys.argv[1]))" "$1"' "$@" || fail "never: $1: $(cat gpus.json)"
}

FAKE_DCGM=vnode
export FAKE_DCGM
start_all "$SOURCE/data/nodes/a100x2-mig.ini" 20 --set dcgm_library="$FAKE_DCGM_LIBRARY"
until_gpus 'all(g["metrics"]["sm_activity"]["source"] == "dcgm" for g in gpus if g["kind"] != "partitioned")'

# The instance that a job is on is active, and no other one.
runs 1 --gpu-memory 12G -- "$TRAIN" --memory 11G --sm-activity 0.4 --seconds 6000
uuid=$(field 1 placements.0.uuid)
until_gpus "all((g['metrics']['sm_activity']['value'] > 0) == (g['uuid'] == '$uuid') for g in gpus if g['kind'] != 'partitioned')"
"$CARMA" cancel 1 >/dev/null
stop_daemon

# A DCGM that may not profile: NVML's utilisation stands in where there is one, and why is said once.
FAKE_DCGM=vnode,watch=-29
start_daemon --set dcgm_library="$FAKE_DCGM_LIBRARY"
until_gpus 'node["limits"] and "requires root (-29): run nv-hostengine, or carmad, as root" in node["limits"]'
until_gpus 'any(g["metrics"]["sm_activity"]["source"] == "utilization" for g in gpus if g["kind"] == "whole")'
stop_daemon
[ "$(grep -c "requires root (-29)" daemon.log)" -eq 1 ] || fail "said more than once: $(cat daemon.log)"
