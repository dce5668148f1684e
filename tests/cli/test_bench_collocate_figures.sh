#!/bin/sh
# The figures of carma bench collocate on a virtual node agree with the node's model of sharing,
# on MIG instances as well.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/collocate.sh"

start_node a100x4-40g 200
# Its figures against src/contention's formulas (docs/contention.md): times and throughput within 6%, the rest within 5
# points or percent. A job loads for 12 s before it trains. Both keep the SMs as busy: so both are slowed alike.
cat >"$T/commands" <<END
small: exec $TRAIN --memory 2G --sm-activity 0.5 --seconds 600
large: exec $TRAIN --memory 8G --sm-activity 0.5 --seconds 600
END
expect_ok bench collocate --commands "$T/commands" --mode time-slice,mps --mix small+large --gpu 2 \
    --mps-control "$T/mps-control" --output "$T/results" --json
expect_nothing_left
[ "$(wc -l <"$T/mps-started")" -eq 1 ] || fail "$said: not one MPS daemon: $(cat "$T/mps-started")"
python3 - "$T/results/collocate.json" <<'PYTHON' || fail "$said: figures"
import json, math, sys

report = json.load(open(sys.argv[1]))
activity, memory, work, load = {"small": 0.5, "large": 0.5}, {"small": 2, "large": 8}, 600, 12

def rate(mode, names):
    if len(names) == 1:
        return 1
    a = [activity[n] / (1 if mode == "mps" else 0.65) for n in names]
    both = math.prod(a)  # want the GPU at once
    return (sum(a) - both - (0 if mode == "mps" else 0.1) * both) / sum(a)

def near(what, value, wanted, tolerance):
    assert value is not None and abs(value - wanted) <= tolerance, f"{what}: {value}, not {wanted} +- {tolerance}"

expected = [("time-slice", True, ["small"]), ("time-slice", True, ["large"])]
names = ["small", "large"]
expected += [("time-slice", False, names), ("mps", False, names)]
assert len(report["runs"]) == len(expected), report
assert report["time_scale"] == 200 and report["gpu"]["name"] == "NVIDIA A100-SXM4-40GB"
for run, (mode, alone, names) in zip(report["runs"], expected):
    what = f"{mode} {names}"
    assert (run["mode"], run["alone"], run["result"]) == (mode, alone, "ok"), run
    assert [job["command"] for job in run["each"]] == names, run
    r = rate(mode, names)
    total = load + work / r
    near(what + " time per epoch", run["each"][0]["epoch_s"], total, 0.06 * total)
    near(what + " total", run["total_s"], total, 0.06 * total)
    throughput = len(names) * (load + work) / total
    near(what + " throughput", run["throughput"], throughput, 0.06 * throughput)
    near(what + " slowdown", run["each"][-1]["slowdown"], len(names) / throughput, 0.06 * len(names) / throughput)
    near(what + " serial", run["serial_s"], len(names) * (load + work), 0.06 * len(names) * (load + work))
    s = min(1, sum(activity[n] * r for n in names))
    near(what + " SM activity", run["metrics"]["sm_activity"]["mean"], s, 0.05)
    power = 53.8 + (275.5 - 53.8) * (1 - math.exp(-1.493 * s)) / (1 - math.exp(-1.493))
    near(what + " power", run["power_w"], power, 0.05 * power)
    near(what + " energy", run["energy_per_job_j"], power * total / len(names), 0.1 * power * total / len(names))
    near(what + " memory", run["memory_peak_bytes"] / 2**30, sum(memory[n] for n in names), 0.1)
    assert run.get("mps_observed", mode == "mps") is (mode == "mps"), run
PYTHON
[ "$(grep -c 'carma-train: done' "$T/results/mps-small+large/job-2.log")" -eq 1 ] || fail "$said: a job's output is not kept"
expect_picture "$T/results/collocate.json" "throughput, alone = 1" "energy per job" "small+large" "mps" "(simulated)"

# MIG instances, the largest first; on a GPU in MIG mode the baseline runs on the largest, and nothing else is possible.
CARMA_VNODE=$T/mig
start_node h100x2-mig 200
expect_ok bench collocate --degrees 2,5 --json -- "$TRAIN" --memory 2G --sm-activity 0.6 --seconds 300
python3 - "$T/out" <<'PYTHON' || fail "$said: MIG"
import json, sys
runs = {("alone" if run["alone"] else run["mode"], run["degree"]): run for run in json.load(open(sys.argv[1]))["runs"]}
assert len(runs) == 7, runs.keys()
assert runs["time-slice", 2]["reason"] == runs["mps", 5]["reason"] == "the GPU is in MIG mode", runs
assert runs["mig", 5]["result"] == "skipped" and "only 4 MIG instances" in runs["mig", 5]["reason"], runs["mig", 5]
alone, two = runs["alone", 1]["each"], runs["mig", 2]["each"]
assert alone[0]["instance"] == two[0]["instance"] != two[1]["instance"], runs
for job, slices in ((alone[0], 3), (two[0], 3), (two[1], 2)):
    share = (slices / 7) ** 0.57 * (slices + (slices == 3)) ** 0.43 / 8 ** 0.43  # 3 compute slices come with 4 of memory
    wanted = 12 + 300 * (1 - 0.6 / 0.65 + 0.6 / share)
    assert abs(job["seconds"] - wanted) < 0.08 * wanted, (job, wanted)
PYTHON
shows '"instance": "MIG-' bench collocate --degrees 2 --mode mig --gpu 1 --json -- sleep 0.1
expect_nothing_left
