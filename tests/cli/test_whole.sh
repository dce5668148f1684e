#!/bin/sh
# Jobs through daemon, shepherd and GPUs; a trace beside kills of the daemon; what the programs refuse to begin with.
. "$(dirname "$0")/node.sh"
ln -s "$SOURCE/data/summaries" .
start_all a100x4-40g 480 --config /dev/null

# One job, from its submission to its end; and the fate of others.
ends 3 submit -W -J first -o first.out -- sh -c 'echo "on $CUDA_VISIBLE_DEVICES"; exit 3'
shows '^on GPU-' logs @
ends 137 submit -W -- sh -c 'kill -KILL $$'
expect_id 3 --hold -- true
shows 'job 3 is HELD' explain @
expect_ok release 3
expect_ok wait @
run submit --parsable -- sleep 100000
expect_ok cancel 4
ends 3 wait 1-4
run queue --all
[ "$(awk '{ printf "%s ", $4 }' "$T/out")" = 'ST F F CD CA ' ] || fail "$said: $(cat "$T/out")"
expect_error 1 "the node has 4" submit -G 5 -- true
expect_error 1 "39.6 GiB" submit --gpu-memory 100G -- true

# Ten short jobs, two of them on two GPUs; the daemon is killed among them.
grep -v '^#' "$SOURCE/data/workloads.csv" | awk -F, -v OFS=, '
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
    NR > 1 { $column["solo_runtime_s"] = 200 }
    NR == 1 || $1 == "resnet" || $1 == "gpt2_large_2"' >workloads.csv
{
    echo arrival_s,workload
    for second in 0 60 120 180 240 300 360 420; do
        echo "$second,resnet"
    done
    echo 430,gpt2_large_2
    echo 430,gpt2_large_2
} >trace.csv
"$CARMA" play trace.csv --workloads workloads.csv --output-dir jobs --json >report.json 2>messages &
play=$!
wait_for 'grep -q "^playing" messages' || fail "play: $(cat messages)"
stop_daemon KILL
wait_for 'grep -q "waiting up to" messages' || fail "play did not notice that the daemon was gone"
start_daemon --config /dev/null
wait "$play" || fail "play: status $?: $(cat messages)"
python3 - report.json <<'PYTHON' || fail "play: $(cat report.json messages)"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["jobs"] == 10 and report["failed"] == 0 and report["time_scale"] == 480, report
assert len(report["node"]) == 4 and report["memory_mean_bytes"] > 0, report
# Not known where a busy machine let it look but once behind the kill: the second daemon's sums begin behind the first one's.
assert report["energy_j"] is None or report["energy_j"] > 0, report
assert 600 < report["makespan_s"] and 200 <= report["run_time_mean_s"] <= report["jct_mean_s"], report
PYTHON
run queue --all --json
# None was submitted or run twice.
check '[job["name"] for job in said["jobs"][4:]] == ["resnet"] * 8 + ["gpt2_large_2"] * 2' \
    'all(job["attempts"] == 1 + job["crashes"] for job in said["jobs"][4:])'

# Stopped in the middle, it cancels the jobs that it has started, and only those.
expect_ok submit --parsable --hold -- true
"$CARMA" play "$SOURCE/data/traces/thesis_90.csv" --output-dir stopped 2>messages &
play=$!
wait_for '[ "$("$CARMA" queue | wc -l)" -gt 2 ]' || fail "play submits nothing: $("$CARMA" queue)"
kill "$play"
wait "$play"
status=$?
[ "$status" -eq 143 ] || fail "a stopped play: status $status: $(cat messages)"
grep -q '^carma: stopped after [1-9][0-9]* of 90 jobs: [1-9][0-9]* unfinished ones cancelled$' messages ||
    fail "a stopped play: $(cat messages)"
run queue
[ "$(awk 'NR > 1 && $4 != "CG" { print $4 }' "$T/out")" = H ] || fail "a stopped play left $(cat "$T/out")"
expect_ok cancel 15
ends 127 submit -W -- "$T/no-such-program"
grep -qF no-such-program "$T/err" || fail "$said: $(cat "$T/err")"

# refuses STATUS TEXT COMMAND...: wrong usage is status 2, a wrong file or environment 1; each is told in one line.
refuses() {
    wanted=$1
    text=$2
    shift 2
    "$@" >"$T/out" 2>"$T/err" </dev/null
    status=$?
    [ "$status" -eq "$wanted" ] && [ "$(wc -l <"$T/err")" -eq 1 ] && grep -qF -e "$text" "$T/err" ||
        fail "$*: status $status: $(cat "$T/err")"
}
carmad=$PREFIX/bin/carmad
printf 'policy = magm\nfoo = 1\n' >wrong.conf
for program in carmad carma-vnode carma-train; do
    refuses 2 "unrecognized option '--foo'" "$PREFIX/bin/$program" --foo
done
refuses 2 "'foo' is not expected here" "$carmad" foo
refuses 2 "option '--state' requires an argument" "$carmad" --state
refuses 2 "unknown key 'foo'" "$carmad" --set foo=1
refuses 1 "wrong.conf:2: unknown key 'foo'" "$carmad" --config wrong.conf
refuses 1 "CARMA_TIME_SCALE 'x'" env CARMA_TIME_SCALE=x "$carmad"
refuses 2 "--seconds 'nan' is not a number" "$TRAIN" --seconds nan
refuses 1 "$STATE" "$carmad" --state "$STATE" --socket "$T/other" # one daemon per state
"$carmad" --version | grep -qx "carmad $("$CARMA" --version | sed 's/.* //')" || fail "carmad --version"
end_daemon
refuses 1 "$STATE: its last record lies" env CARMA_TIME_SCALE=2 timeout 30 "$carmad" --state "$STATE" --socket "$T/other"
