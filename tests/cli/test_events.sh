#!/bin/sh
# GET /v1/events: a watcher sees permitted changes as they come, and the end.
. "$2/tests/cli/node.sh"
EVENTS=$SOURCE/tests/cli/events.py

# until_seen FILE ID NAME VALUE: waits until the stream has told it.
until_seen() {
    wait_for '[ "$(python3 "$EVENTS" job "$1" "$2" "$3")" = "$4" ]' "$@" ||
        fail "job $2: the stream has told '$(python3 "$EVENTS" job "$1" "$2" "$3")' of $3, never '$4'"
}

# until_told FILE EVENT TEXT: the last event of that name has the text.
until_told() {
    wait_for 'python3 "$EVENTS" last "$1" "$2" 2>/dev/null | grep -qF -- "$3"' "$@" ||
        fail "no '$3' in the last $2: $(python3 "$EVENTS" last "$1" "$2" | cut -c1-600)"
}

# follow FILE [UID]: the stream's reader is $!.
follow() {
    python3 "$EVENTS" follow "${2:-$(id -u)}" "$CARMA_SOCKET" >"$1" 2>"$1.err" &
    wait_for '[ "$(python3 "$EVENTS" names "$1" | cut -d" " -f1-3)" = "status gpus jobs" ]' "$@" ||
        fail "the stream does not begin: $(cat "$1.err"; python3 "$EVENTS" names "$1")"
}

start_node h100x8-80g 1
chmod 711 "$T"
start_daemon --set policy=round-robin --set memory_view=monitor --set settle=0s --set decide_period=0s --set sm_activity_cap=100%
follow "$T/own"
reader=$!
until_told "$T/own" jobs '"jobs": []'

# A job comes, runs, is seen on its GPU, and is cancelled.
expect_ok submit -J seen -- "$TRAIN" --memory 2G --sm-activity 0.5 --seconds 36000
until_seen "$T/own" 1 state RUNNING
until_told "$T/own" gpus '"residents": [{"id": 1,'
until_told "$T/own" status '"counts": {"RUNNING": 1}'
until_seen "$T/own" 1 command absent # that is a matter of GET /v1/jobs/ID
run cancel 1
until_seen "$T/own" 1 state CANCELLED
until_told "$T/own" status '"counts": {"CANCELLED": 1}'
until_told "$T/own" gpus '"residents": []'

# The reason why a job waits changes without a record of its own: the job before it goes.
run submit --gpus 8 --exclusive -- "$TRAIN" --memory 2G --seconds 36000
until_seen "$T/own" 2 state RUNNING
run submit -- true
until_seen "$T/own" 3 reason.code exclusive
run submit -- true
until_seen "$T/own" 4 reason.code behind
run hold 3
until_seen "$T/own" 3 state HELD
until_seen "$T/own" 4 reason.code exclusive

# Another user sees the entry, and not the job's own words.
if [ "$(id -u)" -eq 0 ]; then
    follow "$T/other" 12001
    other=$!
    until_seen "$T/other" 2 state RUNNING
    run release 3
    run cancel 2
    until_seen "$T/own" 4 state COMPLETED
    run submit -J cannot -- /nonexistent/secret
    until_seen "$T/own" 5 state FAILED
    until_seen "$T/other" 5 state FAILED
    grep -q secret "$T/own" || fail "its owner is not told the message"
    [ "$(python3 "$EVENTS" job "$T/other" 5 message)" = None ] || fail "others are told the message"
    ! grep -qE 'secret|"command"' "$T/other" || fail "others are told of private data"
    kill "$other"
    wait "$other" 2>/dev/null
else
    run release 3
    run cancel 2
    until_seen "$T/own" 4 state COMPLETED
fi

# Of many waiting jobs the first 200 are reported; a new one among them is, too.
holder=$(submitted --gpus 8 --exclusive -- "$TRAIN" --memory 2G --seconds 36000)
until_seen "$T/own" "$holder" state RUNNING
printf '#!/bin/sh\n' >"$T/nothing.sh"
# shellcheck disable=SC2046 # 230 files
expect_ok submit $(yes "$T/nothing.sh" | head -230)
until_seen "$T/own" $((holder + 200)) state QUEUED
[ "$(python3 "$EVENTS" job "$T/own" $((holder + 201)) state)" = None ] || fail "more than 200 waiting jobs are told of"
run cancel $((holder + 1))-$((holder + 5))
until_seen "$T/own" $((holder + 205)) state QUEUED
[ "$(python3 "$EVENTS" job "$T/own" $((holder + 206)) state)" = None ] || fail "more than 200 waiting jobs are told of"
run cancel $((holder + 6))-$((holder + 230))
until_seen "$T/own" $((holder + 230)) state CANCELLED

# All streams end when the daemon does.
end_daemon
wait "$reader" || fail "a stream did not end well: $(cat "$T/own.err")"
