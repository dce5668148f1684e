#!/bin/sh
# Usage: test_bounds.sh CARMA SOURCE BUILD [all]
# The bounds of the queue and of a submission (docs/limits.md), at them and over them, through the daemon. With `all`:
# what takes long of ten times the bounds.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 600
# bounds WHAT CHECK [ARGUMENT...]: of bounds.py. anew [ARGUMENT...]: a daemon without jobs.
bounds() {
    bounded=$1
    shift
    PYTHONPATH=$SOURCE/python python3 -B "$SOURCE/tests/cli/bounds.py" "$CARMA_SOCKET" "$@" || fail "$bounded"
}
anew() {
    [ -z "$daemon" ] || stop_daemon
    rm -rf "$STATE"
    start_daemon "$@"
}
if [ "${4-}" = all ]; then
    anew
    printf '#!/bin/sh\n' >job.sh
    bounds "ten times a bound" tenfold_long "$CARMA"
    stop_daemon
    exit 0
fi
anew --set max_queued=5
bounds "the queue's bound" queue
expect_error 1 "the queue is full: 5 jobs have not ended" submit -- true
chmod 711 "$T" # another user connects
anew --set max_queued=200
bounds "the share that is kept for others" share
anew
bounds "the bounds of a submission" sizes
bounds "the bound of a submission's models" models "$daemon"
bounds "ten times a bound" tenfold "$CARMA"

# What the store keeps of a user's jobs. Of an ended one it has the command, and no environment.
anew --set max_texts_per_user=1M
bounds "the bound of a user's texts" texts
restart_daemon --set max_texts_per_user=1M
bounds "the bound of a user's texts, after a restart" texts_again
stop_daemon
python3 -c 'import sqlite3, sys
kept = [body for body, in sqlite3.connect(sys.argv[1]).execute("SELECT body FROM spec ORDER BY job")]
assert ["\"environment\"" in body for body in kept] == 9 * [False] + 3 * [True], [body[:300] for body in kept]
assert all("\"command\":[\"true\"]" in body for body in kept)' "$STATE/store.db" || fail "the stored texts"
anew --set max_texts_per_user=1M
bounds "the bound of a user's texts in memory" held
restart_daemon --set max_texts_per_user=1M
bounds "the same after a restart" held_again

# More jobs than a request has go in several; of those that are refused the others are told.
anew --set max_queued_per_user=1500
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
anew
bounds "lists in parts" pages
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
