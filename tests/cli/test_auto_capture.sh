#!/bin/sh
# Jobs of unknown need are captured without being asked, by a stand-in for carma-sandbox: before their start on a full node,
# soon after it on an idle one. Nothing that a capture does keeps a job waiting, and it goes with its job and its daemon.
. "$(dirname "$0")/node.sh"
. "$SOURCE/tests/cli/auto_capture.sh"
start_all a100x4-40g 120 --config /dev/null
fill_node

# Before its start: the queue says that it is under way, and the job then waits with its own need.
expect_id 5 -- python3 later.py --epochs 3 later.py
until_field 5 estimating true
shows '^ *5 .*estimating; ' queue
expect_field 5 reservation_source prior
touch "$FAKE/go"
until_field 5 reservation_source estimated
expect_field 5 estimating false estimate.source replay
sentence=$(field 5 estimate.text)
case $sentence in
"estimated "*"iB by replay (confidence "*") from an automatic capture of train.py, 5 s") ;;
*) fail "the sentence is: $sentence" ;;
esac
shows "on each GPU: $sentence" explain 5
grep -qF "job 5: $sentence" "$T/daemon.log" || fail "the log does not tell it"

# What was asked for: the job's command, its directory, and its environment with carma's folder before its own.
python3 - "$FAKE"/request-* <<'PYTHON' || fail "the request is not as it should be"
import json, os, sys
request = json.load(open(sys.argv[1]))
assert request["command"] == ["python3", "later.py", "--epochs", "3", "later.py"], request["command"]
assert request["directory"] == os.getcwd() and request["uid"] == os.getuid(), request
environment = dict(item.split("=", 1) for item in request["environment"])
assert environment["PYTHONPATH"].split(":")[0].endswith("share/carma/python/carma_auto"), environment["PYTHONPATH"]
assert environment["CARMA_AUTO_CAPTURE_FD"] == "3" and environment["CARMA_AUTO_CAPTURE_GPUS"] == "1" and environment["HOME"] == os.environ["HOME"]
assert (request["time_s"], request["cores"], request["memory_bytes"]) == (120, 1, 8 << 30)
PYTHON

# A later run of it goes by that at once.
before=$(requests)
run submit --parsable --hold -- python3 later.py --epochs 3 later.py
expect_field 6 reservation_source estimated
wait_for 'field 6 estimate.text 2>/dev/null | grep -qxF "$sentence, made for job 5"' ||
    fail "it does not go by the kept capture: $(field 6 estimate.text)"
[ "$(requests)" -eq "$before" ] || fail "an equal job was captured again"

# Nobody captures what has a figure, or starts no Python, which is told.
before=$(requests)
run submit --parsable --hold --gpu-memory 3G -- python3 train.py
run submit --parsable --hold -- "$TRAIN" --workload resnet --seconds 9
run submit --parsable --hold -- python3 ranks.py
until_field 9 reservation_source estimated
[ "$(requests)" -eq $((before + 1)) ] || fail "others were captured, too: $(requests)"
expect_field 7 untried null
expect_field 9 untried null
why='its command is not tried: its command does not look like Python: --capture auto tries it'
shows "^Estimate  *none, as $why" show 8
shows "^estimate: none, as $why" explain 8

# Why there is none, in one line; such jobs keep their guess.
job=9
while read -r script line; do
    job=$((job + 1))
    run submit --parsable --hold -- python3 "$script.py"
    until_field $job estimate.warnings.0 "no automatic capture: $line"
    expect_field $job reservation_source prior
done <<'LINES'
network network.py needs the network: line 3:?URLError; name copies of them on this machine, or give --hf-config, --summary or --gpu-memory
fails carma-sandbox: ended with exit status 3: no data; fails.py: its optimizers made 0 steps; give --hf-config, --summary or --gpu-memory
garbage what it recorded cannot be read: it was written by something else, or cut; give --hf-config, --summary or --gpu-memory
cut what it recorded cannot be read: it was written by something else, or cut; give --hf-config, --summary or --gpu-memory
nothing no Python process of the command imported torch; give --summary or --gpu-memory
LINES
shows 'Warning    no automatic capture: network.py needs the network' show 10
run submit --parsable --hold -- python3 bad.py
until_field 15 estimating false
wait_for 'field 15 estimate.warnings.0 2>/dev/null | grep -q "^no automatic capture: an automatic capture of train.py, 5 s"' ||
    fail "a capture that cannot be read: $(field 15 estimate)"

python3 "$SOURCE/tests/cli/exposition.py" fetch "$CARMA_SOCKET" >metrics
for outcome in 'estimated"} 2' 'nothing"} 5' 'failed"} 1' 'dropped"} 0' 'reused"} 1'; do
    grep -qF "carma_captures_total{outcome=\"$outcome" metrics || fail "not counted: $outcome: $(grep captures metrics)"
done

# A script of the user's is run from a copy of its own, by its interpreter.
before=$(requests)
printf '#!/bin/bash -e\n#CARMA --hold\npython3 train.py\n' >job.sh
expect_id 16 job.sh -- one
until_field 16 reservation_source estimated
until_requests $((before + 1))
grep -l '"one"\]' "$FAKE"/request-* | xargs python3 -c 'import json, sys
command = json.load(open(sys.argv[1]))["command"]
assert command[:2] == ["/bin/sh", "-c"] and command[4:] == ["/tmp/carma-capture-16", "job.sh", open("job.sh").read(), "/bin/bash", "-e",
    "/tmp/carma-capture-16/job.sh", "one"], command' || fail "the script is not run as a job's"

# Who asks for none gets none.
before=$(requests)
run submit --parsable --hold --no-capture -- python3 train.py --quiet
run submit --parsable --hold -- python3 train.py --loud
until_field 18 reservation_source estimated
expect_field 17 reservation_source prior
[ "$(requests)" -eq $((before + 1)) ] || fail "a job with --no-capture was captured"

# One at a time of a user; it ends with its job, and the next has its turn.
before=$(requests)
run submit --parsable --hold -- python3 loop.py
run submit --parsable --hold -- python3 loop.py 2 loop.py
until_requests $((before + 1))
until_field 19 estimating true
expect_field 20 estimating false
[ "$(runs_now)" -eq 1 ] || fail "$(runs_now) captures of one user run"
run cancel 19
until_requests $((before + 2))
until_field 20 estimating true
until_runs 1

# The daemon is killed: nothing of the capture is left, and the next daemon captures those that wait without an estimate.
stop_daemon KILL
until_runs 0
before=$(requests)
start_daemon --config /dev/null
until_runs 1
expect_field 20 estimating true
[ "$(requests)" -eq $((before + 1)) ] || fail "others were tried again: $(requests)"
python3 "$SOURCE/tests/cli/exposition.py" fetch "$CARMA_SOCKET" >metrics
! grep '^carma_captures_total.* [1-9]' metrics || fail "others were considered again, and answered by what is kept"
expect_field 5 reservation_source estimated estimate.text "$sentence"
until_field 10 estimate.warnings.0 "no automatic capture: network.py needs the network: line 3:?URLError; name copies of them on this machine, or give --hf-config, --summary or --gpu-memory"

# On an idle node a job starts by the guess, before its capture ends; the estimate then corrects its reservation.
run cancel 20
until_runs 0
run cancel 1-4
rm "$FAKE/go"
"$CARMA" submit --wait -- python3 later.py >waited 2>&1 &
waits=$!
until_field 21 state RUNNING
until_field 21 estimating true
expect_field 21 reservation_source prior
touch "$FAKE/go"
until_field 21 reservation_source estimated
expect_field 21 reserved_bytes "$(field 21 estimate.bytes)"
touch "$T/stop"
wait $waits || fail "the job has failed: $(cat waited)"
printf 'submitted job 21 (python3)\njob 21: %s\n' "$sentence" | diff - waited >&2 || fail "submit --wait does not tell the estimate"
stop_daemon

# Off means off.
before=$(requests)
start_daemon --config /dev/null --set auto_capture=off
run submit --parsable --hold -- python3 train.py --other
sleep 0.5 # of nothing there is nothing to wait for
[ "$(requests)" -eq "$before" ] || fail "it was captured all the same"
expect_field 22 untried 'the setting auto_capture is off'
expect_error 1 "job 'python3': the setting auto_capture is off here: give the file of carma.capture, not 'auto'" submit --hold --capture auto -- python3 train.py --asked
stop_daemon

# Without a sandbox only what is asked for is captured: any command, with its real effects, as a warning says.
touch "$FAKE/refuse"
start_daemon --config /dev/null
expect_id 23 --hold -- python3 train.py --unasked
expect_id 24 --hold --capture auto -- env train --asked
until_field 24 reservation_source estimated
until_requests $((before + 1))
expect_field 24 estimate.warnings.0 'captured without a sandbox, as asked: carma-sandbox: user namespaces are off'
expect_field 23 reservation_source prior untried 'carma-sandbox: user namespaces are off; --capture auto tries it without a sandbox'
python3 - "$(grep -l -e --asked "$FAKE"/request-*)" <<'PYTHON' || fail "the request is not as it should be"
import json, sys
request = json.load(open(sys.argv[1]))
assert request["without_sandbox"] is True and "CUDA_VISIBLE_DEVICES=" in request["environment"], request
PYTHON
run cancel 22-23
stop_daemon
rm "$FAKE/refuse"
start_daemon --config /dev/null
expect_id 25 --hold --capture auto -- env train --sandboxed
until_field 25 reservation_source estimated
until_requests $((before + 2))
expect_field 25 estimate.warnings '[]'
grep -l sandboxed "$FAKE"/request-* | xargs grep -q without_sandbox && fail "it has no sandbox, though there is one"
expect_error 1 '--capture auto and --no-capture contradict each other' submit --hold --capture auto --no-capture -- env train
cp "$FAKE/capture" auto
expect_id 26 --hold --capture ./auto -- env train --file
expect_field 26 estimate.from auto
[ "$(requests)" -eq $((before + 2)) ] || fail "a file's name was taken for a wish"

# A program that pip installed says in its first lines that it is Python's.
program tool <<'SH'
#!/bin/sh
'''exec' /a/long/path/to/python3 "$0" "$@"
' '''
SH
expect_id 27 --hold -- ./tool train.py
until_field 27 reservation_source estimated
expect_id 28 --hold -- env PYTHONPATH=. python3 nothing.py
until_field 28 estimate.warnings.0 'no automatic capture: its command sets PYTHONPATH anew, by which Python finds what records it; write PYTHONPATH=DIR:$PYTHONPATH, or give --hf-config, --summary or --gpu-memory'
stop_daemon
