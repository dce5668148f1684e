#!/bin/sh
# What a script leaves behind, however it was sent to the background, is ended and named: to who waits, in carma show, and
# in the job's log. With and without control groups.
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

# left NAME STATUS LINES NOTE SCRIPT: of the script's job. LINES is 0 where nothing is left, and then there is no note.
left() {
    printf '#!/bin/sh\n%s\n' "$5" >"$1.sh"
    run submit --parsable --wait --gpu-memory 1G -o "$1.out" "$1.sh"
    expect_status "$2"
    number=$(cat "$T/out")
    [ "$(grep -c "$4" "$T/err")" = "$3" ] || fail "$1: told at its end: $(cat "$T/err")"
    "$CARMA" show "$number" | grep '^State' >"$T/state.line"
    [ "$(grep -c "$4" "$T/state.line")" = "$3" ] || fail "$1: $(cat "$T/state.line")"
    [ "$(grep -c "^carma: .*$4" "$1.out")" = "$3" ] || fail "$1: its log: $(cat "$1.out")"
    [ -z "$(pgrep -f "$T/sleeper.py")" ] || fail "$1: something still runs"
}

ONE='its end left the process [^ ]* behind, and carma has ended it: write `wait` as the last line of the script'
for groups in with without; do
    [ $groups = with ] || export CARMA_CGROUP_ROOT="$T/no-groups"
    start_daemon --set settle=0s
    left plain 0 1 "COMPLETED: $ONE\|^carma: $ONE" "$PYTHON $T/sleeper.py &"
    left nohup 0 1 "$ONE" "nohup $PYTHON $T/sleeper.py >/dev/null 2>&1 &"
    left setsid 0 1 "$ONE" "setsid $PYTHON $T/sleeper.py >/dev/null &"
    left daemon 0 1 "$ONE" "$PYTHON $T/sleeper.py twice >/dev/null"
    left three 0 1 'left 3 processes behind, first python' "for i in 1 2 3; do $PYTHON $T/sleeper.py & sleep 0.05; done"
    left failed 3 1 "exit status 3; $ONE\|^carma: $ONE" "$PYTHON $T/sleeper.py & exit 3"
    left waits 0 0 'its end left' "sleep 0.1 & wait"
    left pipe 0 0 'its end left' "sh -c 'sleep 0.05; echo ended' &"
    stop_daemon
done
finish_node
