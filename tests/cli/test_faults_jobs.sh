#!/bin/sh
# Jobs that misbehave (carma-train --fail) beyond the causes of test_failures.sh: they do nothing, do not end, or leave
# processes behind.
. "$(dirname "$0")/node.sh"
VNODE=$PREFIX/bin/carma-vnode

# train NAME ARGUMENT...: submits a job of that name; its number is left in $job.
train() {
    name=$1
    shift
    expect_ok submit --parsable -J "$name" -- "$TRAIN" --sm-activity 0.2 "$@"
    job=$(cat "$T/out")
}

start_node h200x1 100
start_daemon --set policy=round-robin --set share=time-slice --set memory_view=monitor --set memory_floor=0 \
    --set memory_margin=0 --set settle=0s --set decide_period=0s --set max_retries=2 --set grace=200ms \
    --set idle_report=60s --set idle_limit_default=4m --set idle_limit_max=30m

# One that holds the GPU for nothing is reported, once; one that does not end when it is asked to ends all the same.
train idle --memory 5G --seconds 100 --fail idle
idle=$job
train stubborn --memory 5G --seconds 100000 --sm-activity 0 --fail ignore-term
until_field "$job" placements.0.observed_bytes $((5 << 30))
wait_for 'grep -q "job $idle of .* holds 1 GPU and has not used it for" "$T/daemon.log"'
count=$(grep -c "job $idle of .* holds 1 GPU" "$T/daemon.log")
[ "$count" -eq 1 ] || fail "an idle job is reported $count times"
cancel "$idle" "$job"
expect_field "$idle" state CANCELLED
expect_field "$job" state CANCELLED

# Beside a job that works, an idle limit ends the job without a process on the GPU; of one with memory there nobody can tell.
# Alone, that is ended, too. A warning is told. No limit is longer than is allowed.
mkdir fakes
program fakes/sendmail <<SCRIPT
#!/bin/sh
cat >>"$T/told"
SCRIPT
PATH=$T/fakes:$PATH "$PREFIX/lib/carma/carma-notify" --hooks "$T/none" --state "$T/told.json" 2>notify.log &
notify=$!
wait_for '[ -s told.json ]'
train busy --memory 5G --seconds 1000000
busy=$job
expect_ok submit --parsable --idle-limit 10:00 --notify idle --gpu-memory 1G -- sleep 1000000
idle=$(cat "$T/out")
train holds --memory 5G --seconds 1000000 --sm-activity 0
holds=$job
expect_field "$holds" idle_limit_ns 240000000000
until_field "$idle" idle_step 1
wait_for 'run queue && grep -q "unused: ends soon" "$T/out"'
wait_for '"$CARMA" explain "$1" | grep -q "it is ended in [0-9:]* unless it does"' "$idle"
until_field "$idle" state TIMEOUT
expect_field "$idle" exit_cause idle last_end 'it did not use its GPUs for its idle limit'
grep -q "job $idle of .* has not used its GPUs for 10:00, its idle limit" "$T/daemon.log" || fail "$(cat "$T/daemon.log")"
wait_for 'grep -qs "job $idle (sleep) on .* does not use its GPUs: it is ended in 5:00 unless it does" told' || fail "$(cat told notify.log)"
kill "$notify"
expect_field "$holds" state RUNNING idle_step null
cancel "$busy"
until_field "$holds" state TIMEOUT
expect_error 1 '1:00:00 is more than one job may take here, 30:00 (idle_limit_max)' submit --idle-limit 1:00:00 -- true

# A job with a process that goes and leaves another on the GPU: none of them stays.
train leaves --memory 5G --seconds 100000 --fail double-fork --fail-at 60
until_field "$job" state COMPLETED
wait_for '! "$VNODE" show | grep -q "  process "' || fail "job $job left a process: $("$VNODE" show)"
