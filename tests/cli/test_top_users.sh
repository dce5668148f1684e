#!/bin/sh
# carma top for a user without rights on the job: the daemon's refusal is shown, and nothing of the job's output.
. "$(dirname "$0")/users.sh"
PYTHON=/usr/bin/python3
$PYTHON -c 'import pyte' 2>/dev/null || skip "no pyte here: script/packages test installs it"
homes
start_all h200x1 60
run_as alice submit --parsable -J hers --gpu-memory 2G -- sh -c "echo secret; exec '$TRAIN' --memory 1G --seconds 1000000"
until_field 1 state RUNNING
run_as bob submit --parsable -J his --hold -- true

PYTHONPATH=$SOURCE/tests/cli $PYTHON -B - "$CARMA" "$(uid_of bob)" <<'END' || fail "carma top as bob"
import os, sys
from terminal import Terminal

def become_bob():
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))

t = Terminal([sys.argv[1], "top", "--delay", "0.3"], 100, 24, become_bob, LC_ALL="C.UTF-8")
t.sees("hers", "alice", "his")
t.press("c", "y")
t.sees("job 1 belongs to alice")
t.press("l")
t.sees("permission denied: job 1 belongs to alice")
assert "secret" not in t.text()
t.press("escape", "u")
t.sees("only mine", "his")
t.loses("hers")
t.press("q")
assert t.ended() == 0
END
expect_field 1 state RUNNING
