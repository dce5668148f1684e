#!/bin/sh
# carma admin verify and backup beside a daemon at work: the store is whole, a copy works, damage is named.
. "$(dirname "$0")/node.sh"
expect_error 2 "which one: backup, drain, gpu, learned, recover, reserve, resume, share, unreserve or verify?" admin
expect_error 2 "there is no 'admin frob': it is backup, drain, gpu, learned, recover, reserve, resume, share, unreserve or verify" admin frob
expect_error 2 "which file shall hold the copy?" admin backup
expect_error 2 "takes no arguments" admin verify store
expect_error 1 "nowhere/store.db: No such file or directory: name carmad's state directory by --state" admin verify --state "$T/nowhere"

start_all a100x4-40g 600
# Enough records for a snapshot: each of these is submitted, held, released and cancelled.
run submit --parsable --hold -J kept -- true
for i in 1 2 3 4 5 6 7 8; do
    for _ in 1 2 3 4 5 6 7 8; do run submit --parsable --hold -- true; done
    run release "$((8 * i - 6))-$((8 * i + 1))"
    run hold "$((8 * i - 6))-$((8 * i + 1))"
    run cancel "$((8 * i - 6))-$((8 * i + 1))"
done
runs 66 -- "$TRAIN" --memory 4G --seconds 30000

shows ": whole: " admin verify --state "$STATE"
grep -q ' [1-9][0-9]* snapshots, ' "$T/out" || fail "no snapshot was looked at: $(cat "$T/out")"
mkdir copy.db-journal copy.db-wal copy.db-shm # others may have put such names there: SQLite meets none of them
expect_ok admin backup --state "$STATE" "$T/copy.db"
[ -z "$(find . -maxdepth 1 -name '.carma-backup*')" ] || fail "the copy's own directory is left"
[ "$(stat -c %a copy.db)" = 600 ] || fail "the copy has mode $(stat -c %a copy.db)"
expect_error 1 "name a new file" admin backup --state "$STATE" "$T/copy.db"
run cancel 66
until_field 66 state CANCELLED
stop_daemon

# The copy is gone on from. Job 1 is held as it was; job 66, which ran then, is no longer there and so is lost.
mkdir -m 700 old
mv "$STATE"/store.db* old
cp copy.db "$STATE/store.db"
# The copy lacks a record that was acknowledged: that is said, and how to go on.
timeout 20 "$PREFIX/bin/carmad" --state "$STATE" --socket "$CARMA_SOCKET" 2>refusal && fail "carmad takes an older store"
grep -q "is an older one, .*: carma admin recover --state $STATE$" refusal || fail "$(cat refusal)"
shows 'that were acknowledged are lost; the next job has the number 10067$' admin recover --state "$STATE"
start_daemon
expect_field 1 state HELD name kept
expect_id 10067 --hold -- true
run cancel 10067
stop_daemon
expect_ok admin verify --state "$STATE"

# Damage of each kind, and its name.
damage() { # SQL TEXT
    rm -rf bad
    mkdir bad
    cp copy.db bad/store.db
    STATE=bad sql "$1" || fail "$1"
    expect_error 1 "$2" admin verify --state "$T/bad"
}
damage "DELETE FROM record WHERE seq = 7" "record 7 is missing"
damage "UPDATE record SET body = json_set(body, '\$.job', 999), job = 999
    WHERE seq = (SELECT min(seq) FROM record WHERE type = 'released')" "does not follow: there is no unfinished job 999"
damage "UPDATE spec SET body = '{' WHERE job = 3" "submission of job 3 is damaged"
damage "UPDATE spec SET body = '[]' WHERE job = 3" "submission of job 3 is damaged"
damage "UPDATE spec SET body = json_set(body, '\$.colour', 'red') WHERE job = 3" "submission of job 3 is damaged: unknown member 'colour'"
damage "DELETE FROM spec WHERE job = 1" "the submission of job 1, which has not ended, is missing"
damage "UPDATE job SET body = '' WHERE job = 4" "stored of job 4 is damaged"
damage "UPDATE snapshot SET body = replace(body, '\"request_source\":0', '\"request_source\":1')" "not the state which the records lead to"
damage "UPDATE snapshot SET body = 'x'" "is damaged: it will be passed over"

# A store that is refused stays as it is, though the core would go on with the readable part.
refused() { # SQL TEXT
    rm -rf bad
    mkdir -m 700 bad
    cp copy.db bad/store.db
    STATE=bad sql "$1" || fail "$1"
    records >before
    timeout 20 "$PREFIX/bin/carmad" --state "$T/bad" --socket "$T/bad.socket" 2>refusal
    [ $? = 1 ] || fail "a daemon ran on a store with: $1"
    tail -n 1 refusal | grep -q "$2" || fail "$1: $(cat refusal)"
    records | cmp -s before - || fail "$1: something was stored: $(records | diff before -)"
}
records() {
    STATE=bad sql "SELECT max(seq), count(*) FROM record"
}
refused "UPDATE record SET body = 'x' WHERE type = 'placed' AND job = 66" \
    "record [0-9]* is damaged: .*: restore the store from a backup (carma admin backup), or begin with an empty state dir"

# A log that is longer than a snapshot is due after is taken in as a whole before the next one is made.
python3 -c 'import json, sqlite3, sys
with sqlite3.connect(sys.argv[1] + "/store.db") as db:
    seq, at_ns = db.execute("SELECT max(seq), max(at_ns) FROM record").fetchone()
    for kind, job in [("timer", 0)] * 600 + [("released", 1)]:
        seq += 1
        body = json.dumps({"type": kind, "at_ns": at_ns, "job": job})
        db.execute("INSERT INTO record VALUES (?, ?, ?, ?, ?)", (seq, at_ns, kind, job, body))' "$STATE" || fail "600 records"
start_daemon
until_field 1 state COMPLETED
stop_daemon
expect_ok admin verify --state "$STATE"
