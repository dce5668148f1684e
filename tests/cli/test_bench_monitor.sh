#!/bin/sh
# Usage: test_bench_monitor.sh CARMA SOURCE BUILD FAKE_CUDA FAKE_DCGM
# carma bench monitor on a virtual node. The tests have their own libraries for CUDA's driver and DCGM, a script for
# nsys and a module for PyTorch's profiler. Its measurements are simulated, or made up by these.
FAKE_CUDA_LIBRARY=$(realpath "$4") || exit 99
FAKE_DCGM_LIBRARY=$(realpath "$5") || exit 99
. "$(dirname "$0")/node.sh"
mkdir torch
echo 'raise SystemExit("the torch of the working directory")' >torch/__init__.py
CARMA_NVML_LIBRARY=$PREFIX/lib/carma/vnode/libnvidia-ml.so.1
TMPDIR=$T/tmp
export CARMA_NVML_LIBRARY TMPDIR
unset CUDA_VISIBLE_DEVICES FAKE_CUDA FAKE_DCGM CARMA_CUDA_LIBRARY CARMA_DCGM_LIBRARY PYTHONPATH
mkdir "$TMPDIR" "$T/bin" "$T/modules" "$T/modules/torch"

# No GPU: one line, status 69; nothing stays in the temporary directory.
expect_error 69 "NVML of" bench monitor
CARMA_NVML_LIBRARY=$T/none expect_error 69 "cannot load the NVML library" bench monitor
CARMA_NVML_LIBRARY=$T/none expect_error 69 "cannot load the NVML library" bench monitor --kernel
CARMA_CUDA_LIBRARY=$T/none
export CARMA_CUDA_LIBRARY
expect_error 69 "no GPU is usable here" bench monitor --load light

start_node "$SOURCE/data/nodes/h100x8-80g.ini" 200
expect_error 69 "no GPU is usable here: NVML shows no GPU 9" bench monitor --gpu 9
expect_error 69 "cannot load $T/none" bench monitor --kernel
CARMA_CUDA_LIBRARY=$FAKE_CUDA_LIBRARY
expect_error 2 "goes alone" bench monitor --load light --light true
expect_error 2 "'middle' is not light or heavy" bench monitor --load middle
expect_error 2 "goes with --kernel" bench monitor --point 1s
expect_error 2 "runs a kernel of its own" bench monitor --kernel --repeat 2
expect_error 2 "out of range: from 100ms" bench monitor --period 1ms
expect_error 2 "takes no arguments" bench monitor x

# A load that fails is reported, and its message stays.
expect_error 1 "the light load beside none: it ended with status 3: see $TMPDIR/carma-bench-" \
    bench monitor --light 'echo why; exit 3' --heavy true
grep -q why "$TMPDIR"/carma-bench-*/light-none-1/output || fail "$said: its output is gone"
rm -r "$TMPDIR"/carma-bench-*

# Interrupted, it leaves nothing that runs, not even what ignores SIGTERM, and nothing behind.
"$CARMA" bench monitor --light "trap '' TERM; sleep 1234.$$; true" --heavy true >"$T/out" 2>"$T/err" &
bench=$!
wait_for 'pgrep -fx "sleep 1234.$$" >/dev/null'
kill -TERM "$bench"
wait "$bench"
[ $? -eq 143 ] || fail "interrupted: another status"
[ "$(cat "$T/err")" = "carma: the light load beside none: interrupted" ] || fail "interrupted: says $(cat "$T/err")"
(PATIENCE_S=20 && wait_for '! pgrep -fx "sleep 1234.$$" >/dev/null') || fail "interrupted: the load runs on"
[ -z "$(ls "$TMPDIR")" ] || fail "interrupted: left $(ls "$TMPDIR")"

# Every source is present: the tests' nsys writes 1000 bytes, the tests' profiler 5000.
program "$T/bin/nsys" <<'NSYS'
#!/bin/sh
[ "$1 $2 $3" = "profile --force-overwrite=true -o" ] || exit 9
report=$4
shift 4
"$@"
status=$?
head -c 1000 /dev/zero >"$report.nsys-rep"
sleep 0.3
exit $status
NSYS
[ ! -x /usr/bin/python3 ] || ln -s /usr/bin/python3 "$T/bin" # a shim before it may be slow to start
cat >"$T/modules/torch/profiler.py" <<'TORCH'
class profile:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def export_chrome_trace(self, path):
        with open(path, "w", encoding="ascii") as trace:
            trace.write("x" * 5000)
TORCH
: >"$T/modules/torch/__init__.py"
cat >"$T/modules/train.py" <<'TRAIN'
import os, subprocess, sys
assert os.environ["CUDA_VISIBLE_DEVICES"].startswith("GPU-")
sys.exit(subprocess.run([sys.argv[1], "--memory", "1G", "--sm-activity", sys.argv[2], "--seconds", sys.argv[3]]).returncode)
TRAIN
PATH=$T/bin:$PATH
PYTHONPATH=$T/modules
CARMA_DCGM_LIBRARY=$FAKE_DCGM_LIBRARY
FAKE_DCGM=vnode
export PATH PYTHONPATH CARMA_DCGM_LIBRARY FAKE_DCGM
expect_ok bench monitor --light "python3 $T/modules/train.py $TRAIN 0.1 10" \
    --heavy "$TRAIN --memory 2G --sm-activity 0.8 --seconds 30" --repeat 2 --period 1s --gpu 1 --json --output "$T/kept"
python3 - "$T/out" <<'PYTHON' || fail "$said: $(cat "$T/out" "$T/err")"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["simulated"] and report["repeats"] == 2 and report["time_scale"] == 200 and report["period_s"] == 1, report
assert [load["load"] for load in report["loads"]] == ["light", "heavy"]
for load, seconds, activity in zip(report["loads"], (10, 30), (0.1, 0.8)):
    sources = {source["source"]: source for source in load["sources"]}
    assert list(sources) == ["none", "utilization", "gpm", "dcgm", "nsys", "pytorch"], sources
    for name, source in sources.items():
        if name == "pytorch" and load["load"] == "heavy":
            assert not source["present"] and "not a Python script" in source["why"], source
            continue
        assert source["present"], source
        assert len(source["samples"]) > 1, source
        assert max(sample[3] for sample in source["samples"]) > 1e6, source
        assert len(source["epochs_s"]) == 2 and min(source["epochs_s"]) >= seconds, source
        assert abs(sum(source["epochs_s"]) / 2 - source["epoch_s"]) < 1e-6, source
        assert source["job_memory_bytes"] > 1e6, source
        assert name == "nsys" or source["job_cpu"] > 0, source # counted in hundredths of a second under a profiler
        assert name != "nsys" or source["after_s"] > 50, source # 0.3 s of the wall clock are 60 s
        if name in ("none", "nsys", "pytorch"):
            assert source["sm_activity"] is None, source
            assert (source["tool_memory_bytes"] > 0) == (name == "nsys"), source
        else:
            assert source["tool_cpu"] > 0 and source["tool_memory_bytes"] > 1e6 and source["logged_bytes"] > 10000, source
    alone = sources["none"]["epochs_s"]
    for source in sources.values():
        if source["present"]:
            ratios = [epoch / none for epoch, none in zip(source["epochs_s"], alone)]
            assert abs(sum(ratios) / 2 - source["ratio"]) < 1e-6, source
    assert sources["none"]["ratio"] == 1 and sources["none"]["logged_bytes"] == 0, sources["none"]
    assert sources["nsys"]["logged_bytes"] == 1000, sources["nsys"]
    for name in ("gpm", "dcgm", "utilization"): # loading counts as well, in which the GPU is idle
        wanted = activity * seconds / sources[name]["epoch_s"]
        assert sources[name]["sm_activity"] > wanted / 3, (name, wanted, sources[name])
        assert name == "utilization" or sources[name]["sm_activity"] < wanted * 3, (name, wanted, sources[name])
    assert sources["gpm"]["sm_occupancy"] > 0 and sources["utilization"]["sm_occupancy"] is None, sources
light = {source["source"]: source for source in report["loads"][0]["sources"]}
assert light["pytorch"]["logged_bytes"] == 5000, light["pytorch"]
PYTHON
python3 -c 'import json, sys; a, b = (json.load(open(path)) for path in sys.argv[1:]); sys.exit(a != b)' \
    "$T/kept/monitor.json" "$T/out" || fail "$said: two reports"
[ -s "$T/kept/heavy-gpm-2/frames" ] || fail "$said: nothing kept of a run"
expect_picture "$T/out" "epoch time, relative to no tool" "CPU of the tool, heavy" "memory of the job, light" "SM occupancy" \
    "nsys" "(simulated)"

# None of the further ones: a row says so. The table fits; nothing stays.
unset PYTHONPATH CARMA_DCGM_LIBRARY
rm "$T/bin/nsys"
COLUMNS=100 run bench monitor --light "$TRAIN --memory 1G --seconds 1" --heavy "$TRAIN --memory 1G --seconds 1" --repeat 1 \
    --dcgm "$T/none.so"
expect_status 0
for source in dcgm nsys pytorch; do
    [ "$(grep -c "^\(light\|heavy\)  $source  *not present" "$T/out")" -eq 2 ] || fail "$said: $source: $(cat "$T/out")"
done
expect_out "^dcgm: .*cannot load DCGM's library $T/none.so$"
expect_out "^nsys: there is no nsys on the PATH$"
expect_out "a virtual node: simulated"
grep "^light\|^heavy\|^LOAD" "$T/out" | grep -v : | awk 'length > 100 { exit 1 }' || fail "$said: wider than 100"
[ -z "$(ls "$TMPDIR")" ] || fail "$said: left $(ls "$TMPDIR")"

# As kernels grow, so do the metrics; the tests' CUDA library takes no notice of threads.
expect_ok bench monitor --kernel --point 10s --json
python3 - "$T/out" <<'PYTHON' || fail "$said: $(cat "$T/out" "$T/err")"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["simulated"] and report["sms"] == 108 and report["point_s"] == 10, report
points = report["points"]
assert [(p["blocks"], p["threads"]) for p in points[:6]] == [(1, 1), (1, 32), (1, 128), (1, 512), (1, 1024), (27, 1)]
assert len(points) == 25 and points[-1]["blocks"] == 216
for point in points:
    wanted = min(point["blocks"] / 108, 1)
    assert point["sm_activity"]["source"] == "gpm", point
    assert 0.4 * wanted < point["sm_activity"]["value"] < 1.05 * wanted + 0.01, point # it idles between two launches
    assert point["graphics_activity"]["value"] >= point["sm_activity"]["value"] - 0.01 > -0.01, point
    assert 0 <= point["sm_occupancy"]["value"] <= point["sm_activity"]["value"], point
    assert point["utilization"] is not None, point
PYTHON
expect_picture "$T/out" "27 blocks" "GRACT (any engine)" "(simulated)"
shows "^ *108  *1024  *[0-9.]*%  *[0-9.]*%  *[0-9.]*%  *[0-9.]*%  gpm$" bench monitor --kernel --point 10s

# Where nobody measures SM activity, utilisation is not shown in its place.
CARMA_VNODE=$T/coarse
start_node "$SOURCE/data/nodes/a100x4-40g-nogpm.ini" 200
expect_ok bench monitor --kernel --point 10s --json --dcgm "$T/none.so"
check 'all(p["sm_activity"] is None and p["sm_occupancy"] is None for p in said["points"])' \
    'said["points"][-1]["utilization"] > 0.5 and said["points"][0]["utilization"] < 0.5'
FAKE_CUDA=unlaunchable
export FAKE_CUDA
expect_error 1 "cuLaunchKernel: CUDA_ERROR_UNKNOWN" bench monitor --kernel
expect_error 1 "cuLaunchKernel: CUDA_ERROR_UNKNOWN" bench monitor --load heavy
unset FAKE_CUDA
expect_ok bench monitor --load light
