#!/bin/sh
# carmad dies by SIGKILL again and again while a trace plays: no job is lost, none runs twice.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 600
set -- --set policy=magm --set memory_view=monitor --set share=mps
start_daemon "$@"

# A job that ends while no daemon is there, and one that goes on.
run submit --parsable -- sh -c 'echo $$ >first; until [ -e killed ]; do sleep 0.05; done; exit 7'
run submit --parsable -- sh -c '"$0" --memory 4G --sm-activity 0.5 --seconds 60; until [ -e seen ]; do sleep 0.05; done' "$TRAIN"
until_field 1 state RUNNING
until_field 2 state RUNNING
wait_for '[ -s first ]'
stop_daemon KILL
touch killed
wait_for '! kill -0 "$(cat first)" 2>/dev/null'
start_daemon "$@"
until_field 1 state FAILED
expect_field 1 exit_status 7
expect_field 2 state RUNNING
touch seen
expect_ok wait 2
expect_field 2 attempts 1

# The jobs of a trace, each with a mark of its own in its output.
sed -n '/^#/p' "$SOURCE/data/traces/thesis_90.csv" >trace.csv
sed -n '/^[^#]/p' "$SOURCE/data/traces/thesis_90.csv" | head -25 >>trace.csv
mkdir outputs
"$CARMA" play trace.csv --output-dir "$T/outputs" --json >play.json 2>play.err &
play=$!
# Only jobs that have begun with a daemon go on without one.
until "$CARMA" queue --all --json 2>/dev/null | grep -q '"id": 3,'; do
    kill -0 $play 2>/dev/null || break
    sleep 0.05
done
kills=0
while kill -0 $play 2>/dev/null; do
    # From 0.05 to 0.6 s apart, a different place in the work each time
    sleep "0.$(printf '%02d' $((5 + kills * 17 % 55)))"
    if kill -0 $play 2>/dev/null; then
        again_after_kill "$@"
        kills=$((kills + 1))
    fi
done
wait $play || fail "play: $(cat play.err)"
[ "$kills" -ge 8 ] || fail "only $kills kills: too few to tell"
run queue --all --json
check 'len(jobs := [job for job in said["jobs"] if job["id"] > 2]) == 24 and {job["state"] for job in jobs} == {"COMPLETED"}' \
    'all(job["attempts"] == 1 + job["crashes"] for job in said["jobs"] if job["id"] > 2)'
started=$(cat outputs/* | grep -c '^carma-train: .* on [12] GPU')
crashed=$(cat outputs/* | grep -c 'CUDA out of memory')
[ "$started" -eq $((24 + crashed)) ] || fail "$started starts and $crashed crashes of 24 jobs"
echo "$kills kills"
# A snapshot is made of 250 records, with others behind it; between kills there may be no time for one.
PYTHONPATH=$SOURCE/python python3 -B -c 'import carma, sqlite3, sys, time
jobs = carma.submit_all([(["true"], {"hold": True})] * 250)
store, end = sqlite3.connect(sys.argv[1]), time.monotonic() + 60
while not store.execute("SELECT count(*) FROM snapshot").fetchone()[0] and time.monotonic() < end:
    time.sleep(0.05)
for job in jobs[:50]:
    job.cancel()' "$STATE/store.db"
end_daemon

# The jobs' data are those of a snapshot and the log behind it, to the letter.
[ "$(sql 'SELECT count(*) >= 1 AND max(snapshot.seq) < (SELECT max(seq) FROM record) FROM snapshot')" = 1 ] ||
    fail "no snapshot was made, or nothing is behind it: the log is not tried"
start_daemon "$@"
shown() {
    "$CARMA" queue --all --json | python3 -c '
import json, sys
for job in json.load(sys.stdin)["jobs"]:
    print(json.dumps(job, sort_keys=True))'
}
shown >before.json
again_after_kill "$@"
shown >after.json
cmp before.json after.json || fail "after a restart, jobs are shown differently: $(diff before.json after.json | head -4)"
stop_daemon

# A long log without a snapshot: the new one is made of all of it, also when there is no time for another.
[ "$(sql 'SELECT count(*) FROM record')" -gt 250 ] || fail "only $(sql 'SELECT count(*) FROM record') records"
sql "DELETE FROM snapshot" || fail "the snapshots cannot be taken away"
start_daemon "$@"
stop_daemon KILL
expect_ok admin verify --state "$STATE"
start_daemon "$@"
shown >after.json
cmp before.json after.json || fail "without a snapshot, jobs are shown differently: $(diff before.json after.json | head -4)"
stop_daemon

# Settings that a restart changes are decided by; those that it does not change are not stored again.
reconfigured() {
    sql "SELECT count(*) FROM record WHERE type = 'reconfigured'"
}
[ "$(reconfigured)" -eq 1 ] || fail "the same settings were stored $(reconfigured) times"
for setting in backfill=yes oom_retry=step learn=yes max_slowdown=2.5; do
    set -- "$@" --set "$setting"
    before=$(reconfigured)
    start_daemon "$@"
    stop_daemon
    [ "$(reconfigured)" -eq $((before + 1)) ] || fail "a restart with $setting goes on with the old settings"
done
