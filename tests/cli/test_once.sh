#!/bin/sh
# A submission is done once: over answers that are lost, a daemon that is killed and one that comes late.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 100
once() {
    said="once.py $*"
    python3 "$SOURCE/tests/cli/once.py" "$CARMA_SOCKET" "$@" 2>"$T/err" || fail "$said: $(cat "$T/err")"
}

# Nobody there: at once where that is asked for.
begun=$(date +%s)
expect_error 1 'no daemon listens there' submit --no-retry --hold -- true
[ $(($(date +%s) - begun)) -lt 20 ] || fail "--no-retry took $(($(date +%s) - begun)) s"

# A daemon that comes late.
"$CARMA" submit --parsable --hold -- true >late.out 2>late.err &
late=$!
start_daemon
wait $late || fail "submitted to a daemon that came late: $(cat late.err)"
[ "$(cat late.out)" = 1 ] || fail "the late daemon's first job is '$(cat late.out)'"
expect_ok cancel 1

once same
once again answer.json

# The daemon has stored it, and its answer does not come.
mkfifo input ready
python3 "$SOURCE/tests/cli/once.py" "$CARMA_SOCKET" drop "$T/proxy" 3 <input >ready &
proxy=$!
exec 8>input
read -r _ <ready
before=$("$CARMA" queue --all --json | grep -c '"id":')
warns 'waiting up to 30 s' submit --socket "$T/proxy" --parsable --hold -- true
[ "$("$CARMA" queue --all --json | grep -c '"id":')" -eq $((before + 1)) ] || fail "not one job more by the lost answers"
exec 8>&-
wait $proxy

# A daemon that is killed at any moment, in the middle of submissions: each is there once.
# They go on until it was killed often enough, however fast they are.
submitter() {
    number=0
    while [ ! -e enough ] || [ "$number" -lt 8 ]; do
        number=$((number + 1))
        "$CARMA" submit --parsable --hold --job-name "once-$1-$number" -- true || return 1
    done
}
submitters=
for part in a b c; do
    submitter $part >"ids.$part" 2>"errors.$part" &
    submitters="$submitters $!"
done
kills=0
for submitting in $submitters; do
    while kill -0 "$submitting" 2>/dev/null; do
        sleep "0.$(printf '%02d' $((1 + kills * 7 % 23)))"
        again_after_kill
        kills=$((kills + 1))
        [ "$kills" -lt 5 ] || : >enough
    done
    wait "$submitting" || fail "a submission failed: $(cat errors.*)"
done
"$CARMA" queue --json | python3 -c '
import glob, json, sys
jobs = {job["name"]: job["id"] for job in json.load(sys.stdin)["jobs"] if job["name"].startswith("once-")}
told = [int(line) for file in glob.glob("ids.?") for line in open(file)]
assert len(jobs) >= 24 and sorted(jobs.values()) == sorted(told), (jobs, sorted(told))
' || fail "after $kills kills"
"$CARMA" queue --json | grep -c '"name": "once-' | grep -qx "$(cat ids.? | wc -l)" || fail "some were done twice"

# Also a daemon that did not take it itself.
once again answer.json
end_daemon
