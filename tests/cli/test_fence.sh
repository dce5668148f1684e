#!/bin/sh
# Usage: test_fence.sh CARMA SOURCE BUILD
# Under MPS the driver's limit keeps a job to what it asked for: it runs itself out of memory, and nobody else.
# shellcheck source-path=SCRIPTDIR disable=SC1091
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/node.sh"
cd "$T" || exit 99
start_node h200x1 20
CUDA_MPS_PROTOCOL_VERSION=2
# shellcheck source=tests/cli/mps.sh
. "$SOURCE/tests/cli/mps.sh"

start_daemon --set mps_pipe_directory= --set mps_control="$CONTROL" --set share=mps --set trim=0s
run submit --gpu-memory 60G -- "$TRAIN" --memory 58G --sm-activity 0.3 --seconds 600
run submit --gpu-memory 10G -- "$TRAIN" --memory 30G --sm-activity 0.3 --seconds 100
expect_field 1 fence_bytes $(((60 << 30) + (512 << 20) + (60 << 30) / 16))
expect_field 2 fence_bytes $(((10 << 30) + (512 << 20) + (10 << 30) / 16))
run show 2
grep -q "^Fence  *11.1 GiB: MPS gives no process of it more on a GPU" "$T/out" || fail "show: $(cat "$T/out")"
run wait 2
expect_field 2 state COMPLETED # by retries with a raised request
[ "$(field 2 crashes)" -ge 1 ] || fail "a declared fence is not charged"
expect_field 1 launches 1 # its neighbour noticed nothing
expect_field 1 victim_of None

run submit --parsable -W -- sh -c 'echo "$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"'
[ "$(cat carma-3.out)" = "" ] || fail "a job whose need nobody knows is fenced: $(cat carma-3.out)"
stop_daemon
start_daemon --set mps_pipe_directory= --set mps_control="$CONTROL" --set share=mps --set memory_fence=off
run submit --gpu-memory 5G -- "$TRAIN" --memory 9G --sm-activity 0.3 --seconds 60
run wait 4
expect_field 4 fence_bytes None
expect_field 4 launches 1
finish_node
