"""carma monitor: the readings of carma-monitor as CSV (docs/formats/monitor-csv.md). An unknown value is empty, never 0."""

import re
import signal
import subprocess
import sys
import tempfile
import time

import node
from show import Failure, tell, usage

COLUMNS = ("time_s,gpu,uuid,kind,error,sm_activity,sm_activity_source,sm_activity_age_s,sm_occupancy,dram_activity,tensor_activity,"
           "graphics_activity,metrics_source,pcie_tx_bytes_s,pcie_rx_bytes_s,utilization,memory_used_bytes,memory_total_bytes,"
           "power_w,energy_j,processes,xid")
LEAST_S, MOST_S, AGAIN_S = 0.01, 31536000, 1


def seconds(options, name):
    text = options.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]*\.?[0-9]+", text) or not LEAST_S <= float(text) <= MOST_S:
        raise usage("monitor", f"--{name}: '{text:.40}' is not a number of seconds from {LEAST_S} to {MOST_S}")
    return float(text)


def milli(value):
    return "" if value is None else f"{value:.3f}"


def of_ns(ns):
    return f"{ns // 10**9}.{ns % 10**9 // 10**6:03}"


def row(gpu, at_ns):
    def of(metric):
        measured = gpu.metrics.get(metric)
        return None if measured is None else measured.value

    sm = gpu.metrics.get("sm_activity")
    others = [gpu.metrics[metric].source for metric in node.METRICS[1:] if metric in gpu.metrics]
    fields = [of_ns(at_ns), gpu.index, gpu.uuid, gpu.kind, gpu.error, milli(of("sm_activity")), sm.source if sm else "none",
              of_ns(max(at_ns - sm.at_ns, 0)) if sm else "",
              *(milli(of(metric)) for metric in ("sm_occupancy", "dram_activity", "tensor_activity", "graphics_activity")),
              others[0] if others else "none", of("pcie_tx"), of("pcie_rx"), milli(gpu.utilization), gpu.used_bytes,
              gpu.total_bytes, milli(gpu.power_w), milli(gpu.energy_j), gpu.processes if gpu.tells_processes else None,
              gpu.xid or None]  # fmt: skip
    return ",".join("" if field is None else str(field) for field in fields)


def run(options):
    period_s, for_s = seconds(options, "period") or 1, seconds(options, "for")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if for_s:
        signal.signal(signal.SIGALRM, lambda *_: sys.exit(0))
        signal.setitimer(signal.ITIMER_REAL, max(for_s / node.SCALE, 1e-3))
    began = False
    while True:
        with tempfile.TemporaryFile() as errors, \
             subprocess.Popen(node.monitor_words({}, period_s * 1e9), stdout=subprocess.PIPE, stderr=errors,
                              env=node.MONITOR_ENVIRONMENT) as monitor:  # fmt: skip
            try:
                for reading in node.readings(monitor.stdout):
                    lines = [*(() if began else (COLUMNS,)), *(row(gpu, reading.at_ns) for gpu in reading.gpus)]
                    began = True
                    print("\n".join(lines), flush=True)
            finally:
                monitor.kill()
            monitor.wait()
            errors.seek(0)
            problem = f"GPUs cannot be read: {node.last_line(errors.read())}"
        if not began:
            raise Failure(problem)
        tell(problem)  # once readings have come, they may come again
        time.sleep(AGAIN_S)
