#!/bin/sh
# As a person sees them: a GPU that takes one job at a time, and its change to time-slicing under a daemon that
# restarts. Also a wish that cannot be met, and a job that only says that it ran out of memory.
. "$(dirname "$0")/node.sh"
start_node h200x1 100
set -- --set policy=first-fit --set memory_view=monitor --set memory_floor=1G --set settle=0s --set decide_period=0s
start_daemon "$@" --set share=mps,0=exclusive
expect_error 1 "1 GPU with MPS needed, 0 are configured for it: leave --share mps out" submit --share mps -- true

first=$(submitted -- "$TRAIN" --memory 2G --sm-activity 0.2 --seconds 100000)
until_field "$first" state RUNNING
expect_field "$first" runs_by exclusive
run submit --parsable --share time-slice -- "$TRAIN" --memory 2G --sm-activity 0.2 --seconds 1000 --fail false-oom --fail-at 500
second=$(cat "$T/out")
shows "GPU 0 runs job $first, which is exclusive" explain "$second"
shows '^Shares     only by time-slicing$' show "$second"

# A job that has it alone keeps it; the next ones share it.
restart_daemon "$@" --set share=time-slice
expect_field "$second" state QUEUED
expect_field "$first" runs_by exclusive
run cancel "$first"
until_field "$second" runs_by time-slice
until_field "$second" state RUNNING

# Its output says that memory ran out, and the memory in use that it did not: it is retried, in its turn.
expect_error 1 "job $second is RUNNING: only one that waits can be held" hold "$second"
expect_error 1 "job $second is RUNNING: it is not held" release "$second"
until_field "$second" crashes 1
shows '^Last run   it printed that GPU memory ran out, which the memory in use does not bear out' show "$second"
expect_field "$second" retry false
run cancel "$second"
# Options that count under MPS are shown as not in force elsewhere.
for how in '--share time-slice' --exclusive; do
    # shellcheck disable=SC2086 # words
    run submit --parsable --hold $how --mps-memory-limit 5G -- true
    shows '^  *not in force, as it does not run by MPS: ' show "$(cat "$T/out")"
done
