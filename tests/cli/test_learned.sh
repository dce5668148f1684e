#!/bin/sh
# carma admin learned: who may see what was learned of whom, and forget it, over a restart and in a replay as well.
. "$(dirname "$0")/users.sh"
. "$SOURCE/tests/cli/faults.sh"
homes
start_all a100x4-40g 200 --config /dev/null --set admin_group=carma-admins --set auto_capture=off
cp "$SOURCE/data/summaries/resnet50-224.txt" resnet50.summary
chmod 644 resnet50.summary

train() { # USER NAME
    run_as "$1" submit --wait -J "$2" --summary "$T/resnet50.summary" --batch-size 32 -- "$TRAIN" --memory 4G \
        --sm-activity 0.3 --seconds 900
    expect_status 0
}
# learned EXPRESSION: holds of the answer's users (u, by name) and workloads (w).
learned() {
    allowed carol admin learned --json
    check "(lambda u, w: $1)({user['user']: user for user in said['users']}, said['workloads'])"
}
# corrected USER: whether the estimate of its next such job is another than the estimator's.
corrected() {
    allowed "$1" submit --parsable --hold --summary "$T/resnet50.summary" --batch-size 64 -- true
    run_as "$1" show --json "$(cat "$T/out")"
    python3 -c 'import json, sys
estimate = json.load(sys.stdin)["estimate"]
sys.exit(estimate["sm_activity_permille"] == estimate["uncorrected_sm_activity_permille"])' <"$T/out"
}

train alice hers
train bob his
refused bob "for administrators" admin learned
refused bob "for administrators" admin learned --forget alice
refused bob "for administrators" admin drain --reason mine
refused bob "for administrators" admin reserve --gpus 0 --user 1 --for 1h
learned 'u["alice"]["runs"] == u["bob"]["runs"] == 1 and u["alice"]["told"] and u["alice"]["models"] == 1'
learned '[(x["user"], x["name"], x["runs"], x["told"]) for x in w] == [("alice", "hers", 1, True), ("bob", "his", 1, True)]'
learned 'all(x["first_bytes"] >= 4 << 30 and x["sm_activity_permille"] for x in w)'
corrected alice || fail "alice's own run says nothing"
if corrected carol; then fail "one run of alice's and one of bob's lower carol's estimate"; fi
run_as carol admin learned
grep -q "^alice  *1  *1 .*yes$" "$T/out" || fail "no row of alice: $(cat "$T/out")"
grep -q "^bob  *[0-9a-f]*:[0-9a-f]*  *his .*yes$" "$T/out" || fail "no row of bob's workload: $(cat "$T/out")"

refused carol "there is no user or workload 'mallory': carma admin learned lists them" admin learned --forget mallory
run_as carol admin learned --forget alice
expect_output "forgotten: what was learned of alice"
is_forgotten() {
    learned '"alice" not in u and u["bob"]["runs"] == 1 and [x["user"] for x in w] == ["bob"]'
    if corrected alice; then fail "alice's run still tells"; fi
}
is_forgotten
restart_daemon --config /dev/null --set admin_group=carma-admins --set auto_capture=off
is_forgotten
run_as carol admin learned --json
workload=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["workloads"][0]["workload"])' <"$T/out")
allowed carol admin learned --forget "$workload"
learned 'w == []'
# Beside another's small process a run teaches its memory, and nothing of its SM activity.
others=
for gpu in 0 1 2 3; do
    CUDA_VISIBLE_DEVICES=$gpu "$TRAIN" --memory 300M --sm-activity 0.9 --seconds 1000000 >/dev/null &
    others="$others $!"
    until_gpu $gpu used_bytes $((300 << 20))
done
train bob beside
# shellcheck disable=SC2086 # pids
kill $others
learned '[(x["name"], x["runs"], x["sm_activity_permille"]) for x in w] == [("beside", 1, None)]'
stop_daemon
expect_ok admin verify --state "$STATE"
expect_ok simulate --replay "$STATE"
