#!/bin/sh
# A job of root's carmad can open its own GPUs' device nodes only. These have no driver: "no such device", if let.
. "$(dirname "$0")/node.sh"
[ "$(id -u)" -eq 0 ] || skip "needs root"
for minor in 0 1 2 255; do
    mknod "nvidia$minor" c 195 "$minor" || exit 99
done
cat >opens.py <<'PYTHON'
import errno, sys

for name in sys.argv[1:]:
    try:
        open(name).close()
        print(name, "open")
    except OSError as problem:
        print(name, "denied" if problem.errno == errno.EPERM else "allowed")
PYTHON
start_node a100x4-40g 100

# opens NUMBER EXPECTED: of job NUMBER, which has GPU 1.
opens() {
    run submit --parsable --gpu-memory 20G -o "$1.out" -- python3 opens.py nvidia0 nvidia1 nvidia2 nvidia255 /dev/null
    until_field "$1" state COMPLETED
    expect_field "$1" placements.0.index 1
    [ "$(tr '\n' ' ' <"$1.out")" = "$2" ] || fail "job $1: $(cat "$1.out")"
}

start_daemon --set device_cgroup=off
runs 1 --gpu-memory 20G --exclusive -- sleep 1000 # which has GPU 0
expect_field 1 placements.0.index 0
opens 2 "nvidia0 allowed nvidia1 allowed nvidia2 allowed nvidia255 allowed /dev/null open "
if [ "$(tr '\n' ' ' <2.out)" != "nvidia0 allowed nvidia1 allowed nvidia2 allowed nvidia255 allowed /dev/null open " ]; then
    echo "this machine keeps devices from all" >&2
fi
restart_daemon
if grep -q "jobs can open the device nodes of all GPUs" "$T/daemon.log"; then
    sed -n 's/.*carmad: \(jobs can open.*\)/skipped: \1/p' "$T/daemon.log"
    opens 3 "nvidia0 allowed nvidia1 allowed nvidia2 allowed nvidia255 allowed /dev/null open "
else
    opens 3 "nvidia0 denied nvidia1 allowed nvidia2 denied nvidia255 allowed /dev/null open "
    # Jobs that a new daemon places before it has read the GPUs wait until it knows their device nodes.
    stop_daemon
    "$PREFIX/bin/carma-vnode" inject hang
    "$PREFIX/bin/carmad" --state "$STATE" --socket "$CARMA_SOCKET" --set mps_pipe_directory="$T/mps" --set grace=500ms \
        --set nvml_library="$PREFIX/lib/carma/vnode/libnvidia-ml.so.1" 2>>"$T/daemon.log" &
    daemon=$!
    wait_for 'run queue && [ "$status" -eq 0 ]'
    run submit --parsable --gpu-memory 20G -o 4.out -- python3 opens.py nvidia0 nvidia1
    until_field 4 state PLACED
    wait_for 'grep -q "job 4 waits until it can be started: its GPUs have not been read yet" "$T/daemon.log"' ||
        fail "job 4 does not wait"
    "$PREFIX/bin/carma-vnode" clear
    until_field 4 state COMPLETED
    [ "$(tr '\n' ' ' <4.out)" = "nvidia0 denied nvidia1 allowed " ] || fail "job 4: $(cat 4.out)"
fi
run cancel 1
expect_settings_error() {
    "$PREFIX/bin/carmad" --state "$T/other" --socket "$T/other.sock" --set "$1" >out 2>&1 && fail "$1 was taken"
    grep -q "$2" out || fail "$1: $(cat out)"
}
expect_settings_error device_cgroup=on "device_cgroup 'on'.*auto or off"
