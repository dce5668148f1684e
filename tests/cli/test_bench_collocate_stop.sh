#!/bin/sh
# carma bench collocate, stopped: by its time limit and by a signal, its MPS daemon and its jobs are gone.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/collocate.sh"

start_node a100x4-40g 200
# A run that hangs is stopped, with its children.
ends 1 bench collocate --degrees 1 --time-limit 60s -- sh -c 'trap "" TERM; sleep 1000 & echo $! >"$1"; wait; wait' - "$T/child"
expect_out 'sh x 1, alone: failed: not done within the time limit of 1:00'
grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$(cat "$T/child")/status" 2>/dev/null &&
    fail "$said: a process of the job is left"
rm -rf "${TMPDIR:?}"/*

# Stopped in a run under MPS (by SIGTERM: children that a shell starts in the background ignore SIGINT).
"$CARMA" bench collocate --degrees 2 --mode mps --mps-control "$T/mps-control" -- "$TRAIN" --memory 1G --seconds 2000 \
    >"$T/out" 2>"$T/err" &
bench=$!
wait_for '[ "$("$PREFIX/bin/carma-vnode" show | grep -c "(MPS)")" -eq 2 ]' ||
    fail "two jobs under MPS never came: $(cat "$T/err")"
kill -TERM "$bench"
wait "$bench"
status=$?
said="carma bench collocate, interrupted"
expect_status 143
grep -q '^carma: interrupted$' "$T/err" || fail "$said: $(cat "$T/err")"
expect_nothing_left
