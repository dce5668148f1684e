#!/bin/sh
# What ended jobs tell of the next: run times of a workload, and the SM activity of a model, over a restart as well.
. "$(dirname "$0")/node.sh"
start_all a100x4-40g 200 --config /dev/null
cp "$SOURCE/data/summaries/resnet50-224.txt" resnet50.summary
cp "$SOURCE/data/summaries/vgg16-224.txt" vgg16.summary
busy="$TRAIN --memory 4G --sm-activity 0.3 --seconds 900"

# shellcheck disable=SC2086
expect_ok submit --wait --summary resnet50.summary --batch-size 32 -- $busy
shows "^Run times  [0-9:]*, the one completed run of this workload$" show 1

# Another batch size is the same model; another model is of the same family; nothing is known of its run times.
check() {
    # shellcheck disable=SC2086
    expect_ok submit --parsable --hold --summary resnet50.summary --batch-size 64 -- $busy
    same=$(cat "$T/out")
    other=$(submitted --hold --summary vgg16.summary --batch-size 32 -- true)
    "$CARMA" show --json "$same" >same.json
    "$CARMA" show --json "$other" >other.json
    python3 - same.json other.json <<'PYTHON' || fail "not corrected: $(cat same.json other.json)"
import json, sys
same, other = (json.load(open(name)) for name in sys.argv[1:])
for job, least in ((same, 250), (other, 100)):
    estimate = job["estimate"]
    lower = estimate["uncorrected_sm_activity_permille"] - estimate["sm_activity_permille"]
    assert lower >= least, (least, estimate)
assert same["estimate"]["model"].split()[0] == "cnn" and same["estimate"]["model"] != other["estimate"]["model"]
assert other["run_times"] is None, other
PYTHON
    run show "$same"
    expect_out "^Activity   [0-9]*% of the SMs, estimated ([0-9]*% before runs like it were seen)$"
}
check
restart_daemon --config /dev/null
check

# shellcheck disable=SC2086
expect_ok submit --wait --summary resnet50.summary --batch-size 32 -- $busy
# shellcheck disable=SC2086
run submit --parsable --hold --summary resnet50.summary --batch-size 32 -- $busy
shows "^run time: [0-9:]*, the median of 2 completed runs of this workload ([0-9:]* to [0-9:]*)$" \
    explain "$(cat "$T/out")"
