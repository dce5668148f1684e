"""Any NVML call may answer any error: each call x each code x {from the start, later, for a minute} on a virtual node.

Usage: nvml_errors.py whole|sample PREFIX DIRECTORY [CALL...]

In each cell: as many lines as the driver counts GPUs (or the reason why none can be counted), a cause beside each unknown
figure, no job on a GPU of which too little is known, the daemon alive, and all back, with the same numbers, once the
call answers again. Codes are spread over pairs of GPUs, one in MIG mode and one whole, so that a step tries four of them.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from unix_http import Connection

PAIRS = 4  # GPU i is in MIG mode, with one instance, GPU i + PAIRS is whole
CODES = [*range(1, 30), 999]
FACTS = ["nvmlDeviceGetTemperature", "nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetTotalEccErrors",
         "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetCurrentClocksEventReasons"]  # by which nothing is decided
OF_GPU = ["nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetMinorNumber",
          "nvmlDeviceGetComputeMode", "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetMemoryInfo",
          "nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses",
          "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption",
          "nvmlGpmQueryDeviceSupport", "nvmlGpmSampleGet", "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet",
          "nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex",
          "nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId", "nvmlDeviceGetAttributes",
          "nvmlDeviceRegisterEvents", *FACTS]
OF_NODE = ["nvmlInit", "nvmlDeviceGetCount", "nvmlGpmSampleAlloc", "nvmlEventSetCreate", "nvmlEventSetWait"]
OF_DOCTOR = ["nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion", "nvmlDeviceGetPersistenceMode",
             "nvmlDeviceGetTotalEccErrors"]  # which it asks beside some of the others
NOT_ASKED = ["nvmlDeviceGetCurrentClocksThrottleReasons",  # where a driver has no event reasons
             "nvmlShutdown", "nvmlGpmSampleFree", "nvmlEventSetFree",  # nothing depends on their results
             "nvmlErrorString", "nvmlVirtualHostMemory"]  # they have no error: a text; the virtual node's own
SAMPLE = [("nvmlDeviceGetUUID", [2, 15, 10, 999]), ("nvmlDeviceGetMemoryInfo", [3, 1, 27, 999]),
          ("nvmlDeviceGetMigMode", [10, 4, 3, 16]), ("nvmlDeviceGetMigDeviceHandleByIndex", [4, 2, 15, 999]),
          ("nvmlDeviceGetPowerUsage", [3, 4, 12, 999]), ("nvmlDeviceGetTemperature", [3, 15, 10, 999]),
          ("nvmlDeviceGetCount", [9])]
WAYS = ["start", "later", "minute"]
PATIENCE_S = float(os.environ.get("PATIENCE_S", "60"))

PREFIX, PLACE = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
SOCKET, LOG = PLACE / "nvml-socket", PLACE / "nvml.log"
failures = []


def ask(path):
    connection = Connection(SOCKET, PATIENCE_S)
    connection.request("GET", path)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def carma(*words):
    return subprocess.run([PREFIX / "bin/carma", *words], capture_output=True, text=True, check=False,
                          env={**os.environ, "CARMA_SOCKET": str(SOCKET)})


def vnode(*words):
    return subprocess.run([PREFIX / "bin/carma-vnode", *map(str, words)], check=True, capture_output=True, text=True).stdout


def inject(call, codes, duration=(), first=False):
    for i, code in enumerate(codes):
        gpus = [("--gpu", i), ("--gpu", i + PAIRS)] if call in OF_GPU else [()]
        if call == "nvmlDeviceGetMigMode" and code in (3, 13) and first:
            gpus = gpus[1:]  # so answers a GPU that has no such mode: not known to be wrong of the other
        for gpu in gpus:
            vnode("inject", "call", "--call", call, "--code", code, *gpu, *duration)


class Daemon:
    def __init__(self):
        shutil.rmtree(PLACE / "nvml-state", ignore_errors=True)
        SOCKET.unlink(missing_ok=True)
        self.jobs = 0  # ever submitted
        self.process = subprocess.Popen(
            [PREFIX / "bin/carmad", "--state", PLACE / "nvml-state", "--socket", SOCKET, "--set", "share=time-slice",
             "--set", "sample_period=5s", "--set", "grace=500ms", "--set", "decide_period=1s",
             "--set", f"nvml_library={PREFIX}/lib/carma/vnode/libnvidia-ml.so.1"], stderr=LOG.open("w"))
        until(lambda: SOCKET.exists() and self.answers(), "carmad answers")

    def answers(self):
        try:
            return bool(ask("/v1/gpus"))
        except OSError:
            assert self.process.poll() is None, LOG.read_text()
            return False

    def end(self):
        self.cancel_all()
        self.process.terminate()
        self.process.wait()


    def submit(self, *words):
        assert carma("submit", *words).returncode == 0
        self.jobs += 1

    def cancel_all(self):
        if self.jobs:
            carma("cancel", f"1-{self.jobs}")


def until(true, what):
    ends = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > ends:
            raise TimeoutError(f"never: {what}")
        time.sleep(0.02)


def is_target(line):
    return line["index"] is not None and line["kind"] != "partitioned"


def wrong_with(answer):
    """What no answer may have; of a driver that cannot be asked, the reason stands for lines of unknown GPUs."""
    lines = answer["gpus"]
    count = sum(line["kind"] != "instance" for line in lines)
    if count != 2 * PAIRS and not (count == 0 and answer["problem"]):
        return f"{count} lines"
    for line in lines:
        figures = ["total_bytes", "used_bytes"] + ([] if line["kind"] == "instance" else ["power_mw", "energy_mj"])
        unknown = [figure for figure in figures if line.get(figure) is None]
        if unknown and not (line["why"] or line["unknown"]):
            return f"no cause of {unknown}: {line['uuid']}"
        health = line.get("health") or {}
        if None in [told for figure, told in health.items() if figure != "unknown"] and not health["unknown"]:
            return f"no cause of what is unknown: {line['uuid']} {health}"
        if line["lost"] and not line["why"]:
            return f"no reason why it takes no job: {line['uuid']}"
        if line["lost"] and line["free_bytes"] is not None:
            return f"it is lost and free: {line['uuid']}"
        if is_target(line) and not line["lost"] and "total_bytes" in unknown + ["total_bytes"][:line["used_bytes"] is None]:
            return f"it takes jobs, and its memory is unknown: {line['uuid']}"
    return None


def is_whole(answer):
    return (len(answer["gpus"]) == 3 * PAIRS and not answer["problem"] and
            all(not line["lost"] and not line["unknown"] and line["used_bytes"] is not None and
                not (line["health"] or {}).get("unknown") for line in answer["gpus"]))


def numbers(answer):
    return {line["uuid"]: line["index"] for line in answer["gpus"] if is_target(line)}


def reads():
    """Six more readings, so that what is forgiven at first is not any longer; those that cannot be read do not count."""
    time.sleep(6 * 5 / float(os.environ["CARMA_TIME_SCALE"]) + 0.05)


def place_jobs(daemon, wrong):
    """More jobs than GPUs, each for a GPU of its own: those that take none are idle, the others stay without."""
    for _ in range(2 * PAIRS + 1):
        daemon.submit("--exclusive", "--gpu-memory", "1G", "--", "sleep", "1000")
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        lines = ask("/v1/gpus")["gpus"]
        if all(line["jobs"] for line in lines if is_target(line) and not line["lost"]):
            break
        time.sleep(0.02)
    else:
        wrong.append("a GPU that is open takes no job")
    reads()
    wrong += [f"a job is on it: {line['uuid']}: {line['why']}" for line in ask("/v1/gpus")["gpus"]
              if line["jobs"] and line["lost"]]
    if "0 GPUs needed" in carma("explain", str(daemon.jobs)).stdout:
        wrong.append("explain says that the job needs 0 GPUs")
    daemon.cancel_all()
    until(lambda: not any(line["jobs"] for line in ask("/v1/gpus")["gpus"]), "the jobs end")


def look(call, codes, wrong):
    """What the lines say while the call fails: a letter for each code."""
    answer = ask("/v1/gpus")
    wrong.append(wrong_with(answer))
    if answer["problem"]:
        return "P" * len(codes)
    by_code = ""
    order = [line.split()[-1] for line in vnode("show").splitlines() if line.startswith("GPU ")]
    for i in range(len(codes)):
        mine = [line for line in answer["gpus"] if line["uuid"] in (order[i], order[i + PAIRS]) or
                line.get("parent") == order[i] or f"index {i})" in line["uuid"] or f"index {i + PAIRS})" in line["uuid"]]
        by_code += ("C" if any(line["lost"] for line in mine) else "t" if any(line["unknown"] for line in mine) else
                    "l" if answer["limits"] else ".")
    return by_code


def cell(way, call, codes, daemon):
    wrong, seen = [], ""
    known = numbers(ask("/v1/gpus")) if daemon else {}
    if way == "start":
        inject(call, codes, first=True)
        daemon = Daemon()
        until(lambda: ask("/v1/gpus")["gpus"] or ask("/v1/gpus")["problem"], "a first reading")
    elif way == "later":
        inject(call, codes)
    else:
        inject(call, codes, ("--for", 60))
    if way != "minute":
        reads()
        seen = look(call, codes, wrong)
        if call in FACTS and ("C" in seen or not any((line["health"] or {}).get("unknown") for line in ask("/v1/gpus")["gpus"])):
            wrong.append("a figure by which nothing is decided closes a GPU, or is not said to be unknown")
        if call in OF_GPU:
            place_jobs(daemon, wrong)
        vnode("clear")
    else:
        reads()
        wrong.append(wrong_with(ask("/v1/gpus")))
        until(lambda: " answers " not in vnode("show"), "the minute ends")
    until(lambda: is_whole(ask("/v1/gpus")), f"all is back: {call} {codes} {way}")
    now = numbers(ask("/v1/gpus"))
    wrong += [f"{uuid} was {number}, is {now.get(uuid)}" for uuid, number in known.items() if now.get(uuid) != number]
    if daemon.process.poll() is not None or "ended by signal" in LOG.read_text():
        wrong.append("a crash")
    for what in filter(None, wrong):
        failures.append(f"{call} answers {codes}, {way}: {what}")
    return daemon, seen


def check_all_are_asked():
    """Every function that carma looks for in the library is in one of the lists above."""
    sources = pathlib.Path(__file__).parents[2] / "src" / "gpu" / "nvml"
    looked_for = {re.sub(r"_v\d$", "", name) for path in sources.glob("*.c")
                  for name in re.findall(r'"(nvml[A-Z]\w+)"', path.read_text())}
    listed = {*OF_GPU, *OF_NODE, *OF_DOCTOR, *NOT_ASKED}
    failures.extend(f"no cell has {name}" for name in sorted(looked_for - listed))
    failures.extend(f"carma does not look for {name}" for name in sorted(listed - looked_for))


def doctor_cell(call, code):
    """The facts that carma doctor asks for, while the call fails: each GPU has a line, whatever is missing."""
    vnode("inject", "call", "--call", call, "--code", code)
    ran = subprocess.run([PREFIX / "lib/carma/carma-monitor", "--inspect", "--library",
                          PREFIX / "lib/carma/vnode/libnvidia-ml.so.1"], capture_output=True, text=True, check=False)
    vnode("clear")
    lines = ran.stdout.splitlines()
    told = {line.split()[1] for line in lines if re.match(r"gpu \d+ (uuid|failed) ", line)}
    if ran.returncode < 0 or not any(line.startswith("init ") for line in lines) or (
            "gpus 8" in lines and len(told) != 2 * PAIRS):
        failures.append(f"{call} answers {code}, doctor: {ran.returncode} {ran.stdout} {ran.stderr}")
    return "P" if "gpus 8" not in lines else "C" if " failed " in ran.stdout else "t"


def steps(call, codes):
    size = PAIRS if call in OF_GPU else 1
    return [codes[i:i + size] for i in range(0, len(codes), size)]


def main():
    only = sys.argv[4:]
    rows = SAMPLE if sys.argv[1] == "sample" else [(call, CODES) for call in OF_GPU + OF_NODE]
    print("C: closed, t: told, l: in the line on metrics, P: nothing can be read, .: nothing is unknown\n"
          f"{'call':40} codes from the start{'':11} later")
    daemon = None
    for call, codes in rows:
        shown = dict.fromkeys(WAYS, "")
        for step in steps(call, codes) if not only or call in only else []:
            for way in WAYS:
                if way == "start" and daemon:
                    daemon.end()
                    daemon = None
                try:
                    daemon, seen = cell(way, call, step, daemon)
                except TimeoutError as timeout:
                    print(f"{call} answers {step}, {way}: {timeout}: {json.dumps(ask('/v1/gpus'))} {LOG.read_text()}")
                    return 1
                shown[way] += seen
        print(f"{call:40} {shown['start']:30} {shown['later']}", flush=True)
    if daemon:
        daemon.end()
    print(f"{'carma doctor':40} codes")
    for call in OF_DOCTOR + ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID",
                             "nvmlDeviceGetName", "nvmlDeviceGetComputeMode"]:
        print(f"{call:40} {''.join(doctor_cell(call, code) for code in CODES)}")
    check_all_are_asked()
    print("\n".join(failures))
    return bool(failures)


sys.exit(main())
