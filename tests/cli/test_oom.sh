#!/bin/sh
# Usage: test_oom.sh CARMA SOURCE BUILD [all]
# A job that runs out of GPU memory is known to, however it says so (oom.py): a sample, or all ways.
. "$(dirname "$0")/node.sh"
start_node h100x8-80g 10
export CUDA_MPS_PROTOCOL_VERSION=2
. "$SOURCE/tests/cli/mps.sh"
sample=sample
[ "${4-}" != all ] || sample=
for mode in mps time-slice; do
    start_daemon --set mps_pipe_directory= --set mps_control="$CONTROL" --set share="$mode" --set max_slowdown=0
    python3 -B "$SOURCE/tests/cli/oom.py" "$CARMA" "$TRAIN" "$SOURCE" "$mode" $sample ||
        fail "$mode: (!) is not as the rules say"
    # One that catches the error and goes on to its end has ended in order, and it is told.
    caught=$(submitted --gpu-memory 5G -- "$TRAIN" --memory 5G --seconds 20 --fail recovered-oom)
    warns "GPU memory ran out in it, and it went on to its end" wait "$caught"
    expect_field "$caught" state COMPLETED attempts 1
    for shown in "show $caught" "queue --all" history; do
        # shellcheck disable=SC2086 # words
        run $shown
        grep -qE 'GPU memory (ran|had run) out in it' "$T/out" ||
            fail "carma $shown: $(cat "$T/out")"
    done
    if [ "$mode" = mps ]; then
        # The server's log alone tells that one was refused memory, at a limit of its user's; not of another client.
        run submit --parsable --gpu-memory 10G --mps-memory-limit 4G -- sh -c "$TRAIN --memory 20G --seconds 20 >/dev/null 2>&1; exit 1"
        refused=$(cat "$T/out")
        other=$(submitted --gpu-memory 3G -- sh -c "$TRAIN --memory 3G --seconds 20 >/dev/null 2>&1; exit 1")
        run wait "$refused" "$other"
        expect_field "$refused" exit_cause gpu_oom
        expect_field "$refused" message "it said nothing, and its MPS server had refused it GPU memory"
        expect_field "$other" exit_cause failed attempts 1
    fi
    stop_daemon
done
