#!/bin/sh
# The store of a carma 0.2.0 (tests/golden/store-0.2.sql): this carma opens it, has all that it says, and goes on.
. "$(dirname "$0")/node.sh"
start_node a100x4-40g 2000 # the store ends 81,000 s after a boot
mkdir -m 700 "$STATE"
(umask 077 && python3 -c 'import sqlite3, sys
sqlite3.connect(sys.argv[2]).executescript(open(sys.argv[1]).read())' "$SOURCE/tests/golden/store-0.2.sql" "$STATE/store.db")
expect_error 1 "has form 6, this carma reads " admin verify --state "$STATE"
start_daemon

run queue --all --json
check '[(job["id"], job["state"], job["attempts"], job["reserved_bytes"] >> 30) for job in said["jobs"] if job["id"] != 9] ==
    [(1, "COMPLETED", 1, 1), (2, "COMPLETED", 1, 2), (3, "COMPLETED", 1, 3), (4, "COMPLETED", 1, 4), (5, "COMPLETED", 1, 5),
     (6, "COMPLETED", 1, 6), (7, "COMPLETED", 1, 30), (8, "GPU_OOM", 4, 1), (10, "HELD", 0, 2), (11, "HELD", 0, 2)]'
until_field 9 state LOST # it ran, and its machine is another
run history --json
check '{row["id"]: (row["state"], row["oom_crashes"], (row["peak_bytes"] or 0) >> 30) for row in said["jobs"]} ==
    {**{id: ("COMPLETED", 0, 1) for id in (1, 2, 3, 4, 5, 6)}, 7: ("COMPLETED", 0, 30), 8: ("GPU_OOM", 4, 0), 9: ("LOST", 0, 0)}'
new=$(submitted --gpu-memory 2G -- "$TRAIN" --memory 1G --sm-activity 0.3 --seconds 20)
[ "$new" = 12 ] || fail "the next job has the number $new"
expect_ok wait 12
shows "^job 10 is HELD" explain 10
stop_daemon
shows ": whole: " admin verify --state "$STATE"
