#!/bin/sh
# How far jobs say they have come: by a progress bar in their output, or by lines in their progress file.
. "$(dirname "$0")/node.sh"
start_all a100x4-40g 60 --config /dev/null

# progress ID MEMBER: null as None.
progress() {
    "$CARMA" show --json "$1" | python3 -c 'import json, sys; print((json.load(sys.stdin)["progress"] or {}).get(sys.argv[1]))' "$2"
}

# until_progress ID STEP TOTAL
until_progress() {
    wait_for '[ "$(progress "$1" step)/$(progress "$1" total)" = "$2/$3" ]' "$@" || {
        fail "job $1 has come to $(progress "$1" step)/$(progress "$1" total), expected $2/$3"
        exit 1
    }
}

bar='printf "\rEpoch 3:  %d%%|###7      | %d/1000 [00:12<00:21, 29.9it/s]" '
run submit --exclusive --no-progress -- sh -c "$bar 37 370"' >&2; echo "${CARMA_PROGRESS_FILE-none}"; sleep 1000'
run submit --exclusive -- sh -c "$bar 37 370"' >&2; while [ ! -e on ]; do sleep 0.1; done; '"$bar 50 500"' >&2; sleep 1000'
run submit --exclusive -- sh -c 'echo 12/100 >"$CARMA_PROGRESS_FILE"; echo 13 >>"$CARMA_PROGRESS_FILE"; '"$bar 37 370"'; sleep 1000'
expect_ok submit --exclusive -- "$TRAIN" --memory 1G --seconds 100000 --progress
until_progress 2 370 1000
until_progress 3 13 None
expect_field 1 progress null # it is not looked at
shows 'Progress   370 of 1000 steps' show 2

# What comes later in the same file is read, also by a shepherd whose daemon is another by now.
again_after_kill --config /dev/null
touch on
until_progress 2 500 1000

# A step of carma-train is a second of its work, and it is alone.
wait_for '[ "$(progress 4 steps_per_s)" != None ]' || fail 'no speed is known of job 4'
python3 -c 'import sys; sys.exit(not 0.9 < float(sys.argv[1]) < 1.1)' "$(progress 4 steps_per_s)" ||
    fail "job 4 does $(progress 4 steps_per_s) steps a second, not 1"
shows ' of 100000 steps, ' show 4

run logs 1
expect_out none
cancel 1-4
expect_field 2 progress null # it has ended
[ -z "$(ls "$CARMA_SOCKET.scripts")" ] || fail "something is left: $(ls "$CARMA_SOCKET.scripts")"
