#!/bin/sh
# carma top on a terminal, beside a node that works (test_top.py); and where it cannot begin.
. "$(dirname "$0")/node.sh"
PYTHON=/usr/bin/python3 # the distribution's, which has the distribution's pyte
$PYTHON -c 'import pyte' 2>/dev/null || skip "no pyte here: script/packages test installs it"

expect_error 2 "must be a terminal" top
expect_error 2 "not a number of seconds from 0.1 to 3600" top --delay 0
expect_error 2 "takes no arguments" top 7

start_all a100x4-40g 60 --config /dev/null --set settle=0s --set share=mps
$PYTHON -B "$SOURCE/tests/cli/test_top.py" "$CARMA" "$TRAIN" "$SOURCE" "$daemon" || fail "test_top.py"
daemon=$(cat "$T/daemon.pid" 2>/dev/null) # it was started again
[ -z "$daemon" ] || kill -KILL "$daemon"
daemon=
