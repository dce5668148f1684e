#!/bin/sh
# carmad with a service manager's socket: its notices, its children's environment; nobody notices when it is restarted.
. "$(dirname "$0")/node.sh"
TOLD=$T/told

# until_told PATTERN [COUNT]: until COUNT lines, one by default, of the manager's notices match.
until_told() {
    wait_for '[ "$(grep -cE "$1" "$TOLD")" -ge "${2:-1}" ]' "$@" ||
        fail "the service manager is not told '$1', but: $(cat "$TOLD")"
}

start_node a100x4-40g 50
: >"$TOLD"
python3 "$SOURCE/tests/fakes/service_manager.py" "$TOLD" --unix "$CARMA_SOCKET" --notify "@carma-test-$$" --watchdog-us 900000 -- \
    "$PREFIX/bin/carmad" --state "$STATE" --socket "$T/never.sock" --set mps_pipe_directory="$T/mps" \
    --set nvml_library="$PREFIX/lib/carma/vnode/libnvidia-ml.so.1" 2>>"$T/daemon.log" &
daemon=$!
until_told ' READY=1$'
main=$(sed -n 's/ READY=1$//p' "$TOLD")
[ "$(readlink "/proc/$main/exe")" = "$(realpath "$BUILD/src/daemon/carmad")" ] || fail "READY=1 comes from $main, which is not carmad"
[ "$(sed -n '1s/^[0-9]* //p' "$TOLD")" = 'STATUS=loading the store' ] || fail "told at first: $(head -1 "$TOLD")"
[ ! -e "$T/never.sock" ] || fail "carmad listens on a socket of its own beside the manager's"
grep -q 'the setting socket = .*/never.sock is not used then' "$T/daemon.log" || fail "nothing is said of the socket that is not used"
until_told ' WATCHDOG=1$' 3
until_told ' STATUS=4 GPUs; 0 jobs running, 0 waiting$'

# Job 1 runs on through all of this.
runs 1 -o log -- "$TRAIN" --memory 1G --sm-activity 0.3 --seconds 3000
until_told ' STATUS=4 GPUs; 1 job running, 0 waiting$'
children=0
for status_file in /proc/[0-9]*/status; do
    pid=${status_file#/proc/}
    pid=${pid%/status}
    [ "$(sed -n 's/^PPid:[[:space:]]*//p' "$status_file" 2>/dev/null)" = "$main" ] || continue
    children=$((children + 1))
    tr '\0' '\n' <"/proc/$pid/environ" | grep -E '^(NOTIFY_SOCKET|WATCHDOG_|LISTEN_)' &&
        fail "$(cat "/proc/$pid/comm") has the service manager's variables"
done
[ "$children" -ge 2 ] || fail "carmad has $children children, neither monitor nor shepherd?"

# Stopped: the socket stays, and a client that comes meanwhile waits for the next daemon.
kill -HUP "$daemon"
until_told '^ended 0$'
until_told "^$main STOPPING=1$"
[ -S "$CARMA_SOCKET" ] || fail "carmad has removed the service manager's socket"
"$CARMA" submit --parsable --hold -- true >"$T/early" 2>"$T/early.err" &
early=$!
kill -HUP "$daemon"
wait "$early" || fail "submitted while carmad was away: $(cat "$T/early.err")"
[ "$(cat "$T/early")" = 2 ] || fail "submitted while carmad was away: $(cat "$T/early")"
until_told ' READY=1$' 2
expect_field 1 state RUNNING
[ "$(find "$STATE/runs" -name "1-*" | wc -l)" -eq 1 ] || fail "job 1 was launched again: $(ls "$STATE/runs")"
expect_field 2 state HELD

end_daemon

# A manager that is behind has no room for READY=1: it is told again, or it would take carmad for one that does not start.
TOLD=$T/told_late
: >"$TOLD"
python3 - "$T/notify" "$T/full" "$T/heed" "$TOLD" <<'PYTHON' &
import os, socket, sys, time
place, full, heed, told = sys.argv[1:]
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(place)
others = [] # each has a limit of its own; full it is when a new one cannot send
sent = True
while sent:
    others.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK))
    sent = False
    try:
        while True:
            others[-1].sendto(b"of others", place)
            sent = True
    except BlockingIOError:
        pass
open(full, "w").close()
while not os.path.exists(heed):
    time.sleep(0.05)
while True:
    message = manager.recv(4096).decode()
    if message != "of others":
        with open(told, "a") as file:
            print(message, file=file)
PYTHON
manager=$!
wait_for '[ -e "$T/full" ]' || fail "the service manager is never behind"
export NOTIFY_SOCKET="$T/notify" WATCHDOG_USEC=900000
start_daemon
unset NOTIFY_SOCKET WATCHDOG_USEC
grep -q "the service manager cannot be told how carmad is, by NOTIFY_SOCKET $T/notify: " "$T/daemon.log" ||
    fail "nothing is said of a service manager that does not listen"
: >"$T/heed"
until_told '^READY=1$'
until_told '^STATUS=4 GPUs; 1 job running, 0 waiting$'
until_told '^WATCHDOG=1$'
[ "$(grep -c '^READY=1$' "$TOLD")" -eq 1 ] || fail "told that carmad is ready more than once: $(cat "$TOLD")"
kill "$manager"
stop_daemon
