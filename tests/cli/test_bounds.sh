#!/bin/sh
# Usage: test_bounds.sh CARMA SOURCE BUILD [all]
# The bounds of the queue and of a submission (docs/limits.md), at them and over them, through the daemon. With `all`:
# what takes long of ten times the bounds.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 600
if [ "${4-}" = all ]; then
    start_daemon
    printf '#!/bin/sh\n' >job.sh
    PYTHONPATH=$SOURCE/python python3 -B "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" tenfold_long "$CARMA" || fail "ten times a bound"
    stop_daemon
    exit 0
fi
start_daemon --set max_queued=5
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" queue || fail "the queue's bound"
expect_error 1 "the queue is full: 5 jobs have not ended" submit -- true
stop_daemon
rm -rf "$STATE"
chmod 711 "$T" # another user connects
start_daemon --set max_queued=200
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" share || fail "the share that is kept for others"
stop_daemon
rm -rf "$STATE"
start_daemon
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" sizes || fail "the bounds of a submission"
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" models "$daemon" || fail "the bound of a submission's models"
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" tenfold "$CARMA" || fail "ten times a bound"
stop_daemon
rm -rf "$STATE"

# What the store keeps of a user's jobs. Of an ended one it has the command, and no environment.
start_daemon --set max_texts_per_user=1M
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" texts || fail "the bound of a user's texts"
restart_daemon --set max_texts_per_user=1M
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" texts_again || fail "the bound of a user's texts, after a restart"
stop_daemon
python3 -c 'import sqlite3, sys
kept = [body for body, in sqlite3.connect(sys.argv[1]).execute("SELECT body FROM spec ORDER BY job")]
assert ["\"environment\"" in body for body in kept] == 9 * [False] + 3 * [True], [body[:300] for body in kept]
assert all("\"command\":[\"true\"]" in body for body in kept)' "$STATE/store.db" || fail "the stored texts"
rm -rf "$STATE"
start_daemon --set max_texts_per_user=1M
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" held || fail "the bound of a user's texts in memory"
restart_daemon --set max_texts_per_user=1M
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" held_again || fail "the same after a restart"
stop_daemon
rm -rf "$STATE"

# More jobs than a request has go in several; of those that are refused the others are told.
start_daemon --set max_queued_per_user=1500
printf '#!/bin/sh\n' >"$T/job.sh"
for wanted in "1001 0" "1001 1"; do
    # shellcheck disable=SC2046
    run submit --hold $(yes "$T/job.sh" | head -n "${wanted% *}")
    expect_status "${wanted#* }"
done
grep -q "^carma: you have 1001 unfinished jobs and submit 1000" "$T/err" || fail "$said: $(cat "$T/err")"
run cancel 1-600
# shellcheck disable=SC2046
ends 1 submit --hold $(yes "$T/job.sh" | head -n 1100)
[ "$(wc -l <"$T/out")" -eq 1000 ] || fail "$said: $(wc -l <"$T/out") lines"
grep -q "^carma: the first 1000 of 1100 jobs were submitted, the others were not: you have 1401 unfinished jobs and submit 100," "$T/err" ||
    fail "$said: $(cat "$T/err")"
stop_daemon
rm -rf "$STATE"
start_daemon
python3 "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" pages || fail "lists in parts"
expect_ok queue
[ "$(tail -n 1 "$T/out")" = "and 1300 more: carma queue --json has them all" ] || fail "$said: $(tail -n 1 "$T/out")"
[ "$(wc -l <"$T/out")" -eq 1002 ] || fail "$said: $(wc -l <"$T/out") lines"
"$CARMA" queue --json | grep -c '"id":' | grep -qx 2300 || fail "carma queue --json has not all"
shows '^Job  *2300' show @
stop_daemon

# refused_start TEXT: carmad does not start, and says why in one line.
refused_start() {
    timeout "$PATIENCE_S" "$PREFIX/bin/carmad" --state "$STATE" --socket "$CARMA_SOCKET" 2>"$T/err"
    status=$?
    [ $status -eq 1 ] || fail "carmad: status $status: $(cat "$T/err")"
    [ "$(wc -l <"$T/err")" -eq 1 ] && grep -qF "$1" "$T/err" || fail "carmad does not say '$1': $(cat "$T/err")"
}
# Fewer descriptors than its clients may take.
(
    ulimit -n 300
    refused_start 'carmad needs 640 open files and may have 300'
    exit $failures
) || failures=$((failures + 1))
# Without its store it would number jobs from 1 again, over the files of others.
mkdir "$STATE/runs/7-1-1"
mkdir "$T/kept"
mv "$STATE"/store.db* "$T/kept"
refused_start "store.db is empty or gone, and $STATE/runs has runs of its jobs: restore it from a backup"
: >"$STATE/store.db"
refused_start 'store.db is empty or gone'
rm "$STATE/store.db"
mv "$T/kept"/store.db* "$STATE"
start_daemon
stop_daemon
