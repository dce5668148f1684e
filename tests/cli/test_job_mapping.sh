#!/bin/sh
# The files that tell dcgm-exporter which jobs are on which GPU: right as jobs come and go, over a restart and a kill.
. "$(dirname "$0")/node.sh"
start_all h100x2-mig 100 --set hpc_job_mapping_dir="$T/jobs"

# mapped: the files, as "NAME:JOB,JOB ..." in the order of names.
mapped() {
    cd "$T/jobs" 2>/dev/null && for file in * .*; do
        [ ! -f "$file" ] || printf '%s:%s ' "$file" "$(paste -sd, "$file")"
    done
}

# until_mapped TEXT: waits until the files are these.
until_mapped() {
    wait_for '[ "$(mapped)" = "$1" ]' "$@" || fail "the files are '$(mapped)', not '$1'"
}

until_mapped ''
for memory in 60G 30G 15G; do # the whole GPU, then the larger instances
    expect_ok submit --parsable --exclusive --gpu-memory $memory -- "$TRAIN" --memory 1G --seconds 100000
done
until_field 3 state RUNNING
expect_field 1 placements.0.index 4 # which is NVML's GPU 1
expect_field 2 placements.0.index 0
expect_field 3 placements.0.index 1
until_mapped '0.1:2 0.2:3 1:1 '
[ "$(stat -c %a "$T/jobs/1")" = 644 ] || fail "dcgm-exporter may not read its file: $(stat -c %a "$T/jobs/1")"

run cancel 2
until_mapped '0.2:3 1:1 '

# Files of a killed daemon are put right by the next; jobs that go on without one are not reported.
stop_daemon KILL
until_mapped '0.2:3 1:1 '
echo 99 >"$T/jobs/0.1"
echo 98 >"$T/jobs/5"
start_daemon --set hpc_job_mapping_dir="$T/jobs"
until_mapped '0.2:3 1:1 '
stop_daemon
until_mapped ''

# A path that is not a directory is reported once, and used once it is one.
rmdir "$T/jobs"
: >"$T/jobs"
start_daemon --set hpc_job_mapping_dir="$T/jobs"
wait_for 'grep -q "dcgm-exporter is not told of jobs: " "$T/daemon.log"'
[ "$(grep -c 'dcgm-exporter is not told of jobs: ' "$T/daemon.log")" -eq 1 ] ||
    fail "the log: $(grep dcgm-exporter "$T/daemon.log")"
rm "$T/jobs"
run cancel 3 # a change, so that it is retried at once
until_mapped '1:1 '
wait_for 'grep -q "dcgm-exporter is told of jobs again" "$T/daemon.log"' ||
    fail 'the log does not say that it is told again'
stop_daemon
until_mapped ''

# Nothing is written where nothing is set.
rmdir "$T/jobs"
start_daemon
run show 1
stop_daemon
[ ! -e "$T/jobs" ] || fail 'jobs are mapped unasked'
