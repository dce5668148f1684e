#!/bin/sh
# What a script leaves behind is ended and named: to who waits, in carma show, in the log. With and without groups.
. "$(dirname "$0")/node.sh"
cat >sleeper.py <<'PYTHON'
import os, sys, time
if sys.argv[1:]:  # as a daemon does
    if os.fork() or os.setsid() or os.fork():
        os._exit(0)
time.sleep(600)
PYTHON
PYTHON=$(python3 -c 'import sys; print(sys.executable)')
start_node a100x4-40g 100

# left NAME STATUS COUNT SCRIPT: the job of the script has the status; COUNT pythons were left behind, or nothing was.
left() {
    printf '#!/bin/sh\n%s\n' "$4" >"$1.sh"
    run submit --parsable --wait --gpu-memory 1G -o "$1.out" "$1.sh"
    expect_status "$2"
    "$CARMA" show "$(cat "$T/out")" | grep '^State' >"$T/state.line"
    names="python[^ ]*"
    [ "$3" -le 1 ] || names="$names ($3 processes)"
    for place in "$T/err" "$T/state.line" "$1.out"; do
        [ "$(grep -o "$names: left behind by its command, and ended: write .wait. as its last line" "$place" | wc -l)" = $(($3 > 0)) ] ||
            fail "$1, $place: $(cat "$place")"
    done
    [ -z "$(pgrep -f "$T/sleeper.py")" ] || fail "$1: something still runs"
}

for groups in with without; do
    [ $groups = with ] || export CARMA_CGROUP_ROOT="$T/no-groups"
    start_daemon --set settle=0s
    left plain 0 1 "$PYTHON $T/sleeper.py &"
    left nohup 0 1 "nohup $PYTHON $T/sleeper.py >/dev/null 2>&1 &"
    left setsid 0 1 "setsid $PYTHON $T/sleeper.py >/dev/null &"
    left daemon 0 1 "$PYTHON $T/sleeper.py twice >/dev/null"
    left three 0 3 "for i in 1 2 3; do $PYTHON $T/sleeper.py & done; sleep 0.2"
    left failed 3 1 "$PYTHON $T/sleeper.py & exit 3"
    left waits 0 0 "sleep 0.1 & wait"
    left pipe 0 0 "sh -c 'sleep 0.05; echo ended' &"
    stop_daemon
done
