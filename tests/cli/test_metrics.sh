#!/bin/sh
# GET /metrics on a virtual node: it has the format, agrees with the API, and shows nothing that the queue does not. Its
# counters never fall: while jobs run and end, over a stop, a kill and the forgetting of jobs.
. "$(dirname "$0")/node.sh"
start_all h100x2-mig 300 --set retention=1m

exposition="python3 $SOURCE/tests/cli/exposition.py"

# scrape FILE: and checks it.
scrape() {
    $exposition fetch "$CARMA_SOCKET" >"$T/$1" || fail "no metrics"
    $exposition check "$T/$1" || fail "$1 is not the format"
}

# grows BEFORE AFTER
grows() {
    $exposition grows "$T/$1" "$T/$2" || fail "from $1 to $2 a counter falls"
}

# expect FILE VALUE NAME [LABEL=VALUE...]
expect() {
    expect_file=$1
    expect_value=$2
    shift 2
    found=$($exposition value "$T/$expect_file" "$@")
    [ "$found" = "$expect_value" ] || fail "$expect_file: $* is '$found', not '$expect_value'"
}

# Nobody has had a job yet.
scrape empty
expect empty 0 carma_jobs_submitted_total
expect empty 0 carma_jobs state=RUNNING
expect empty 300 carma_node_time_scale
grep -q '^carma_user' "$T/empty" && fail "users without jobs: $(grep '^carma_user' "$T/empty")"

# Names that try to be more than names, a job that shares, one that waits and one that is held.
secret=MARK-in-the-command
hostile=$(printf '"} 1 \\" \\n\\ {carma="\303\274"')
expect_ok submit --parsable -J "$hostile" --exclusive --gpu-memory 60G -- "$TRAIN" --memory 3G --sm-activity 0.6 \
    --seconds 100000
for job in 2 3; do
    run submit --parsable -o "$T/$secret" --gpu-memory 10G -- "$TRAIN" --memory 2G --sm-activity 0.3 \
        --seconds 100000
    until_field "$job" state RUNNING
done
run submit --parsable --gpu-memory 60G -- true "$secret"
expect_ok submit --parsable --hold -- true
until_field 1 placements.0.observed_bytes 3221225472
wait_for '[ "$(field 1 modelled_energy_mj)" -gt 400000000 ]'
# On a busy machine readings of the activity may be late: then it has no value.
wait_for 'scrape first; [ "$(grep -c "^carma_gpu_sm_active_ratio{" "$T/first")" -eq "$(grep -c "^carma_gpu_jobs{" "$T/first")" ]'
$exposition open "$CARMA_SOCKET" || fail "not OpenMetrics"
"$CARMA" gpus --json >gpus.json
python3 - "$SOURCE/tests/cli" "$T/first" "$hostile" <<'PYTHON' || fail "the first scrape: $(cat "$T/first")"
import json, os, sys
sys.path.insert(0, sys.argv[1])
from exposition import contents, read
metrics = read(contents(sys.argv[2]))
gpus = json.load(open("gpus.json"))["gpus"]

def of(name, **labels):
    found = [value for (_, have), value in metrics[name][2].items() if labels.items() <= dict(have).items()]
    assert len(found) == 1, (name, labels, found)
    return found[0]

info = [dict(labels) for _, labels in metrics["carma_job_info"][2] if dict(labels)["hpc_job"] == "1"]
assert [labels["name"] for labels in info] == [sys.argv[3]], info
assert info[0]["uid"] == str(os.getuid()) and info[0]["state"] == "RUNNING", info
for gpu in gpus:
    instance = gpu["kind"] == "instance"
    labels = {"UUID": gpu["parent"] if instance else gpu["uuid"]}
    if gpu["index"] is None:  # the GPU of the instances: power and energy, once
        others = [dict(have) for _, have in metrics["carma_gpu_power_watts"][2] if dict(have)["UUID"] == gpu["uuid"]]
        assert len(others) == 1 and "gpu" not in others[0] and "GPU_I_ID" not in others[0], others
        assert others[0]["hostname"] == os.uname().nodename[:63], others
        continue
    labels["gpu"] = str(gpu["index"])
    assert of("carma_gpu_info", kind=gpu["kind"], model=gpu["name"], share=gpu["share"], **labels) == 1
    assert of("carma_gpu_memory_total_bytes", **labels) == gpu["total_bytes"]
    assert of("carma_gpu_jobs", **labels) == len(gpu["jobs"])
    assert of("carma_gpu_lost", **labels) == 0
    assert 0 <= of("carma_gpu_sm_active_ratio", source="gpm", **labels) <= 1
    ids = [dict(have).get("GPU_I_ID") for _, have in metrics["carma_gpu_jobs"][2] if dict(have)["gpu"] == labels["gpu"]]
    assert (ids != [None]) == instance, ids
for name in ["carma_gpu_power_watts", "carma_gpu_energy_joules_total", "carma_gpu_xid", "carma_gpu_xids_total"]:
    assert len(metrics[name][2]) == 2 and not [labels for _, labels in metrics[name][2] if "GPU_I_ID" in dict(labels)], name
alone, = [gpu for gpu in gpus if gpu["jobs"] == [1]]
where = {"UUID": alone["uuid"], "gpu": str(alone["index"])}
assert of("carma_gpu_memory_used_bytes", **where) == of("carma_job_gpu_memory_used_bytes", hpc_job="1", **where) == 3 << 30
assert of("carma_gpu_memory_reserved_bytes", **where) == 60 << 30 == of("carma_job_gpu_memory_reserved_bytes", hpc_job="1", **where)
assert 0 < of("carma_gpu_memory_free_bytes", **where) <= alone["total_bytes"] - (60 << 30)
assert 70 <= of("carma_gpu_power_watts", **where) <= 700
assert of("carma_job_gpu_memory_peak_bytes", hpc_job="1", **where) == 3 << 30
assert of("carma_job_slowdown_ratio", hpc_job="1") == 1
assert of("carma_jobs", state="QUEUED") == 1 and of("carma_jobs", state="HELD") == 1
assert of("carma_jobs_submitted_total") == 5
assert of("carma_queue_oldest_wait_seconds") > 0
assert of("carma_decisions_total", decision="placed") >= 2
assert 1e6 < of("process_resident_memory_bytes") < 1e10 and 5 < of("process_open_fds") < of("process_max_fds")
PYTHON
grep -q "$secret" "$T/first" && fail "/metrics shows what jobs run"

# Energy is stored every 30 s: a carmad that is killed before has shared out energy that the next knows nothing of.
again_after_kill --set retention=1m
scrape early
grows first early

# While jobs run and end. The values shown once they have are those of carma stats.
run cancel 2 3
for seed in 1 2; do
    run submit --parsable --gpu-memory 10G -- "$TRAIN" --memory 2G --sm-activity 0.3 --seconds 200 --seed $seed
done
for round in 2 3 4 5 6; do
    scrape "round$round"
    [ $round = 2 ] || grows "round$((round - 1))" "round$round"
    sleep 0.2
done
run wait 6 7
run cancel 4 5
until_field 2 state CANCELLED
until_field 3 state CANCELLED
scrape ended
grows round6 ended
expect ended 2 carma_job_ends_total state=COMPLETED
expect ended 4 carma_job_ends_total state=CANCELLED

# A carmad that is killed loses the figures that it has not stored, and shows nothing less than it has shown.
again_after_kill --set retention=1m
scrape killed
grows ended killed
restart_daemon --set retention=1m
scrape restarted
grows killed restarted

run cancel 1
patience
until
    "$CARMA" stats --by user --json >stats.json && scrape last && python3 - "$SOURCE/tests/cli" "$T/last" <<'PYTHON'
import json, sys
sys.path.insert(0, sys.argv[1])
from exposition import contents, read
metrics = read(contents(sys.argv[2]))
user, = json.load(open("stats.json"))["users"]
(_, seconds), = metrics["carma_user_gpu_seconds_total"][2].items()
(_, joules), = metrics["carma_user_energy_joules_total"][2].items()
sys.exit(not (seconds == user["gpu_ns"] / 1e9 > 0 and joules == user["modelled_energy_mj"] / 1e3 > 0 and user["ended"] == 7))
PYTHON
do
    patient || {
        fail "carma stats says other than /metrics: $(cat stats.json; grep '^carma_user' "$T/last")"
        break
    }
done
grows restarted last

# While no GPU is read, a failure waits 3 s for readings. Its user has no other job, the time of which would grow.
stopped=
# shellcheck disable=SC2013 # the children are words of one line
for child in $(cat /proc/"$daemon"/task/*/children); do
    [ "$(cat /proc/"$child"/comm)" != carma-monitor ] || stopped=$child
done
kill -STOP "$stopped" || fail "carma-monitor is not found"
run submit --parsable -- sh -c 'touch over; exit 3'
wait_for '[ -e over ]' || fail "job 8 does not run"
scrape waited
until_field 8 state FAILED
scrape late
grows waited late
restart_daemon --set retention=1m
scrape later
grows late later

# Jobs that are forgotten stay counted: after the retention, with the next snapshot.
python3 - "$CARMA_SOCKET" "$SOURCE/tests/cli" <<'PYTHON' || fail "held jobs"
import json, sys
sys.path.insert(0, sys.argv[2])
from unix_http import Connection
connection = Connection(sys.argv[1])
job = {"name": "n", "command": ["true"], "directory": "/", "output": "/dev/null", "held": True, "gpu_memory_bytes": 1 << 30}
connection.request("POST", "/v1/jobs", json.dumps({"jobs": [job] * 300}))
assert connection.getresponse().status == 201
PYTHON
run cancel 9-308
# Records, until there are enough for a snapshot.
wait_for 'run submit --parsable --hold -- true; run cancel "$(cat "$T/out")"
    ! "$CARMA" show 2 2>/dev/null | grep -q "^Command "' || fail 'job 2 is not forgotten'
scrape forgotten
grows later forgotten
restart_daemon --set retention=1m
scrape again
grows forgotten again
expect again 2 carma_job_ends_total state=COMPLETED
stop_daemon
