#!/bin/sh
# The dashboard in a browser, on a virtual node that plays, through `carma dashboard`.
. "$(dirname "$0")/../cli/node.sh"
. "$SOURCE/tests/web/prepare.sh"
start_all a100x4-40g 240 --set share=mps

# Jobs that end, for what-if; one whose name is not HTML; one that writes, one that waits for ever, one to be cancelled.
for workload in resnet18_cifar100_20e_1 resnet18_cifar100_20e_3 resnet34_cifar100_20e_1; do
    expect_ok submit --parsable -J "short-$workload" -- "$TRAIN" --workload "$workload"
done
run submit --parsable -J '<img src=x onerror=alert(1)>' -o hostile -- sh -c 'while :; do echo "<script>alert(2)</script>"; sleep 1; done'
hostile=$(cat "$T/out")
run submit --parsable -J talks --gpu-memory 2G -o talks -- sh -c 'n=0; while :; do n=$((n + 1)); echo "step $n"; sleep 0.2; done'
talks=$(cat "$T/out")
held=$(submitted -J held --hold -- true)
until_field "$talks" state RUNNING
until_field 1 state COMPLETED
"$CARMA" play "$SOURCE/data/traces/thesis_60.csv" --output-dir "$T/played" >"$T/play.log" 2>&1 &
play=$!

# How the daemon is started again once the test has killed it.
cat >"$T/restart" <<END
exec "$PREFIX/bin/carmad" --state "$STATE" --socket "$CARMA_SOCKET" --set mps_pipe_directory="$T/mps" --set grace=500ms \\
    --set nvml_library="$PREFIX/lib/carma/vnode/libnvidia-ml.so.1" --set share=mps 2>>"$T/daemon.log"
END
if open_dashboard "$T/address" "$CARMA"; then
    DAEMON=$daemon RESTART=$T/restart node "$SOURCE/tests/web/live.mjs" "$address" "$hostile" "$talks" "$held" ||
        fail "the dashboard: see above"
fi
kill "$play" 2>/dev/null
wait "$play" 2>/dev/null
kill -0 "$daemon" 2>/dev/null || daemon= # the test has killed it
