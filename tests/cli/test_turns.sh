#!/bin/sh
# Usage: test_turns.sh CARMA SOURCE BUILD [WAITERS]
# Many honest clients of one user, more than his bounds: each has its turn. Jobs that are submitted and waited
# for all at once all end; another user's request is answered meanwhile. Without a daemon a waiting command has a status
# of its own.
. "$(dirname "$0")/node.sh"
waiters=${4:-150}
start_all h200x1 8 --set settle=0s

alone=$(awk '/VmHWM/ {print $2}' "/proc/$daemon/status")
held=$(submitted --hold -- true)
n=0
while [ "$n" -lt "$waiters" ]; do
    n=$((n + 1))
    (
        "$CARMA" wait "$held" 2>"wait.$n.err"
        echo $? >"waited.$n"
    ) &
done
n=0
while [ "$n" -lt 150 ]; do
    n=$((n + 1))
    (
        "$CARMA" submit --wait --parsable -o /dev/null -- true >"submit.$n.out" 2>"submit.$n.err"
        echo $? >"submitted.$n"
    ) &
done
wait_for '[ "$(cat submitted.* 2>/dev/null | grep -c "^0$")" -ge 150 ]'
[ "$(sort -u submit.*.out | wc -l)" -eq 150 ] || fail "$(sort -u submit.*.out | wc -l) jobs, not 150"
for n in $(seq 150); do
    [ "$(cat "submitted.$n")" = 0 ] || fail "submission $n: status $(cat "submitted.$n"): $(cat "submit.$n.err")"
done
# What another user's request takes beside them is printed: it is the machine's speed, too.
chmod 711 "$T"
PYTHONPATH=$SOURCE/tests/cli python3 -B -c 'import os, sys, time
from unix_http import Connection
if os.geteuid() == 0:
    os.setuid(12345)
took = []
for _ in range(200):
    begun = time.monotonic()
    connection = Connection(sys.argv[1])
    connection.request("GET", "/v1/status")
    assert connection.getresponse().read()
    took.append(1000 * (time.monotonic() - begun))
    time.sleep(0.02)
took.sort()
print(f"beside {sys.argv[2]} waiters another user asks for the status: median {took[100]:.1f} ms, "
      f"90% {took[180]:.1f} ms, 99% {took[198]:.1f} ms")' "$CARMA_SOCKET" "$waiters" || fail "another user is not answered"
run cancel "$held"
wait_for '[ "$(cat waited.* 2>/dev/null | grep -c .)" -ge "$waiters" ]'
[ "$(cat waited.* | grep -vc '^1$')" -eq 0 ] || fail "waiters end with: $(cat waited.* | sort | uniq -c)"
[ "$(cat wait.*.err | grep -c 'was cancelled')" -eq "$waiters" ] || fail "they say: $(cat wait.*.err | sort | uniq -c | head -5)"
# The daemon's memory: all of them cost it little.
most=$(awk '/VmHWM/ {print $2}' "/proc/$daemon/status")
echo "$waiters waiters cost carmad $((most - alone)) kB"
[ "$waiters" -lt 1000 ] || [ $((most - alone)) -lt 20000 ] || fail "$waiters waiters cost carmad $((most - alone)) kB"
stop_daemon
"$CARMA" submit --no-retry --wait -- true 2>/dev/null
[ $? -eq 125 ] || fail "submit --wait without a daemon has no status of its own"
