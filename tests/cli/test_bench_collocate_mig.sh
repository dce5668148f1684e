#!/bin/sh
# carma bench collocate on MIG instances of a virtual node.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/collocate.sh"

# MIG instances, the largest first; on a GPU in MIG mode the baseline runs on the largest, and nothing else is possible.
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
