"""The driver's readings of one GPU while a run goes on: used memory and SM activity, by NVML (package nvidia-ml-py).

SM activity has a counter by NVML on Hopper and later (GPM); before, where NVIDIA's `dcgmi` is installed, by DCGM. Where
there is neither, the columns stay empty."""

import shutil
import subprocess
import threading

import pynvml

PERIOD_S = 0.1
# NVML's GPM metrics and DCGM's fields, in the data set's order.
COLUMNS = ("avg_gract", "avg_smact", "avg_smocc", "avg_fp32a")
GPM_METRICS = (1, 2, 3, 13)  # graphics, SM, SM occupancy, FP32: percent
DCGM_FIELDS = (1001, 1002, 1003, 1007)  # the same: 0 to 1


class NoGpu(Exception):
    """No GPU to measure on; the text says why."""


class Gpu:
    def __init__(self, index):
        try:
            pynvml.nvmlInit()
            self.handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        except pynvml.NVMLError as error:
            raise NoGpu(f"no GPU {index} by NVML ({error}): run this on a machine with an NVIDIA GPU") from error
        self.index = index

    def text(self, value):
        return value.decode() if isinstance(value, bytes) else value

    def facts(self):
        return {
            "gpu": self.text(pynvml.nvmlDeviceGetName(self.handle)),
            "driver": self.text(pynvml.nvmlSystemGetDriverVersion()),
            "gpu_memory_mib": pynvml.nvmlDeviceGetMemoryInfo(self.handle).total >> 20,
        }

    def used_mib(self):
        return pynvml.nvmlDeviceGetMemoryInfo(self.handle).used >> 20

    def processes(self):
        return len(pynvml.nvmlDeviceGetComputeRunningProcesses(self.handle))

    def activity_source(self):
        try:
            if pynvml.nvmlGpmQueryDeviceSupport(self.handle).isSupportedDevice:
                return GpmActivity(self.handle)
        except (AttributeError, pynvml.NVMLError):
            pass
        if shutil.which("dcgmi"):
            return DcgmActivity(self.index)
        return NoActivity()


class NoActivity:
    def read(self):
        return []

    def close(self):
        pass


class GpmActivity:
    """Differences between two samples of NVML's performance counters."""

    def __init__(self, handle):
        self.handle = handle
        self.last, self.next = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
        pynvml.nvmlGpmSampleGet(handle, self.last)

    def read(self):
        pynvml.nvmlGpmSampleGet(self.handle, self.next)
        query = pynvml.c_nvmlGpmMetricsGet_t()
        query.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        query.numMetrics = len(GPM_METRICS)
        query.sample1, query.sample2 = self.last, self.next
        for i, metric in enumerate(GPM_METRICS):
            query.metrics[i].metricId = metric
        pynvml.nvmlGpmMetricsGet(query)
        self.last, self.next = self.next, self.last
        values = [query.metrics[i] for i in range(len(GPM_METRICS))]
        return [[value.value / 100 if value.nvmlReturn == 0 else None for value in values]]

    def close(self):
        pynvml.nvmlGpmSampleFree(self.last)
        pynvml.nvmlGpmSampleFree(self.next)


class DcgmActivity:
    """`dcgmi dmon` beside the run; its lines are read as they come."""

    def __init__(self, index):
        fields = ",".join(map(str, DCGM_FIELDS))
        self.child = subprocess.Popen(
            ["dcgmi", "dmon", "-e", fields, "-i", str(index), "-d", str(int(PERIOD_S * 1000))],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.lines = []
        threading.Thread(target=self._collect, daemon=True).start()

    def _collect(self):
        for line in self.child.stdout:
            self.lines.append(line)

    def read(self):
        lines, self.lines = self.lines, []
        samples = []
        for line in lines:
            words = line.split()
            if len(words) == 2 + len(DCGM_FIELDS) and words[0] == "GPU":
                samples.append([None if word == "N/A" else float(word) for word in words[2:]])
        return samples

    def close(self):
        self.child.terminate()
        self.child.wait()


class Watch:
    """Samples a GPU in a thread of its own until it is stopped."""

    def __init__(self, gpu):
        self.gpu, self.most_used_mib, self.samples = gpu, 0, []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.activity = self.gpu.activity_source()
        self.thread.start()
        return self

    def __exit__(self, *_error):
        self.stopped.set()
        self.thread.join()
        self.activity.close()

    def _run(self):
        while not self.stopped.wait(PERIOD_S):
            self.most_used_mib = max(self.most_used_mib, self.gpu.used_mib())
            self.samples += self.activity.read()

    def columns(self):
        """The largest used memory, and each activity's mean over its samples that are not zero."""
        means = {}
        for i, name in enumerate(COLUMNS):
            values = [sample[i] for sample in self.samples if sample[i]]
            means[name] = round(sum(values) / len(values), 5) if values else ""
        return {"max_gpu_memory_mib": self.most_used_mib, **means}
