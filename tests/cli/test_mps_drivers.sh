#!/bin/sh
# Jobs under MPS on drivers of four generations are clients of one server to their end, and nothing is left behind. A
# server for several users is refused where the driver has none.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/mps.sh"

# refuses MESSAGE: carmad does not start with mps_multiuser, says so in one line, and carma doctor says it, too.
refuses() {
    printf '%s\n' 'mps_multiuser = yes' "mps_control = $CONTROL" >"$T/config"
    timeout 20 "$PREFIX/bin/carmad" --config "$T/config" --state "$T/refused" --socket "$T/refused.sock" 2>"$T/err"
    [ $? = 1 ] || fail "driver $driver: carmad with mps_multiuser ended with status $?"
    [ "$(wc -l <"$T/err")" -eq 1 ] && grep -qF "carmad: $1" "$T/err" || fail "driver $driver: $(cat "$T/err")"
    [ ! -e "$T/refused" ] || fail "driver $driver: a store was made for a daemon that was refused"
    run doctor --json --config "$T/config"
    grep -q 'carmad does not start\|only root can try' "$T/out" || fail "driver $driver: carma doctor says nothing of mps_multiuser: $(cat "$T/out")"
}

for driver in 470.256.02 535.261.03 550.163.01 555.58.02; do
    CARMA_VNODE=$T/node-$driver
    STATE=$T/state-$driver
    start_node "$(profile_of "$driver")" 100
    start
    runs 1 -G 3 --exclusive -- sleep 100000 # so that the others have one GPU
    for job in 2 3; do run submit --parsable -- "$TRAIN" --memory 4G --sm-activity 0.3 --seconds 2000; done
    for job in 2 3; do until_field $job placements.0.observed_bytes $((4 << 30)); done
    expect_field 3 placements.0.uuid "$(field 2 placements.0.uuid)"
    until_controls 2
    expect_ok wait 2 3
    for job in 2 3; do
        expect_field $job state COMPLETED message null
        grep -q MPS carma-$job.out || fail "driver $driver: job $job shared otherwise: $(cat carma-$job.out)"
    done
    cancel 1
    end_daemon
    until_controls 0
    if [ "$(id -u)" -ne 0 ]; then
        refuses "mps_multiuser = yes, and only root's MPS server takes several users: run carmad as root, or set"
    elif [ "${driver%%.*}" -lt 555 ]; then
        refuses "mps_multiuser = yes, and $CONTROL has no MPS server for several users: install a driver from 555 on, or set"
    else
        start --set mps_multiuser=yes
        run submit --parsable -W -- true
        expect_field "$(cat "$T/out")" state COMPLETED
        stop_daemon
        until_controls 0
    fi
    rm -f carma-*
done
