#!/bin/sh
# Usage: test_nvml_clients.sh PROGRAMS SOURCE VENV
# Unmodified NVML clients on a virtual node with jobs on it: nvidia-ml-py, gpustat and nvitop from the package index
# (kept in VENV), and an installed nvtop. PROGRAMS has carma-vnode, carma-train and libnvidia-ml.so.1.
PROGRAMS=$1
VENV=$3
set -- "$1/carma-vnode" "$2"
. "$2/tests/cli/lib.sh"
FAIL_FAST=yes
jobs=
# shellcheck disable=SC2034 # evaluated by lib.sh
at_end='[ -z "$jobs" ] || kill $jobs 2>/dev/null; wait'

if ! "$VENV/bin/python" -c 'import gpustat, nvitop, pynvml' 2>/dev/null; then
    python3 -m venv "$VENV" >"$T/pip" 2>&1 &&
        "$VENV/bin/python" -m pip install --disable-pip-version-check --quiet --timeout 10 --retries 1 \
            nvidia-ml-py gpustat nvitop >>"$T/pip" 2>&1 ||
        skip "the NVML clients cannot be installed from the package index: $(tail -n 1 "$T/pip")"
fi

unset CUDA_MPS_PIPE_DIRECTORY
CARMA_VNODE=$T/state
CARMA_TIME_SCALE=100
export CARMA_VNODE CARMA_TIME_SCALE
"$PROGRAMS/carma-vnode" create --profile "$SOURCE/data/nodes/a100x4-40g.ini" "$CARMA_VNODE" || fail "no node"

CUDA_VISIBLE_DEVICES=0 "$PROGRAMS/carma-train" --memory 5G --sm-activity 0.6 --seconds 100000 >"$T/job1" 2>&1 &
first=$!
CUDA_VISIBLE_DEVICES=0,2 "$PROGRAMS/carma-train" --gpus 2 --memory 8G --sm-activity 0.3 --seconds 100000 >"$T/job2" 2>&1 &
second=$!
mkdir "$T/mps"
mkfifo "$T/mps/control"
CUDA_MPS_PIPE_DIRECTORY=$T/mps CUDA_VISIBLE_DEVICES=1 "$PROGRAMS/carma-train" --memory 3G --sm-activity 0.5 \
    --seconds 100000 >"$T/job3" 2>&1 &
third=$!
jobs="$first $second $third"

unset CARMA_TIME_SCALE # clients know nothing of it
LD_LIBRARY_PATH=$PROGRAMS
export LD_LIBRARY_PATH

FIRST=$first SECOND=$second THIRD=$third "$VENV/bin/python" - <<'END' || fail "nvidia-ml-py"
import ctypes, os, time
import pynvml as n

first, second, third = (int(os.environ[name]) for name in ("FIRST", "SECOND", "THIRD"))
GIB = 1 << 30
expected = [{first: 5 * GIB, second: 8 * GIB}, {}, {second: 8 * GIB}, {}]
n.nvmlInit()
gpus = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
assert len({n.nvmlDeviceGetUUID(g) for g in gpus}) == 4


def processes(gpu, ask):
    return {p.pid: p.usedGpuMemory for p in ask(gpu)}


deadline = time.monotonic() + 10
while [processes(g, n.nvmlDeviceGetComputeRunningProcesses) for g in gpus] != expected or processes(
        gpus[1], n.nvmlDeviceGetMPSComputeRunningProcesses) != {third: 3 * GIB}:
    assert time.monotonic() < deadline, [processes(g, n.nvmlDeviceGetComputeRunningProcesses) for g in gpus]
    time.sleep(0.02)
time.sleep(0.05)  # past the last step of the climb
for gpu, held in zip(gpus, (13, 3, 8, 0)):
    assert n.nvmlDeviceGetName(gpu) == "NVIDIA A100-SXM4-40GB"
    assert n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(gpu))) == n.nvmlDeviceGetIndex(gpu)
    v1, v2 = n.nvmlDeviceGetMemoryInfo(gpu), n.nvmlDeviceGetMemoryInfo(gpu, n.nvmlMemory_v2)
    assert v1.total == v2.total == 40 * GIB and v2.used == held * GIB, (v1, v2)
    assert v1.used == v2.used + v2.reserved and v2.total == v2.reserved + v2.used + v2.free
    watts = n.nvmlDeviceGetPowerUsage(gpu) / 1000
    assert (53 < watts < 54) if held == 0 else (80 < watts < 275), watts
    assert processes(gpu, n.nvmlDeviceGetGraphicsRunningProcesses) == {}
    assert n.nvmlDeviceGetMigMode(gpu) == [0, 0]
    assert n.nvmlDeviceGetCudaComputeCapability(gpu) == (8, 0)
    before = n.nvmlDeviceGetTotalEnergyConsumption(gpu)
    time.sleep(0.02)
    assert n.nvmlDeviceGetTotalEnergyConsumption(gpu) > before
assert n.nvmlDeviceGetUtilizationRates(gpus[3]).gpu == 0
assert n.nvmlDeviceGetUtilizationRates(gpus[0]).gpu > 50
assert n.nvmlSystemGetProcessName(first).endswith("carma-train")
assert n.nvmlDeviceGetFieldValues(gpus[0], [n.NVML_FI_DEV_POWER_INSTANT])[0].nvmlReturn == n.NVML_SUCCESS

samples = [n.nvmlGpmSampleAlloc(), n.nvmlGpmSampleAlloc()]
n.nvmlGpmSampleGet(gpus[1], samples[0])
time.sleep(0.05)
n.nvmlGpmSampleGet(gpus[1], samples[1])
get = n.c_nvmlGpmMetricsGet_t()
get.version, get.numMetrics, get.sample1, get.sample2 = n.NVML_GPM_METRICS_GET_VERSION, 1, *samples
get.metrics[0].metricId = n.NVML_GPM_METRIC_SM_UTIL
n.nvmlGpmMetricsGet(get)
assert abs(get.metrics[0].value - 50) < 1e-6, get.metrics[0].value

# our own declarations of the layouts against theirs
for ours, theirs in ((68, n.nvmlPciInfo_t), (40, n.c_nvmlMemory_v2_t), (24, n.c_nvmlProcessInfo_v3_t),
                     (32, n.c_nvmlProcessDetail_v1_t), (32, n.c_nvmlProcessUtilizationSample_t),
                     (40, n.c_nvmlFieldValue_t), (40, n.c_nvmlGpmMetric_t), (32, n.c_nvmlEventData_t),
                     (52, n.c_nvmlUUID_t), (12, n.c_nvmlTemperature_v1_t), (40, n.c_nvmlDeviceAttributes)):
    assert ctypes.sizeof(theirs) == ours, (theirs, ctypes.sizeof(theirs))
n.nvmlShutdown()
END

"$VENV/bin/gpustat" --json >"$T/gpustat.json" || fail "gpustat"
FIRST=$first SECOND=$second "$VENV/bin/python" - "$T/gpustat.json" <<'END' || fail "gpustat: $(cat "$T/gpustat.json")"
import json, os, sys

gpus = json.load(open(sys.argv[1]))["gpus"]
assert [g["name"] for g in gpus] == ["NVIDIA A100-SXM4-40GB"] * 4
assert [g["memory.total"] for g in gpus] == [40960] * 4
assert [g["memory.used"] for g in gpus] == [424 + 13 * 1024, 424 + 3 * 1024, 424 + 8 * 1024, 424] or \
    [g["memory.used"] for g in gpus] == [13 * 1024, 3 * 1024, 8 * 1024, 0]
assert gpus[0]["power.draw"] > 150 and gpus[3]["power.draw"] in (53, 54) and gpus[0]["enforced.power.limit"] == 400
assert {p["pid"]: (p["gpu_memory_usage"], p["command"]) for p in gpus[0]["processes"]} == {
    int(os.environ["FIRST"]): (5120, "carma-train"), int(os.environ["SECOND"]): (8192, "carma-train")}
END

"$VENV/bin/nvitop" --once >"$T/nvitop" 2>"$T/nvitop.err" || fail "nvitop: $(cat "$T/nvitop.err")"
[ ! -s "$T/nvitop.err" ] || fail "nvitop complains: $(cat "$T/nvitop.err")"
for text in "A100-SXM4-40GB" "00000000:01:00.0" "13312MiB / 40.00GiB" "54W / 400W" "$first C" "$second C" "5120MiB"; do
    grep -qF -- "$text" "$T/nvitop" || fail "nvitop does not show '$text': $(cat "$T/nvitop")"
done

# A node with one GPU in MIG mode: a job on an instance, one on the other GPU, one under MPS inside an instance. Also
# GPM.
# shellcheck disable=SC2086 # several
kill $jobs
# shellcheck disable=SC2086 # several
wait $jobs 2>/dev/null
CARMA_VNODE=$T/mig
CARMA_TIME_SCALE=100 "$PROGRAMS/carma-vnode" create --profile "$SOURCE/data/nodes/h100x2-mig.ini" "$CARMA_VNODE" ||
    fail "no node"
uuids=$("$PROGRAMS/carma-vnode" show | grep -o 'MIG-[0-9a-f-]*')
# shellcheck disable=SC2086 # the UUIDs are words
set -- $uuids
CUDA_VISIBLE_DEVICES=$1 "$PROGRAMS/carma-train" --memory 5G --sm-activity 0.3 --seconds 100000 >"$T/job1" 2>&1 &
first=$!
CUDA_MPS_PIPE_DIRECTORY=$T/mps CUDA_VISIBLE_DEVICES=$2 "$PROGRAMS/carma-train" --memory 3G --sm-activity 0.2 \
    --seconds 100000 >"$T/job2" 2>&1 &
second=$!
CUDA_VISIBLE_DEVICES=1 "$PROGRAMS/carma-train" --memory 8G --sm-activity 0.5 --seconds 100000 >"$T/job3" 2>&1 &
third=$!
jobs="$first $second $third"

FIRST=$first SECOND=$second THIRD=$third "$VENV/bin/python" - <<'END' || fail "nvidia-ml-py on MIG"
import os, time
import pynvml as n

first, second, third = (int(os.environ[name]) for name in ("FIRST", "SECOND", "THIRD"))
GIB = 1 << 30
n.nvmlInit()
gpus = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
assert [n.nvmlDeviceGetMigMode(g) for g in gpus] == [[1, 1], [0, 0]]
migs = []
for i in range(n.nvmlDeviceGetMaxMigDeviceCount(gpus[0])):
    try:
        migs.append(n.nvmlDeviceGetMigDeviceHandleByIndex(gpus[0], i))
    except n.NVMLError_NotFound:
        pass
assert [n.nvmlDeviceGetAttributes(m).gpuInstanceSliceCount for m in migs] == [3, 2, 1, 1]
assert [n.nvmlDeviceGetGpuInstanceId(m) for m in migs] == [1, 2, 3, 4]
assert [n.nvmlDeviceGetComputeInstanceId(m) for m in migs] == [0] * 4
assert all(n.nvmlDeviceIsMigDeviceHandle(m) for m in migs) and not n.nvmlDeviceIsMigDeviceHandle(gpus[0])
assert n.nvmlDeviceGetUUID(n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(migs[2])) == n.nvmlDeviceGetUUID(gpus[0])
assert n.nvmlDeviceGetUUID(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(migs[1]))).startswith("MIG-")


def processes(device, ask):
    return {p.pid: (p.usedGpuMemory, p.gpuInstanceId) for p in ask(device)}


compute, mps = n.nvmlDeviceGetComputeRunningProcesses, n.nvmlDeviceGetMPSComputeRunningProcesses
deadline = time.monotonic() + 10
while processes(migs[0], compute) != {first: (5 * GIB, 1)} or processes(migs[1], mps) != {second: (3 * GIB, 2)} or \
        processes(gpus[1], compute) != {third: (8 * GIB, 0xFFFFFFFF)}:
    assert time.monotonic() < deadline, [processes(m, compute) for m in migs]
    time.sleep(0.02)
assert processes(gpus[0], compute) == {first: (5 * GIB, 1)} and processes(gpus[0], mps) == {second: (3 * GIB, 2)}
assert [n.nvmlDeviceGetMemoryInfo(m).used // GIB for m in migs] == [5, 3, 0, 0]


def gpm(sample, device, *instance):
    samples = [n.nvmlGpmSampleAlloc(), n.nvmlGpmSampleAlloc()]
    ids = [n.NVML_GPM_METRIC_SM_UTIL, n.NVML_GPM_METRIC_SM_OCCUPANCY, n.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
           n.NVML_GPM_METRIC_DRAM_BW_UTIL, n.NVML_GPM_METRIC_PCIE_TX_PER_SEC, n.NVML_GPM_METRIC_PCIE_RX_PER_SEC]
    sample(device, *instance, samples[0])
    time.sleep(0.05)
    sample(device, *instance, samples[1])
    get = n.c_nvmlGpmMetricsGet_t()
    get.version, get.numMetrics = n.NVML_GPM_METRICS_GET_VERSION, len(ids)
    get.sample1, get.sample2 = samples
    for i, metric in enumerate(ids):
        get.metrics[i].metricId = metric
    n.nvmlGpmMetricsGet(get)
    assert [get.metrics[i].nvmlReturn for i in range(len(ids))] == [n.NVML_SUCCESS] * len(ids)
    for s in samples:
        n.nvmlGpmSampleFree(s)
    return [round(get.metrics[i].value, 6) for i in range(len(ids))]


assert gpm(n.nvmlGpmSampleGet, gpus[1]) == [50, 25, 20, 30, 30, 300]
# Its instance slows the job, whose solo activity is 30%, to 0.837825 (docs/contention.md).
assert abs(gpm(n.nvmlGpmMigSampleGet, gpus[0], 1)[0] - 30 * 7 / 3 * 0.837825) < 0.001
assert gpm(n.nvmlGpmMigSampleGet, gpus[0], 3)[0] == 0
n.nvmlShutdown()
END

"$VENV/bin/gpustat" --json >"$T/gpustat.json" || fail "gpustat on MIG"
grep -q '"pid": '"$third" "$T/gpustat.json" || fail "gpustat on MIG: $(cat "$T/gpustat.json")"
"$VENV/bin/nvitop" --once >"$T/nvitop" 2>"$T/nvitop.err" || fail "nvitop on MIG: $(cat "$T/nvitop.err")"
[ ! -s "$T/nvitop.err" ] || fail "nvitop complains on MIG: $(cat "$T/nvitop.err")"
for text in "3g.40gb" "1g.10gb" "$first C" "$third C" "5120MiB"; do
    grep -qF -- "$text" "$T/nvitop" || fail "nvitop does not show '$text': $(cat "$T/nvitop")"
done

if command -v nvtop >/dev/null && nvtop --help 2>&1 | grep -q -- --snapshot; then
    nvtop --snapshot >"$T/nvtop" 2>&1 || fail "nvtop: $(cat "$T/nvtop")"
    [ "$(grep -c 'A100-SXM4-40GB' "$T/nvtop")" -eq 4 ] || fail "nvtop: $(cat "$T/nvtop")"
else
    echo "nvtop is not installed, or too old for --snapshot: not tried"
fi
