#!/bin/sh
# Playing a trace: refusals before anything is submitted, requests, a lost answer, the report, Ctrl-C.
. "$(dirname "$0")/lib.sh"

CARMA_PREFIX=$T/prefix
export CARMA_PREFIX
mkdir -p "$T/prefix/bin" "$T/prefix/share/carma"
printf '#!/bin/sh\n' | program "$T/prefix/bin/carma-train"
cp "$SOURCE/data/workloads.csv" "$T/prefix/share/carma/workloads.csv"
ln -s "$SOURCE/data/summaries" "$T/prefix/share/carma"
ln -s "$SOURCE/data/summaries" "$T"
header=$(grep -v '^#' "$SOURCE/data/traces/thesis_90.csv" | head -n 1)
printf '%s,gpus,duration_s\n0,gpt2_large_2,,\n3600,resnet18_cifar100_20e_3,2,500.5\n' "$header" >"$T/two.csv"
printf '%s\n0,gpt2_large_2\n3600,nonesuch\n' "$header" >"$T/unknown.csv"
printf '%s\n5,gpt2_large_2\n4,gpt2_large_2\n' "$header" >"$T/unordered.csv"

# The first POST's answer is lost although its job was taken (5); the second is lost before it was (6 is the third).
job() {
    printf '{"id": %s, "name": "%s", "uid": %s, "state": "%s", "gpus": 1, "output": "%s", "crashes": %s,
        "submitted_ns": %s000000000, "first_started_ns": %s000000000, "started_ns": %s000000000,
        "ended_ns": %s000000000}' "$@"
}
gpus() {
    printf '[200, {"gpus": [{"index": 0, "uuid": "GPU-a", "name": "Virtual GPU", "observed_ns": %s000000000,
        "energy_mj": %s, "memory_byte_seconds": %s, "sm_activity_seconds": %s}]}]' "$@"
}
me=$(id -u)
other=$(job 4 other "$me" COMPLETED /elsewhere 0 1 1 1 1)
first=$(job 5 gpt2_large_2 "$me" COMPLETED "$T/out1/0001-gpt2_large_2.out" 1 100 110 200 500)
second=$(job 6 resnet18_cifar100_20e_3 "$me" COMPLETED "$T/out1/0002-resnet18_cifar100_20e_3.out" 0 120 150 150 250)
cat >"$T/answers.json" <<JSON
{"GET /v1/status": [200, {"policy": "magm", "memory_view": "reserve", "share": "mps", "time_scale": 10000, "gpus": 2}],
 "GET /v1/gpus": [$(gpus 100 1000000 0 0), $(gpus 600 61000000 5000000000 250)],
 "POST /v1/jobs": [[200, "close"], [200, "close"], [201, {"jobs": [{"id": 6}]}],
    [422, {"error": "no more of that"}]],
 "GET /v1/jobs?state=all": [[200, {"jobs": [$other]}], [200, {"jobs": [$other, $first]}]],
 "GET /v1/jobs/4": [200, $other],
 "GET /v1/jobs/5": [200, $first],
 "GET /v1/jobs/6": [200, $second],
 "GET /v1/jobs": [200, {"now_ns": 1, "jobs": []}]}
JSON
start_fake "$T/answers.json"

expect_error 1 "unknown.csv:3" play "$T/unknown.csv"
expect_error 1 "unordered.csv:3" play "$T/unordered.csv"
expect_error 1 "none.csv" play "$T/none.csv"
sed '/^gpt2_large_2,/s/,[12],/,8,/' "$SOURCE/data/workloads.csv" >"$T/wide.csv"
cmp -s "$T/wide.csv" "$SOURCE/data/workloads.csv" && fail "no workload was widened"
expect_error 1 "two.csv:2: workload 'gpt2_large_2' needs 8 GPUs, the node has 2" \
    play --workloads "$T/wide.csv" "$T/two.csv"
printf '%s,gpus\n0,resnet,3\n' "$header" >"$T/large.csv"
expect_error 1 "large.csv:2: workload 'resnet' needs 3 GPUs, the node has 2" play "$T/large.csv"
printf 'vc,submit_s,gpus,duration_s_v100\na,0,1,60\n' >"$T/philly.csv"
expect_error 1 "philly.csv: its jobs have no workloads: give them some with carma trace build" play "$T/philly.csv"
expect_error 1 "is not empty" play --output-dir "$T" "$T/two.csv"
expect_error 1 "--program $T/none: No such file" play --program "$T/none" "$T/two.csv"
expect_error 1 "--program $T/two.csv: Permission denied" play --program "$T/two.csv" "$T/two.csv"
printf '%s,uid\n0,gpt2_large_2,4294900000\n' "$header" >"$T/users.csv"
[ "$(id -u)" -ne 0 ] || expect_error 1 "users.csv:2: uid 4294900000 has no account here" play "$T/users.csv"
[ -e "$T/answers.json.posts" ] && fail "something was submitted before all was checked"

expect_ok play --estimates --jitter 0.03 --seed 2 --output-dir "$T/out1" --json "$T/two.csv"
expect_golden cli-play.json
[ "$(wc -l <"$T/answers.json.posts")" -eq 3 ] || fail "$said: $(cat "$T/answers.json.posts") $(cat "$T/err")"
python3 - "$T/out" "$T/answers.json.posts" "$T" <<'PYTHON' || fail "the report or the request is wrong"
import json, sys
report = json.load(open(sys.argv[1]))
expected = {"jobs": 2, "failed": 0, "makespan_s": 400, "wait_mean_s": 20, "run_time_mean_s": 200,
            "jct_mean_s": 265, "oom": 1, "energy_j": 60000, "memory_mean_bytes": 1e7, "sm_activity_mean": 0.5,
            "time_scale": 10000, "policy": "magm", "share": "mps", "memory_view": "reserve", "node": ["Virtual GPU"],
            "trace": "two.csv", "estimates": True, "incomplete": False, "users": 1, "jain_index": 1}
for name, value in expected.items():
    assert report[name] == value, (name, report[name], value)
posts = [json.loads(line)[1]["jobs"] for line in open(sys.argv[2])]
assert posts[1] == posts[2] != posts[0] and all(len(jobs) == 1 for jobs in posts), posts
job = posts[0][0]
assert job["command"] == [sys.argv[3] + "/prefix/bin/carma-train", "--workload", "gpt2_large_2", "--progress", "--jitter",
                          "0.029999999999999999", "--seed", "2000006"], job["command"]
assert job["name"] == "gpt2_large_2" and job["directory"] == sys.argv[3] + "/out1"
assert job["output"] == sys.argv[3] + "/out1/0001-gpt2_large_2.out"
assert job["gpus"] == 2 and "CARMA_TIME_SCALE=10000" in job["environment"]
assert posts[1][0]["gpus"] == 2 and posts[1][0]["command"][4:8] == ["--gpus", "2", "--seconds", "500.5"], posts[1]
assert job["gpu_memory_bytes"] == job["recorded_bytes"]["gpumemnet"] and job["recorded_bytes"]["horus"], job
PYTHON

# Side by side, and the meaning of a change.
sed 's/400\.0/300.0/; s/"magm"/"exclusive"/; s/"oom": 1/"oom": 0/' "$T/out" >"$T/b.json"
cp "$T/out" "$T/a.json"
for width in 80 120; do
    COLUMNS=$width run compare "$T/a.json" "$T/b.json"
    expect_status 0
    expect_golden "cli-compare-$width.txt"
done

# A play that is incomplete is compared with nothing.
sed 's/"failed": 0/"failed": 1/' "$T/b.json" >"$T/c.json"
for pair in "a c" "c a"; do
    # shellcheck disable=SC2086 # two words
    set -- $pair
    ends 3 compare "$T/$1.json" "$T/$2.json"
    grep -q '[-+][0-9.]*%$' "$T/out" && fail "$said: changes: $(cat "$T/out")"
    expect_out '^exclusive, mps: incomplete, not comparable: 1 of 2 jobs did not complete$'
done

# A refusal in the middle: the submitted jobs are cancelled, and it is reported.
printf '#!/bin/sh\n' | program "$T/train.sh"
cd "$T" || exit 99
ends 1 play --output-dir "$T/out2" --program train.sh "$T/two.csv"
tail -n 1 "$T/answers.json.posts" | grep -qF "\"command\": [\"$T/train.sh\", \"--workload\"" ||
    fail "$said: another program: $(tail -n 1 "$T/answers.json.posts")"
grep -q '^carma: no more of that$' "$T/err" || fail "$said: $(cat "$T/err")"
grep -q '^carma: stopped after 0 of 2 jobs' "$T/err" || fail "$said: $(cat "$T/err")"

# A job that fails makes the play incomplete: the report is printed, and the status says so.
python3 - "$T/answers.json" "$T/failed.json" <<'PYTHON'
import json, sys
answers = json.load(open(sys.argv[1]))
answers["POST /v1/jobs"] = [[201, {"jobs": [{"id": number}]}] for number in (5, 6)]
answers["GET /v1/jobs/6"][1]["state"] = "FAILED"
json.dump(answers, open(sys.argv[2], "w"))
PYTHON
rm "$T/input" "$T/ready"
CARMA_SOCKET=$T/failed.sock
start_fake "$T/failed.json"
ends 3 play --output-dir "$T/out3" --json "$T/two.csv"
expect_out '"incomplete": true'
grep -q '^carma: 1 of 2 jobs did not complete' "$T/err" || fail "$said: $(cat "$T/err")"
