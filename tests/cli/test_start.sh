#!/bin/sh
# Jobs on their way to their command: the time that counts, steps that nobody waits for, and a start that hangs.
. "$(dirname "$0")/node.sh"
start_all h200x1 1 --set settle=0s --set grace=1s --set start_timeout=2s

# A login shell that hangs keeps its GPU for the start_timeout; the job says why it failed, and the time is charged.
mkdir "$T/home"
echo 'sleep 1000' >"$T/home/.bash_profile"
HOME=$T/home run submit --parsable --exclusive --conda any -- true
hung=$(cat "$T/out")
next=$(submitted --exclusive -- true)
until_field "$hung" state FAILED
expect_field "$hung" message \
    'the start took longer than the start_timeout of 0:02: it was in the login shell, its profile and conda'
shows 'the start took longer than the start_timeout of 0:02' show "$hung"
until_field "$next" state COMPLETED
python3 - "$(field "$hung" started_ns)" "$(field "$hung" ended_ns)" "$(field "$hung" gpu_ns)" <<'PY' ||
import sys
started, ended, charged = (int(word) for word in sys.argv[1:])
sys.exit(not (ended - started >= 1.9e9 and charged == ended - started))
PY
    fail "started $(field "$hung" started_ns), ended $(field "$hung" ended_ns), charged $(field "$hung" gpu_ns)"

# So does a profile that hangs beyond the time limit: that is the limit's.
HOME=$T/home run submit --parsable --exclusive --conda any --time 1s -- true
late=$(cat "$T/out")
until_field "$late" state TIMEOUT
expect_field "$late" message 'time limit of 0:01 reached before the command was run'

# A FIFO that nobody reads is not waited for.
mkfifo "$T/fifo"
run submit --parsable -o "$T/fifo" -- true
until_field "$(cat "$T/out")" state FAILED
expect_field "$(cat "$T/out")" message \
    "cannot open the output file '$T/fifo': it is a FIFO that nobody reads, or a socket: start its reader first, or name a file"

"$PREFIX/bin/carmad" --state "$T/other" --socket "$T/other.socket" --set start_timeout=0s 2>"$T/err" &&
    fail "a start_timeout of 0s is taken"
grep -q 'start_timeout' "$T/err" || fail "$(cat "$T/err")"
