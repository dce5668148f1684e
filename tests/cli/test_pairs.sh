#!/bin/sh
# Two workloads that slowed each other by their own count are not placed together again; the younger may be moved.
. "$(dirname "$0")/node.sh"
start_node h200x1 100
. "$SOURCE/tests/cli/mps.sh"
begin() {
    start_daemon --config /dev/null --set mps_pipe_directory= --set mps_control="$CONTROL" --set share=mps --set settle=0s
}
begin

# A job does a third of the steps while there is the file `slow`.
cat >steps <<'JOB'
trap 'echo $done >checkpoint; exit 3' USR1
done=0
while sleep 0.1; do
    if [ -e slow ]; then done=$((done + 10)); else done=$((done + 30)); fi
    echo $done >"$CARMA_PROGRESS_FILE"
done
JOB

# submit WORKLOAD [OPTION...]
submit() {
    workload=$1
    shift
    expect_ok submit --parsable --gpu-memory 5G "$@" -- sh steps "$workload"
    job=$(cat "$T/out")
}

# speeds JOB: how often its speed was an input of the core.
speeds() {
    sql "SELECT count(*) FROM record WHERE type = 'progressed' AND job = $1"
}

# until_speeds JOB COUNT
until_speeds() {
    wait_for '[ "$(speeds "$1")" -ge "$2" ]' "$@" || {
        fail "the speed of job $1 was taught $(speeds "$1") times, not $2"
        exit 1
    }
}

for workload in a b; do
    submit $workload
    until_speeds "$job" 1
    cancel "$job"
done

touch slow
submit a
submit b --time 9:00:00 --signal USR1@300 --requeue
until_field 3 state RUNNING
until_field 4 state RUNNING # as predicted, it pays
until_speeds 3 2
until_speeds 4 2
for command in "explain 3" queue; do # meanwhile nobody joins them
    wait_for '"$CARMA" $1 | grep -q "runs [2-9]\.[0-9]*x slower than alone on GPU 0; the limit is 2.10x: no job joins it"' \
        "$command" || fail "carma $command does not say that a job is slowed"
done
until_field 4 state QUEUED # once it has run for half an hour
for command in explain show; do
    shows "moved off its GPUs: .* ran [2-9]\.[0-9]*x slower than alone on the GPU" $command 4
done
[ -s checkpoint ] || fail "the job that was moved had no time for its checkpoint"
cancel 3-4
shows "was moved off its GPUs" history -n 2
rm slow

stop_daemon # what was learned is kept
begin
submit a
until_field 5 state RUNNING
submit b
run explain 6
grep -q 'job 5 on GPU 0: one of such a pair ran [234]\.[0-9]*x slower before; the limit is 2.10x' \
    "$T/out" || fail "explain: $(cat "$T/out")"
expect_field 6 state QUEUED
submit c
until_field 7 state RUNNING # of which nothing is known
run cancel 5
until_field 6 state RUNNING
cancel 6-7
