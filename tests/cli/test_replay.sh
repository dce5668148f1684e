#!/bin/sh
# The core decides again as carmad did, byte for byte; and a store that was tampered with is reported.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 480
start_daemon --config /dev/null --set policy=round-robin --set memory_view=monitor --set settle=0s --set share=mps

# Two of these do not fit on one GPU: some crash, and recover. They start together, however busy this machine is.
jobs=0
while [ $jobs -lt 9 ]; do
    run submit --parsable --hold -- "$TRAIN" --memory 22G --sm-activity 0.4 --seconds 300
    jobs=$((jobs + 1))
done
expect_ok release 1-9
run submit --parsable --gpus 4 --exclusive -- "$TRAIN" --gpus 4 --memory 10G --seconds 30
run submit --parsable -- sh -c 'exit 3'
run submit --parsable -- "$TRAIN" --memory 10G --seconds 36000
run wait 1-11
until_field 12 state RUNNING
cancel 12
crashes=$("$CARMA" queue --all --json | python3 -c '
import json, sys
print(sum(job["crashes"] for job in json.load(sys.stdin)["jobs"]))')
[ "$crashes" -gt 0 ] || fail "no job crashed: too little to tell"

# Beside the daemon, and after it.
expect_ok simulate --replay "$STATE"
stop_daemon
shows '^[0-9]* records, [0-9]* decisions: every decision reproduced$' simulate --replay "$STATE"
cat "$T/out"

# The past as a trace: another policy's result with it.
warns '^10 jobs of the past\|^1[0-9] jobs of the past' simulate --trace "$STATE" --compare round-robin,exclusive --json
python3 -c 'import json, sys
shared, exclusive = json.load(open(sys.argv[1]))
assert 90 < shared["makespan_s"]["mean"] < 36000, shared
assert exclusive["oom"]["mean"] == 0' "$T/out" || fail "$said: $(cat "$T/out")"

# tampered NAME STATEMENT...: the store after these statements is told to be another's.
tampered() {
    name=$1
    shift
    cp -R "$STATE" "$T/$name"
    STATE=$T/$name sql "$@" || fail "$name: cannot be tampered with"
    ends 1 simulate --replay "$T/$name"
}
tampered config "UPDATE record SET body = replace(body, '\"round-robin\"', '\"exclusive\"') WHERE type = 'reconfigured'"
grep -q 'is decided otherwise' "$T/out" || fail "config: $(cat "$T/out" "$T/err")"
tampered placement "UPDATE record SET body = replace(body, '\"gpus\":[0]', '\"gpus\":[3]') WHERE seq =
    (SELECT min(seq) FROM record WHERE type = 'placed' AND body LIKE '%\"gpus\":[0]%')"
grep -q 'is decided otherwise' "$T/out" || fail "placement: $(cat "$T/out" "$T/err")"
tampered missing "UPDATE record SET type = 'timer', job = 0,
    body = printf('{\"type\":\"timer\",\"at_ns\":%d,\"job\":0}', at_ns)
    WHERE seq = (SELECT min(seq) FROM record WHERE type = 'placed')"
# The later events decide which of the two.
cat "$T/out" "$T/err" | grep -q -e "is decided otherwise" -e "'started' does not apply" ||
    fail "missing: $(cat "$T/out" "$T/err")"
tampered damaged "DELETE FROM record WHERE seq = 5"
grep -q 'record 5 is missing' "$T/err" || fail "damaged: $(cat "$T/err")"
