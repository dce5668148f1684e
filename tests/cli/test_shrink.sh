#!/bin/sh
# A job of unknown need: its observed memory becomes its reservation, and is shown.
. "$(dirname "$0")/node.sh"
start_all h200x1 300 --config /dev/null --set share=exclusive --set shrink_after=20m # time to look at it before

run submit -- "$TRAIN" --memory 4G --seconds 100000
expect_field 1 reservation_source prior reserved_bytes $((26 << 30))
shows "26.0 GiB on each GPU, which is enough for most workloads: its own need is not known yet" explain 1
until_field 1 reservation_source observed
expect_field 1 reserved_bytes 5368709120 # a quarter more than it holds
shows "5.0 GiB on each GPU, as it was observed to need" explain 1
restart_daemon --config /dev/null
expect_field 1 reservation_source observed runs_by exclusive # it has its GPU alone as before; the next ones share it
expect_error 1 "job 1 is RUNNING: only one that waits can be held" hold 1
expect_error 1 "job 1 is RUNNING: it is not held" release 1
cancel 1

# A request that was shrunk: the accounting has the first figure and the last one.
run submit --gpu-memory 20G -- "$TRAIN" --memory 4G --seconds 100000
expect_field 2 reservation_source declared
until_field 2 reservation_source observed
cancel 2
expect_field 2 reservation_source observed
tells '[(job["reservation_source"], job["reserved_bytes"], job["last_reservation_source"], job["last_reserved_bytes"]) for job in said["jobs"]
    if job["id"] == 2] == [("declared", 20 << 30, "observed", 4724464025)]' history --json

# Its frameworks' limit: its reservation, or the whole GPU where it has no neighbour.
told() {
    number=$1 expected=$2
    shift 2
    run submit -o told.out "$@" -- sh -c 'echo $CARMA_GPU_MEMORY_BYTES $CARMA_GPU_MEMORY_FRACTION'
    run wait "$number"
    "$CARMA" gpus --json | python3 -c 'import json, sys
reserved, told = sys.argv[1], sys.argv[2].split()
total = json.load(sys.stdin)["gpus"][0]["total_bytes"]
expected = int(reserved) if reserved != "all" else total
assert told == [str(expected), f"{expected * 10000 // total / 10000:.4f}"], (told, expected, total)' "$expected" \
        "$(cat told.out)" || fail "$said: told $(cat told.out)"
}
told 3 21474836480 --gpu-memory 20G
told 4 $((26 << 30))
told 5 all --gpu-memory 20G --exclusive
restart_daemon --config /dev/null --set prior_quantile=0%
told 6 all
