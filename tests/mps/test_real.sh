#!/bin/sh
# Usage: test_real.sh CARMA SOURCE BUILD TEST_REAL
# NVIDIA's own control programs of four drivers, from Debian's packages, without a GPU. They answer as they were
# recorded, and carma's domains and carmad find, use and stop their daemons.
TEST_REAL=$(realpath "$4")
. "$2/tests/cli/node.sh"
[ "$(id -u)" -eq 0 ] || skip "the recordings are of root's control programs"
python3 -B "$SOURCE/tests/mps/fetch.py" "$BUILD/mps-programs" >"$T/programs" 2>"$T/missing" || {
    cat "$T/missing"
    echo "skipped: NVIDIA's control programs cannot be had from here"
    exit 77
}

# A server that lives and says nothing: its control daemon has to be told to end it.
mkdir "$T/bin"
printf '#!/bin/sh\nexec sleep 1000\n' | program "$T/bin/nvidia-cuda-mps-server"

# The control daemons and servers of this test that run.
controls() {
    for pid in $(own_processes); do
        ! grep -qF "CUDA_MPS_PIPE_DIRECTORY=$T/" "/proc/$pid/environ" 2>/dev/null || echo "$pid"
    done
}

while read -r driver program; do
    python3 -B "$SOURCE/tests/mps/record.py" "$driver" "$program" "$SOURCE/tests/golden/mps/$driver.txt" >&2 ||
        fail "driver $driver: it answers otherwise than was recorded"
    "$TEST_REAL" "$program" "$driver" >&2 || fail "driver $driver: carma's domains"

    # carmad: without a server the job fails and says why; with one of unknown state (before 550) it runs.
    CARMA_VNODE=$T/node-$driver
    STATE=$T/state-$driver
    start_node "$(profile_of "$driver")" 100
    start_daemon --set policy=first-fit --set memory_view=monitor --set settle=0s --set share=mps --set mps_pipe_directory= \
        --set mps_control="$program" --set start_timeout=10s
    run submit --parsable -W -- true
    expect_field 1 state FAILED
    field 1 message | grep -q 'MPS.* does not come up: its server ends as soon as it is started: see ' ||
        fail "driver $driver: $(field 1 message)"
    stop_daemon
    [ "$daemon_status" -eq 0 ] || fail "driver $driver: carmad ended with status $daemon_status"
    if [ "${driver%%.*}" -lt 550 ]; then
        PATH=$T/bin:$PATH start_daemon --set policy=first-fit --set memory_view=monitor --set settle=0s --set share=mps \
            --set mps_pipe_directory= --set mps_control="$program"
        run submit --parsable -W -- sh -c 'echo get_server_list | "$1"' sh "$program"
        expect_field 2 state COMPLETED
        [ -n "$(controls)" ] || fail "driver $driver: no control daemon is seen"
        [ "$(ps -o comm= -p "$(cat carma-2.out)")" = sleep ] || fail "driver $driver: the job's server is $(cat carma-2.out)"
        stop_daemon
        [ "$daemon_status" -eq 0 ] || fail "driver $driver: carmad ended with status $daemon_status"
    fi
    wait_for '[ -z "$(controls)" ]' || fail "driver $driver: left behind: $(controls)"
    rm -f carma-*
done <"$T/programs"
