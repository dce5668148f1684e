#!/bin/sh
# Usage: test_bounds.sh CARMA SOURCE BUILD
# The bounds of the queue and of a submission (docs/limits.md), at them and over them, through the daemon.
# shellcheck source-path=SCRIPTDIR disable=SC1091
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/node.sh"
cd "$T" || exit 99
start_node a100x4-40g 600
start_daemon --set max_queued=5
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" queue || fail "the queue's bound"
expect_error 1 "the queue is full: 5 jobs have not ended" submit -- true
stop_daemon
rm -rf "$STATE"
chmod 711 "$T" # another user connects
start_daemon --set max_queued=200
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" share || fail "the share that is kept for others"
stop_daemon
rm -rf "$STATE"
start_daemon
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" sizes || fail "the bounds of a submission"
stop_daemon
finish_node
