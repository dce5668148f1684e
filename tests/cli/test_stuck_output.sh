#!/bin/sh
# A file system does not answer who reads, not even when killed: the job on it ends, and its GPU is free.
. "$(dirname "$0")/own_mounts.sh"
. "$(dirname "$0")/node.sh"
mkdir stuck
python3 -B "$SOURCE/tests/cli/stuck_fs.py" stuck >said 2>&1 &
server=$!
wait_for 'mountpoint -q stuck || ! kill -0 $server 2>/dev/null' || fail "no file system"
kill -0 $server 2>/dev/null || skip "$(cat said)"
unmount() {
    rm -f "/dev/nvidia-test.$$"
    kill $server 2>/dev/null # what waits for it ends
    umount -l "$T/stuck"
}
at_end='unmount; end_node'
start_all a100x4-40g 100 --set grace=1s
run submit --parsable -o stuck/f -- sh -c 'echo some; exit 3'
until_field 1 state FAILED
run submit --parsable -o stuck/f -- sh -c 'for i in 1 2 3 4 5 6; do echo "step $i"; sleep 0.5; done; touch told; sleep 100000'
wait_for '[ -e told ]' || fail "job 2 does not run" # by then its progress is being read
run cancel 2
until_field 2 state CANCELLED
expect_field 2 message null # who reads its progress hangs, and is none of its processes
run submit --parsable --exclusive -- cat stuck/f
wait_for 'grep -qx cat said' || fail "job 3 does not read"
run cancel 3
until_field 3 state CANCELLED
expect_field 3 message "its processes were killed, and hang in the kernel"
expect_ok submit --wait --exclusive -G 4 -- true

# A thread hangs, the main thread has ended, and a file that it has open has a GPU's name: only readings of GPUs count.
gpu=/dev/nvidia-test.$$
cat >reader.py <<'PYTHON'
import ctypes, sys, threading
gpu = open(sys.argv[1])
threading.Thread(target=lambda: open("stuck/f"), daemon=True).start()
ctypes.CDLL(None).syscall(60, 0)
PYTHON
touch "$gpu" || gpu=/dev/null
run submit --parsable --exclusive -- python3 -B reader.py "$gpu"
wait_for 'grep -qx python3 said' || fail "job 5 does not read"
run cancel 5
until_field 5 state CANCELLED
