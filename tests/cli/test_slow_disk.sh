#!/bin/sh
# Usage: test_slow_disk.sh CARMA SOURCE BUILD SLOW_SYNC
# A disk with syncs of a second: submitters wait for it, all of them together, and nobody else does.
slow_sync=$(realpath "$4") || exit 99
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 1
SLOW_SYNC_LOG=$T/syncs
LD_PRELOAD=$slow_sync
export SLOW_SYNC_LOG LD_PRELOAD
start_daemon --set sample_period=60s --set window=120s
unset LD_PRELOAD
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" slow "$SLOW_SYNC_LOG" || fail "a slow disk"
stop_daemon
