#!/bin/sh
# Leases: GPUs for processes that somebody else starts.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/leases.sh"
start_all a100x4-40g 20

# Only root may name a user; anybody may ask how much room there is.
expect_ask 200 "capacity" GET /v1/capacity
[ "$(said gpus) $(said lost)" = "4 0" ] || fail "capacity: $answer"
[ "$(said fits_bytes.3)" -gt $((30 << 30)) ] || fail "capacity of an idle node: $answer"
if [ "$(id -u)" -ne 0 ]; then
    lease 1 0 5
    expect 403 "a lease for a user"
    stop_daemon
    skip "only root can be given leases"
fi

# The same key gives the same lease, and the environment that a job of carma would have.
lease 100 0 12
expect 201 "a lease"
first=$id
[ "$(said environment.CUDA_VISIBLE_DEVICES)" = "$(said gpus.0)" ] || fail "its environment: $answer"
[ "$(said environment.CARMA_JOB_ID)" = "$first" ] || fail "its environment: $answer"
[ "$(said request_bytes)" = $((12 << 30)) ] || fail "its request: $answer"
lease 100 0 12
[ "$id" = "$first" ] || fail "the same key gave lease $id, not $first"
task "$first" batch 10
until_field "$first" state RUNNING

# Its task is older than its lease, and known as its own all the same.
wait_for '[ "$(field "$first" placements.0.observed_bytes)" -ge $((10 << 30)) ]' ||
    fail "its memory is not seen: $("$CARMA" gpus)"
"$CARMA" gpus | grep -q unmanaged && fail "a task of the lease is unmanaged: $("$CARMA" gpus)"
[ "$(field "$first" engine) $(field "$first" cluster) $(field "$first" slurm_job)" = "slurm c 100" ] ||
    fail "the job does not say whose it is: $("$CARMA" show --json "$first")"

# carmad is killed; the next one knows it and its task, by the same key.
again_after_kill
until_field "$first" state RUNNING
lease 100 0 12
[ "$id" = "$first" ] || fail "after a kill the key gave lease $id, not $first"
ask GET "/v1/leases/by-key?cluster=c&job=100"
[ "$(said leases.0.steps.0)" = batch ] || fail "the steps after a kill: $answer"
"$CARMA" gpus | grep -q unmanaged && fail "after a kill a task of the lease is unmanaged: $("$CARMA" gpus)"

# Nobody but Slurm ends its jobs.
run cancel "$first"
grep -q "Slurm's job 100" "$T/err" || fail "carma cancel of a lease: $(cat "$T/err")"

# Its end is told, twice.
end_task
expect_ask 200 "the end" POST "/v1/leases/$first/end" '{"exit_status": 0}'
[ "$(said cause) $(said verdict)" = "completed done" ] || fail "the end: $answer"
[ "$(said peak_bytes)" -ge $((10 << 30)) ] || fail "the peak at its end: $answer"
[ "$(said gpu_ns)" -gt 0 ] || fail "the time at its end: $answer"
before=$(printf '%s' "$answer" | sed 's/"energy_mj":[0-9]*//') # which one more reading of its GPU may raise
ask POST "/v1/leases/$first/end" '{"signal": 9}'
[ "$(printf '%s' "$answer" | sed 's/"energy_mj":[0-9]*//')" = "$before" ] ||
    fail "the second end says $answer, the first said $before"
expect_field "$first" state COMPLETED

# Out of memory: the lease goes back with a larger request; the next start is a lease of its own.
lease 101 0 5
task "$id" 0 7
ask POST "/v1/leases/$id/end" '{"exit_status": 1, "output": "RuntimeError: x\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 30.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 1.00 GiB is free.\n"}'
expect 200 "the end of one without memory"
[ "$(said cause) $(said verdict)" = "gpu_oom retry" ] || fail "out of memory: $answer"
[ "$(said request_bytes)" -gt $((5 << 30)) ] || fail "the next request: $answer"
expect_field "$id" state RETURNED
end_task

# A larger restart ends the lease of the start before.
lease 102 0 5
older=$id
lease 102 1 6
expect 201 "the next start"
[ "$id" != "$older" ] || fail "another start has the same lease"
until_field "$older" state CANCELLED
newer=$id
lease 102 0 5
expect 422 "the start before"
ask POST "/v1/leases/$newer/end" '{"signal": 15, "stopped": true}'
[ "$(said cause) $(said verdict)" = "stopped done" ] || fail "a stopped one: $answer"

# Never, and not now.
lease 103 0 500
expect 422 "more than any GPU has"
[ "$(said when)" = never ] || fail "more than any GPU has: $answer"
lease 104 0 5 ', "gpus": 4, "exclusive": true'
whole=$id
lease 105 0 5 ', "wait_ms": 300'
expect 409 "no GPU is free"
[ "$(said when)" = later ] || fail "no GPU is free: $answer"
[ -n "$(said code)" ] || fail "no GPU is free: $answer"
ask GET "/v1/leases/by-key?cluster=c&job=105"
[ "$(said leases.0.state)" = EXPIRED ] || fail "one that was not placed: $answer"

# Processes that go without a word: an orphan.
id=$whole
ask GET "/v1/leases/by-key?job=104"
answer=$(printf '%s' "$answer" | python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["leases"][0]))')
task "$whole" 0 4
until_field "$whole" state RUNNING
end_task
until_field "$whole" state LOST
expect_field "$whole" exit_cause orphan

# Steps of what is not the job's: carmad, its threads, its children and what it is a child of; other users' and other
# jobs' processes; carma's groups, and those with carma's in them.
refused_step() {
    ask PUT "/v1/leases/$id/steps/7" "$2"
    case $status in
    400 | 409) ;;
    *) fail "a step of $1: $status $answer" ;;
    esac
}
lease 109 0 5
own=$(said cgroup)
other=$(submitted --gpu-memory 1G -- sleep 98765)
until_field "$other" state RUNNING
jobs_pid=$(sed -n 's/^process \([0-9]*\).*/\1/p' "$STATE/runs/$other-1-1/status")
setpriv --reuid=12345 --clear-groups sleep 98764 &
stranger=$!
until [ "$(sed -n 's/^Uid:.//p' "/proc/$stranger/status" | cut -f1)" = 12345 ]; do sleep 0.02; done
threads=$(ls "/proc/$daemon/task")
children=$(cat "/proc/$daemon/task/$daemon/children")
for no_task in $threads $children $$ $stranger $jobs_pid; do
    refused_step "process $no_task, $(cat "/proc/$no_task/comm")" "{\"pids\": [$no_task]}"
done
if [ "$own" != None ]; then
    group=$(sed -n 's/^0:://p' "/proc/$jobs_pid/cgroup")
    while [ "$group" ]; do
        refused_step "the group $group" "{\"cgroup\": \"$group\"}"
        refused_step "the group $group, beside a process" "{\"cgroup\": \"$group\", \"pids\": [$stranger]}"
        group=${group%/*}
    done
fi
ask GET /v1/leases
said leases | grep -q "'7'" && fail "a refused step is left: $answer"
kill "$stranger"
wait "$stranger" 2>/dev/null
run cancel "$other"
expect_ask 200 "the end of one without a step" POST "/v1/leases/$id/end" '{"exit_status": 0}'

# One whose shepherd does not answer: carmad ends it after a while, and none of its processes.
lease 110 0 5
silent=$id
task "$silent" 0 4
left=$pid
until_field "$silent" state RUNNING
kill -STOP "$(sed -n 's/^shepherd \([0-9]*\).*/\1/p' "$STATE/runs/$silent-1-1/status")"
timeout "${PATIENCE_S:-300}" python3 -B "$SOURCE/tests/cli/leases.py" "$CARMA_SOCKET" POST "/v1/leases/$silent/end" '{"exit_status": 0}' >ended &
ends=$!

# A task that enters the group that carma made: it is the lease's, and is ended with it; the group goes, too.
lease 107 0 9
group=$(said cgroup)
if [ "$group" != None ]; then
    task "$id" batch 8
    echo "$pid" >"$group/cgroup.procs" || fail "a task cannot enter $group"
    until_field "$id" placements.0.observed_bytes $((8 << 30))
    expect_ask 200 "the end of one whose task goes on" POST "/v1/leases/$id/end" '{"exit_status": 0}'
    wait_for '[ ! -d "$group" ]' || fail "$group is left"
    wait "$pid" 2>/dev/null
    [ $? -eq 137 ] || fail "a task in the lease's own group outlives it"
else
    echo "no control groups of version 2 here: a lease has none of its own"
    ask POST "/v1/leases/$id/end" '{"exit_status": 0}'
fi

# A group that carma did not make is looked into, and left alone.
theirs=/sys/fs/cgroup/unified/carma-test-$$
[ -d /sys/fs/cgroup/unified ] || theirs=/sys/fs/cgroup/carma-test-$$
if mkdir "$theirs" 2>/dev/null; then
    lease 108 0 9
    CUDA_VISIBLE_DEVICES=$(said gpus.0) "$TRAIN" --memory 8G --seconds 100000 >/dev/null 2>&1 &
    pid=$!
    echo "$pid" >"$theirs/cgroup.procs"
    path=$(sed -n 's/^0:://p' "/proc/$pid/cgroup")
    expect_ask 204 "a step by its group" PUT "/v1/leases/$id/steps/0" "{\"cgroup\": \"$path\"}"
    until_field "$id" placements.0.observed_bytes $((8 << 30))
    expect_ask 200 "the end of one in a group of others" POST "/v1/leases/$id/end" '{"exit_status": 0}'
    kill -0 "$pid" || fail "a process in a group of others was ended"
    end_task
    [ -d "$theirs" ] || fail "a group of others was removed"
    rmdir "$theirs"
    expect_ask 400 "the root group" PUT "/v1/leases/$id/steps/0" '{"cgroup": "/"}'
else
    echo "no control group can be made here: none of others is tried"
fi

wait "$ends"
grep -q '^200 .*"completed"' ended && grep -q "is stopped: carmad ends the lease" "$T/daemon.log" && kill "$left" ||
    fail "the end of one whose shepherd is stopped: $(cat ended)"

# What is wrong is said in one line.
expect_ask 400 "half a request" POST /v1/leases '{"engine": "slurm"}'
expect_ask 400 "no step" PUT "/v1/leases/$id/steps/x.y" '{"pids": [1]}'
expect_ask 404 "no lease" POST /v1/leases/99999/end '{}'
ask POST /v1/jobs '{"jobs": [{"name": "a", "command": ["true"], "directory": "/", "output": "/dev/null", "engine": "slurm"}]}'
expect 400 "a job that says it is Slurm's"

# Both ends of leases are in the sums, those of the store among them.
ends_counted() {
    said="stats --csv"
    "$CARMA" stats --csv | python3 -c 'import csv, sys
row, = csv.DictReader(sys.stdin)
counts = [int(row[name]) for name in ["returned", "expired"]]
states = ["completed", "failed", "gpu_oom", "cancelled", "lost", "refused", "timeout", "returned", "expired"]
sys.exit(counts != [1, 1] or sum(int(row[name]) for name in states) != int(row["ended"]))' ||
        fail "$1: $("$CARMA" stats --csv)"
    ask GET /metrics
    for state in RETURNED EXPIRED; do
        printf "%s\n" "$answer" | grep -q "^carma_job_ends_total{state=\"$state\"} 1$" || fail "$1: not 1 $state in Prometheus metrics: $answer"
    done
}
ends_counted "after the ends"
restart_daemon
ends_counted "after a restart"
stop_daemon
