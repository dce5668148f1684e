#!/bin/sh
# Usage: test_gpus_kinds.sh CARMA SOURCE BUILD FAKE_DCGM
# GPUs in MIG mode, GPUs and instances that only DCGM can measure, and a DCGM that cannot. The DCGM is the tests' own.
DCGM=$(realpath "$4") || exit 99
. "$(dirname "$0")/node.sh"
start_all h100x2-mig 60

# A GPU in MIG mode heads its instances and takes no job; they do, and their energy is part of their GPU's.
"$CARMA" gpus --json >gpus.json
python3 - gpus.json <<'PYTHON' || fail "GPUs in MIG mode: $(cat gpus.json)"
import json, sys
gpus = json.load(open(sys.argv[1]))["gpus"]
heads = [g for g in gpus if g["kind"] == "partitioned"]
instances = [g for g in gpus if g["kind"] == "instance"]
assert heads and instances, [g["kind"] for g in gpus]
assert [g["index"] for g in gpus if g["kind"] != "partitioned"] == list(range(len(gpus) - len(heads)))
assert all(g["index"] is None and g["jobs"] == [] and g["energy_mj"] > 0 for g in heads)
for at, g in enumerate(gpus):
    if g["kind"] == "instance":
        head = next(h for h in reversed(gpus[:at]) if h["kind"] != "instance")
        assert head["uuid"] == g["parent"], "an instance does not stand behind its GPU"
        assert g["energy_mj"] is None and g["power_mw"] is None
PYTHON
shows ' MIG:$' gpus
# One job for each place, so that some are on instances.
for _ in 1 2 3 4 5; do
    run submit --parsable --exclusive -- "$TRAIN" --memory 2G --sm-activity 0.1 --seconds 300
done
expect_ok wait 1-5
"$CARMA" queue --all --json >jobs.json
python3 - jobs.json <<'PYTHON' || fail "energy of jobs on instances"
import json, sys
jobs = json.load(open(sys.argv[1]))["jobs"]
where = {job["placements"][0]["uuid"][:3]: job["modelled_energy_mj"] for job in jobs}
assert set(where) == {"MIG", "GPU"}, where
assert all(job["modelled_energy_mj"] > 100000 for job in jobs), jobs
on_instances = [1e6 * job["modelled_energy_mj"] / job["gpu_ns"] for job in jobs if job["placements"][0]["uuid"].startswith("MIG")]
# The jobs keep as many SMs busy; only the instance's part of the idle power differs.
assert 2 * max(on_instances) > 3 * min(on_instances), "half of the GPU and an eighth take the same W: %s" % on_instances
PYTHON

# As it was found, the order is NVML's; after a change of the cards it is told, though instances have numbers as well.
"$CARMA" doctor | cat - daemon.log | grep "nvidia-smi's" && fail "an order that is NVML's is told as another"
stop_daemon
"$PREFIX/bin/carma-vnode" inject reindex
start_daemon
order="GPU 0 is a part of nvidia-smi's 1, .*GPU 4 is nvidia-smi's 0: a number of carma's stays with its GPU, by UUID"
grep -q "$order" daemon.log || fail "the log: $(cat daemon.log)"
"$CARMA" doctor | tr -s '\n ' ' ' | grep -q "warn GPUs $order" || fail "doctor does not say that numbers differ"
stop_daemon

# until_gpus CONDITION: a Python expression on `gpus`, the daemon's list; waits for it.
until_gpus() {
    wait_for '"$CARMA" gpus --json >gpus.json && python3 -c "import json, sys
node = json.load(open(\"gpus.json\"))
gpus = node[\"gpus\"]
sys.exit(not eval(sys.argv[1]))" "$1"' "$@" || fail "never: $1: $(cat gpus.json)"
}

# Without GPM it is DCGM that measures.
rm -rf "$CARMA_VNODE" "$STATE"
start_node a100x4-40g-nogpm 60
FAKE_DCGM=vnode
export FAKE_DCGM
start_daemon --set dcgm_library="$DCGM"
until_gpus 'all(g["metrics"]["sm_activity"]["source"] == "dcgm" for g in gpus)'
run gpus
grep -q '^~' "$T/out" && fail "DCGM's measurement is called coarse"
"$CARMA" gpus --watch=0.05 | head -n 2 >"$T/out"
tail -n 1 "$T/out" | grep -q ' dcgm ' || fail "gpus --watch does not name DCGM: $(cat "$T/out")"

# MIG instances that only DCGM can measure.
end_daemon
rm -rf "$CARMA_VNODE" "$STATE"
start_all a100x2-mig 20 --set dcgm_library="$DCGM"
until_gpus 'all(g["metrics"]["sm_activity"]["source"] == "dcgm" for g in gpus if g["kind"] != "partitioned")'

# The instance that a job is on is active, and no other one.
runs 1 --gpu-memory 12G -- "$TRAIN" --memory 11G --sm-activity 0.4 --seconds 6000
uuid=$(field 1 placements.0.uuid)
until_gpus "all((g['metrics']['sm_activity']['value'] > 0) == (g['uuid'] == '$uuid') for g in gpus if g['kind'] != 'partitioned')"
"$CARMA" cancel 1 >/dev/null
stop_daemon

# A DCGM that may not profile: NVML's utilisation stands in where there is one, and why is said once.
FAKE_DCGM=vnode,watch=-29
start_daemon --set dcgm_library="$DCGM"
until_gpus 'node["limits"] and "requires root (-29): run nv-hostengine, or carmad, as root" in node["limits"]'
until_gpus 'any(g["metrics"]["sm_activity"]["source"] == "utilization" for g in gpus if g["kind"] == "whole")'
stop_daemon
[ "$(grep -c "requires root (-29)" daemon.log)" -eq 1 ] || fail "said more than once: $(cat daemon.log)"
