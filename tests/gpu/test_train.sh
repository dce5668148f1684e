#!/bin/sh
# Usage: test_train.sh TRAIN.PY CARMA_VNODE FAKE_CUDA SOURCE
# The small training's own kernel, with the tests' CUDA library on a virtual node: its output, its memory and its
# out-of-memory error.
set -u
train=$1
vnode=$2
SOURCE=$4
T=$(mktemp -d) || exit 99
trap 'rm -rf "$T"' EXIT
CARMA_CUDA_LIBRARY=$3
CARMA_VNODE=$T/node
export CARMA_CUDA_LIBRARY CARMA_VNODE
unset CARMA_TIME_SCALE FAKE_CUDA FAKE_CUDA_CONTEXT_MIB
failures=0

fail() {
    echo "FAILED: $*: $(cat "$T/out" "$T/err")" >&2
    failures=$((failures + 1))
}

run() {
    python3 "$train" --backend kernel "$@" >"$T/out" 2>"$T/err"
    status=$?
}

"$vnode" create "$CARMA_VNODE" --profile "$SOURCE/data/nodes/a100x4-40g.ini" >/dev/null || exit 99
run --epochs 3 --steps 10
[ "$status" -eq 0 ] || fail "three epochs: status $status"
[ "$(grep -c '^epoch [123]: [0-9.]* s$' "$T/out")" -eq 3 ] || fail "three epochs"

# The request of carma play; and the memory is there while it runs.
printf 'id,gpus,epochs,peak_mib,resident_mib,solo_runtime_s,sm_activity\nlarge,1,2000000,3000,3000,10,0.4\n' >"$T/workloads.csv"
python3 "$train" --backend kernel --workload large --workloads "$T/workloads.csv" --steps 20 >"$T/out" 2>"$T/err" &
training=$!
tries=0
until "$vnode" show | grep -q '  memory 3400 of '; do # with the context
    tries=$((tries + 1))
    [ "$tries" -gt 200 ] && fail "the workload's memory never came: $("$vnode" show)" && break
    sleep 0.05
done
kill "$training"
wait "$training"
run --workload small --workloads "$T/workloads.csv"
[ "$status" -eq 2 ] || fail "a workload that is not there: status $status"

# More than there is: the driver's error, by its name, which carma recognises.
run --memory-mib 50000 --epochs 3
[ "$status" -eq 1 ] || fail "out of memory: status $status"
grep -q '^train.py: cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY: 268435456 bytes asked for, ' "$T/err" || fail "out of memory"
run --memory-mib 5000 --epochs 1 --steps 2
grep -q 'only 512 of 5000 MiB held: too few steps' "$T/err" || fail "too few steps"

FAKE_CUDA=none run
[ "$status" -eq 3 ] || fail "no GPU: status $status"
CARMA_CUDA_LIBRARY=$T/none run
[ "$status" -eq 3 ] || fail "no driver: status $status"
exit "$((failures > 0))"
