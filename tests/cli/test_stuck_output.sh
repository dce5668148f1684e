#!/bin/sh
# Usage: test_stuck_output.sh CARMA SOURCE BUILD
# A job's output is on a file system that does not answer who reads, not even when he is killed: the job ends, and its GPU
# is free.
# shellcheck source-path=SCRIPTDIR disable=SC1091
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/node.sh"
cd "$T" || exit 99
mkdir stuck
python3 -B "$SOURCE/tests/cli/stuck_fs.py" stuck 2>said &
server=$!
patience
until mountpoint -q stuck; do
    kill -0 $server 2>/dev/null || { echo "skipped: $(cat said)"; exit 77; }
    patient || { fail "no file system"; break; }
done
unmount() {
    kill $server # what waits for it ends
    umount -l "$T/stuck"
    finish_node
}
end_test=unmount
trap 'failures=$((failures + 1)); unmount' INT TERM
start_node a100x4-40g 100
start_daemon
run submit --parsable -o stuck/f -- sh -c 'echo some; exit 3'
until_field 1 state FAILED
unmount
