#!/bin/sh
# carma bench collocate on a virtual node: its figures are what the node's model of sharing says, its MPS daemon and its
# jobs are gone whatever happens, and what fails is told.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/node.sh
. "$(dirname "$0")/node.sh"
CARMA_NVML_LIBRARY=$PREFIX/lib/carma/vnode/libnvidia-ml.so.1
TMPDIR=$T/tmp
export CARMA_NVML_LIBRARY TMPDIR
mkdir "$TMPDIR"
unset CUDA_VISIBLE_DEVICES CUDA_MPS_PIPE_DIRECTORY

# The virtual control program; it is written down which GPUs each daemon gets.
cat >"$T/mps-control" <<END
#!/bin/sh
[ "\${1-}" != -d ] || echo "\$CUDA_VISIBLE_DEVICES" >>"$T/mps-started"
exec "$BUILD/src/vnode/nvidia-cuda-mps-control" "\$@"
END
chmod +x "$T/mps-control"

# Nothing of a bench is left: no job, no daemon, no directory.
expect_nothing_left() {
    for environment in /proc/[0-9]*/environ; do
        grep -qF "CARMA_VNODE=$CARMA_VNODE" "$environment" 2>/dev/null || continue
        case $(cat "${environment%environ}comm" 2>/dev/null) in
        carma-* | nvidia-*) fail "$said: still runs: $(tr '\0' ' ' <"${environment%environ}cmdline")" ;;
        esac
    done
    [ -z "$(ls "$TMPDIR")" ] || fail "$said: left behind: $(ls "$TMPDIR")"
}

# What is wrong with the command line, and a machine without GPUs.
expect_error 2 "which one" bench
expect_error 2 "what is to be run?" bench collocate
expect_error 2 "not both" bench collocate --commands "$T/none" -- true
expect_error 2 "no list of numbers from 1 to 48" bench collocate --degrees 0,2 -- true
expect_error 2 "no list of numbers from 1 to 48" bench collocate --degrees 4-2 -- true
expect_error 2 "there is no mode 'cuda'" bench collocate --mode mps,cuda -- true
expect_error 2 "--mix names commands of a file" bench collocate --mix a+b -- true
expect_error 2 "not both" bench collocate --epochs 2 --epoch-pattern x -- true
expect_error 1 "no regular expression" bench collocate --epoch-pattern '(' -- true
expect_error 1 "$T/none" bench collocate --commands "$T/none"
printf '# two\n\nsmall: true\nsmall: true\n' >"$T/bad"
expect_error 1 "bad:4: there are two commands 'small'" bench collocate --commands "$T/bad"
printf 'small true\n' >"$T/bad"
expect_error 1 "bad:1: 'small true' is not NAME: COMMAND" bench collocate --commands "$T/bad"
printf 'small: true\n' >"$T/bad"
expect_error 1 "--mix small+large: there is no command 'large'" bench collocate --commands "$T/bad" --mix small+large
expect_error 1 "no GPU can be read: " bench collocate -- true

start_node a100x4-40g 200
expect_error 1 "--gpu 9: there is no such GPU" bench collocate --gpu 9 -- true
expect_error 1 "--mps-control $T/none: No such file" bench collocate --mps-control "$T/none" -- true
expect_error 1 "cannot start $T/none: no such file" bench collocate --degrees 1 -- "$T/none"
[ -z "$(ls "$TMPDIR")" ] || fail "left behind: $(ls "$TMPDIR")"

# Its figures against src/contention's formulas (docs/contention.md): times and throughput within 6%, the rest within 5
# points or percent. A job loads for 12 s before it trains.
cat >"$T/commands" <<END
small: exec $TRAIN --memory 2G --sm-activity 0.3 --seconds 600
large: exec $TRAIN --memory 8G --sm-activity 0.6 --seconds 600
END
run bench collocate --commands "$T/commands" --mode streams,mps --mix large+large --mix small+large --gpu 2 \
    --mps-control "$T/mps-control" --output "$T/results" --plot "$T/plot.svg" --json
expect_status 0
expect_nothing_left
[ "$(wc -l <"$T/mps-started")" -eq 2 ] && [ "$(sort -u "$T/mps-started" | wc -l)" -eq 1 ] ||
    fail "$said: not one MPS daemon for each run, on one GPU: $(cat "$T/mps-started")"
python3 - "$T/results/collocate.json" "$T/results/collocate.svg" "$T/plot.svg" <<'PYTHON' || fail "$said: figures"
import json, math, sys, xml.dom.minidom

report = json.load(open(sys.argv[1]))
activity, memory, work, load = {"small": 0.3, "large": 0.6}, {"small": 2, "large": 8}, 600, 12

def rate(mode, names):
    if len(names) == 1:
        return 1
    a = [activity[n] ** (1 if mode == "mps" else 0.4) for n in names]
    busy = (1 if mode == "mps" else 0.85) * (1 - math.prod(1 - x for x in a))
    return min(1, busy / sum(a))

def near(what, value, wanted, tolerance):
    assert value is not None and abs(value - wanted) <= tolerance, f"{what}: {value}, not {wanted} +- {tolerance}"

expected = [("streams", True, ["small"]), ("streams", True, ["large"])]
for names in (["large", "large"], ["small", "large"]):
    expected += [("streams", False, names), ("mps", False, names)]
assert len(report["runs"]) == len(expected), report
assert report["time_scale"] == 200 and report["gpu"]["name"] == "NVIDIA A100-SXM4-40GB"
for run, (mode, alone, names) in zip(report["runs"], expected):
    what = f"{mode} {names}"
    assert (run["mode"], run["alone"], run["result"]) == (mode, alone, "ok"), run
    assert [job["command"] for job in run["each"]] == names, run
    r = rate(mode, names)
    total = load + work / r
    near(what + " time per epoch", run["each"][0]["epoch_s"], total, 0.06 * total)
    near(what + " total", run["total_s"], total, 0.06 * total)
    throughput = len(names) * (load + work) / total
    near(what + " throughput", run["throughput"], throughput, 0.06 * throughput)
    near(what + " slowdown", run["each"][-1]["slowdown"], len(names) / throughput, 0.06 * len(names) / throughput)
    near(what + " serial", run["serial_s"], len(names) * (load + work), 0.06 * len(names) * (load + work))
    s = min(1, sum(activity[n] * r for n in names))
    near(what + " SM activity", run["metrics"]["sm_activity"]["mean"], s, 0.05)
    power = 53.8 + (275.5 - 53.8) * (1 - math.exp(-1.493 * s)) / (1 - math.exp(-1.493))
    near(what + " power", run["power_w"], power, 0.05 * power)
    near(what + " energy", run["energy_per_job_j"], power * total / len(names), 0.1 * power * total / len(names))
    near(what + " memory", run["memory_peak_bytes"] / 2**30, sum(memory[n] for n in names), 0.1)
    assert run.get("mps_seen", mode == "mps") is (mode == "mps"), run
for path in sys.argv[2:]:
    picture = xml.dom.minidom.parse(path)
    bars = [r for r in picture.getElementsByTagName("rect") if r.getElementsByTagName("title")]
    assert len(bars) >= 6 * len(expected), f"{path}: {len(bars)} bars"
PYTHON
[ "$(grep -c 'carma-train: done' "$T/results/mps-large+large/job-2.log")" -eq 1 ] || fail "$said: a job's output is not kept"

# Too much memory for three: a finding, and the others have their figures. The table fits the terminal.
COLUMNS=80
export COLUMNS
run bench collocate --degrees 1-3 --mode streams,mig -- "$TRAIN" --memory 15G --seconds 60
expect_status 1
grep -q '^carma: 1 of 6 runs failed: their output is in' "$T/err" || fail "$said: $(cat "$T/err")"
grep -q '^carma-train x 3, streams: failed: carma-train (job [123] of 3) ended with status 1: .*CUDA out of memory' \
    "$T/out" || fail "$said: $(cat "$T/out")"
grep -q '^carma-train x 2  streams  .* 30.0 GiB ' "$T/out" || fail "$said: no figures: $(cat "$T/out")"
[ "$(grep -c '^mig: skipped: there are no MIG instances$' "$T/out")" -eq 1 ] || fail "$said: $(cat "$T/out")"
[ "$(wc -L <"$T/out")" -le 250 ] && [ "$(head -n 1 "$T/out" | wc -L)" -le 80 ] || fail "$said: too wide"
unset COLUMNS
rm -rf "${TMPDIR:?}"/*

# Epochs by lines of output: the first is a warm-up. What matches nothing is no measurement.
cat >"$T/epochs.sh" <<'END'
sleep 0.5
for epoch in 1 2 3; do
    printf 'step\repoch %s\n' "$epoch"
    sleep 0.1
done
sleep 0.5
END
run bench collocate --degrees 1 --epoch-pattern '^epoch [0-9]+' --json -- sh "$T/epochs.sh"
expect_status 0
python3 - "$T/out" <<'PYTHON' || fail "$said: epochs"
import json, sys
job = json.load(open(sys.argv[1]))["runs"][0]["each"][0]
assert job["epochs"] == 3, job
assert 20 <= job["epoch_s"] <= job["seconds"] / 4, job  # node time: 0.1 s of the wall clock are 20 s
PYTHON
run bench collocate --degrees 1 --epoch-pattern '^nothing' -- sh "$T/epochs.sh"
expect_status 1
grep -q 'printed no line that matches --epoch-pattern' "$T/out" || fail "$said: $(cat "$T/out")"
rm -rf "${TMPDIR:?}"/*

# Without an MPS daemon there are no runs under MPS; with a broken one neither.
PATH=/usr/bin:/bin run bench collocate --degrees 1,2 --mode mps -- sleep 0.1
expect_status 0
grep -q '^mps: skipped: no nvidia-cuda-mps-control on the PATH' "$T/out" || fail "$said: $(cat "$T/out")"
run bench collocate --degrees 2 --mode mps --mps-control /bin/false -- sleep 0.1
expect_status 0
grep -q '^mps: skipped: .*/false' "$T/out" || fail "$said: $(cat "$T/out")"
expect_nothing_left

# A job that does not use the GPU: MPS was not used, and it says so.
run bench collocate --degrees 2 --mode mps --mps-control "$T/mps-control" -- sleep 0.1
expect_status 0
grep -q '^sleep x 2, mps: no MPS client was seen' "$T/out" || fail "$said: $(cat "$T/out")"

# A run that hangs is stopped, with what it has started.
run bench collocate --degrees 1 --time-limit 60s -- sh -c 'trap "" TERM; sleep 1000 & echo $! >"$1"; wait; wait' - "$T/child"
expect_status 1
grep -q 'sh x 1, alone: failed: not done within the time limit of 1:00' "$T/out" || fail "$said: $(cat "$T/out")"
grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$(cat "$T/child")/status" 2>/dev/null &&
    fail "$said: a process of the job is left"
rm -rf "${TMPDIR:?}"/*

# MIG instances, the largest first; on a GPU in MIG mode the baseline runs on the largest, and nothing else is possible.
CARMA_VNODE=$T/mig-node
start_node h100x2-mig 200
run bench collocate --degrees 2,5 --json -- "$TRAIN" --memory 2G --sm-activity 0.6 --seconds 300
expect_status 0
python3 - "$T/out" <<'PYTHON' || fail "$said: MIG"
import json, sys
runs = {("alone" if run["alone"] else run["mode"], run["degree"]): run for run in json.load(open(sys.argv[1]))["runs"]}
assert len(runs) == 7, runs.keys()
assert runs["streams", 2]["reason"] == runs["mps", 5]["reason"] == "the GPU is in MIG mode", runs
assert runs["mig", 5]["result"] == "skipped" and "only 4 MIG instances" in runs["mig", 5]["reason"], runs["mig", 5]
alone, two = runs["alone", 1]["each"], runs["mig", 2]["each"]
assert alone[0]["instance"] == two[0]["instance"] != two[1]["instance"], runs
for job, slices in ((alone[0], 3), (two[0], 3), (two[1], 2)):
    wanted = 12 + 300 / min(1, slices / 7 / 0.6)
    assert abs(job["seconds"] - wanted) < 0.08 * wanted, (job, wanted)
PYTHON
run bench collocate --degrees 2 --mode mig --gpu 1 --json -- sleep 0.1
expect_status 0
grep -q '"instance": "MIG-' "$T/out" || fail "$said: no instance of the other GPU: $(cat "$T/out")"
CARMA_VNODE=$T/node
rm -rf "${TMPDIR:?}"/*

# Stopped in a run under MPS (by SIGTERM: what a shell starts in the background ignores SIGINT).
"$CARMA" bench collocate --degrees 2 --mode mps --mps-control "$T/mps-control" -- "$TRAIN" --memory 1G --seconds 2000 \
    >"$T/out" 2>"$T/err" &
bench=$!
tries=0
until [ "$("$PREFIX/bin/carma-vnode" show | grep -c '(MPS)')" -eq 2 ]; do
    tries=$((tries + 1))
    [ "$tries" -gt 600 ] && fail "two jobs under MPS never came: $(cat "$T/err")" && break
    sleep 0.05
done
kill -TERM "$bench"
wait "$bench"
status=$?
said="carma bench collocate, interrupted"
expect_status 143
grep -q '^carma: interrupted$' "$T/err" || fail "$said: $(cat "$T/err")"
expect_nothing_left
finish_node
