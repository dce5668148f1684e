#!/bin/sh
# What a request may cost: the worst texts at each door of a real carmad, and its memory meanwhile and after.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 600
start_daemon
python3 "$SOURCE/tests/cli/doors.py" "$CARMA_SOCKET" "$daemon" || fail "the doors"
stop_daemon
[ "$daemon_status" -eq 0 ] || fail "carmad ended with status $daemon_status"
