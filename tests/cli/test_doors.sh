#!/bin/sh
# What a request may cost: the worst texts at each door of a real carmad, and its memory meanwhile and after.
. "$(dirname "$0")/node.sh"
start_all a100x4-40g 600
python3 "$SOURCE/tests/cli/doors.py" "$CARMA_SOCKET" "$daemon" || fail "the doors"
end_daemon
