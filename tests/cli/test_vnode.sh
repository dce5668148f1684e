#!/bin/sh
# Usage: test_vnode.sh PROGRAMS SOURCE
# carma-vnode: its nodes, its output and its refusals.
PROGRAMS=$1
set -- "$1/carma-vnode" "$2"
. "$2/tests/cli/lib.sh"
unset CARMA_VNODE

# expect STATUS TEXT COMMAND...: ends with the status, and says the text; a failure says it in one line on stderr only.
expect() {
    wanted=$1
    text=$2
    shift 2
    said=$*
    "$@" >"$T/out" 2>"$T/err" </dev/null
    status=$?
    expect_status "$wanted"
    where=$T/out
    if [ "$wanted" -ne 0 ]; then
        where=$T/err
        [ ! -s "$T/out" ] && { [ "$wanted" -ne 1 ] || [ "$(wc -l <"$T/err")" -eq 1 ]; } ||
            fail "$said: not one line on stderr: $(cat "$T/out" "$T/err")"
    fi
    [ -z "$text" ] || grep -qF -- "$text" "$where" || fail "$said: no '$text' in: $(cat "$where")"
}

vnode=$PROGRAMS/carma-vnode
profiles=$SOURCE/data/nodes
expect 0 "" "$vnode" create "$T/a" --profile "$profiles/h100x8-80g.ini"
expect 0 "node h100x8-80g, time scale 1" "$vnode" show "$T/a"
expect 0 "memory 0 of 80999 MiB, SM activity 0.000, power 70.0 W" "$vnode" show "$T/a"
[ "$(grep -c '^GPU' "$T/out")" -eq 8 ] || fail "not 8 GPUs"
[ "$(stat -c %a "$T/a")" = 666 ] || fail "mode of $T/a"
expect 1 "node state '$T/a' exists" "$vnode" create "$T/a" --profile "$profiles/h200x1.ini"
expect 0 "node h100x8-80g" "$vnode" show "$T/a"
expect 0 "" env CARMA_TIME_SCALE=480 "$vnode" create "$T/b" --profile "$profiles/h200x1.ini" --mode 0600
[ "$(stat -c %a "$T/b")" = 600 ] || fail "mode of $T/b"
expect 0 "time scale 480" env CARMA_VNODE="$T/b" "$vnode" show
expect 1 "was made under CARMA_TIME_SCALE=480, here it is 2" env CARMA_TIME_SCALE=2 "$vnode" show "$T/b"
expect 0 "node a100x4-40g" sh -c 'mkdir -p "$1/prefix/share/carma/nodes" && cp "$2"/*.ini "$1/prefix/share/carma/nodes" &&
    CARMA_PREFIX=$1/prefix "$3" create "$1/c" && "$3" show "$1/c"' sh "$T" "$profiles" "$vnode"

expect 1 "node profile 'none'" env CARMA_PREFIX="$T/prefix" "$vnode" create "$T/d" --profile none
expect 1 "CARMA_VNODE is not set" "$vnode" show
expect 1 "/nonexistent" "$vnode" show /nonexistent
cp "$profiles/h200x1.ini" "$T/profile" # which this user can write
expect 1 "is not a node's state" "$vnode" show "$T/profile"
expect 1 "CARMA_TIME_SCALE 'x'" env CARMA_TIME_SCALE=x "$vnode" show "$T/b"
expect 1 "cannot be made" "$vnode" create "$T/none/such" --profile "$profiles/h200x1.ini"
expect 2 "say 'create', 'show', 'inject' or 'clear'" "$vnode"
expect 2 "say 'create', 'show', 'inject' or 'clear'" "$vnode" destroy "$T/a"
expect 2 "say which file" "$vnode" create
expect 2 "--mode '9' is not an octal mode" "$vnode" create "$T/e" --mode 9
# Faults: each is documented; where and how long they are in force; refusals.
for fault in $("$vnode" --help | sed -n '/^Faults:/,$s/^  \([a-z0-9-]*\)  *.*/\1/p'); do
    grep -q "^| .*\`${fault}[\` ]" "$SOURCE/docs/vnode.md" || fail "docs/vnode.md has no fault '$fault'"
done
expect 0 "" "$vnode" create "$T/f" --profile "$profiles/h100x2-mig.ini"
expect 0 "MIG 3g.40gb  MIG-" "$vnode" show "$T/f"
expect 0 "" "$vnode" inject "$T/f" gpu-lost --gpu 1
expect 0 "fault gpu-lost on 1" "$vnode" show "$T/f"
expect 0 "1 Xid, the latest 79" "$vnode" show "$T/f"
expect 0 "" env CARMA_VNODE="$T/f" "$vnode" inject reindex
expect 0 "fault gpu-lost on 0" "$vnode" show "$T/f"
expect 0 "" "$vnode" inject "$T/f" hang --for 0.01
sleep 0.02
expect 0 "" "$vnode" show "$T/f"
! grep -q hang "$T/out" || fail "a fault does not end"
expect 0 "" "$vnode" clear "$T/f"
expect 0 "node h100x2-mig" "$vnode" show "$T/f"
! grep -q fault "$T/out" || fail "a fault is not cleared"
expect 1 "'rust' is not a fault" "$vnode" inject "$T/f" rust
expect 1 "--gpu '2' is not one of the node's GPUs" "$vnode" inject "$T/f" hang --gpu 2
expect 1 "say which Xid" "$vnode" inject "$T/f" xid
expect 1 "--pid 77777777 is not a process on the node" "$vnode" inject "$T/f" mps-fault --pid 77777777
expect 2 "say which fault" "$vnode" inject
expect 2 "--for '-1' is not" "$vnode" inject "$T/f" hang --for -1
expect 2 "--fail 'rust' is not one of the failures" "$PROGRAMS/carma-train" --memory 1G --fail rust

[ ! -e "$T/d" ] && [ ! -e "$T/e" ] || fail "a refused node was made"

# The job of a workload of the shipped table; and a time scale that is not the node's.
CARMA_VNODE=$T/b
export CARMA_VNODE
unset CUDA_VISIBLE_DEVICES CUDA_MPS_PIPE_DIRECTORY
workload=$(sed -n '/^[^#]/p' "$SOURCE/data/workloads.csv" | sed -n '2s/,.*//p')
expect 1 "was made under CARMA_TIME_SCALE=480" env CARMA_TIME_SCALE=3 "$PROGRAMS/carma-train" --memory 1G
CARMA_TIME_SCALE=480 "$PROGRAMS/carma-train" --workload "$workload" --workloads "$SOURCE/data/workloads.csv" \
    >"$T/job" 2>&1 &
job=$!
wait_for '"$vnode" show | grep -q training' || fail "no job trains: $("$vnode" show)"
kill $job
wait $job 2>/dev/null
[ $? -eq 143 ] || fail "carma-train after SIGTERM: $(cat "$T/job")"
grep -qF "carma-train: $workload on 1 GPU, time sharing" "$T/job" ||
    fail "the job said: $(cat "$T/job")"
