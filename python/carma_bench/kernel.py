"""CUDA's driver, through its library, and kernels of our own: carma bench monitor --kernel, the values of GRACT, SMACT
and SMOCC as a kernel's blocks and threads grow (the thesis's Figure 3.1); and --load, the built-in loads."""

import ctypes
import os
import uuid

import node
import show
from show import Failure

NO_GPU, NO_DEVICE = 69, 100
CLOCK_KHZ, SM_COUNT, MEMORY_CLOCK_KHZ, BUS_BITS = 13, 16, 36, 37  # CUdevice_attribute
LOOKS_PER_POINT, PERIOD_LEAST_NS = 6, 1e8  # as often as GPM and DCGM measure at most
BATCHES_PER_POINT, BATCH = 10, 16  # kernels that are started before they are waited for
KERNEL_LEAST_NS, KERNEL_MOST_NS = 20e3, 5e6  # of the GPU's clock
THREADS = (1, 32, 128, 512, 1024)
# `spin`: each thread goes on for so many nanoseconds of the GPU's clock. `work`: each thread does so many dependent
# multiplications and additions; the result is stored only in a case that never comes, which the compiler cannot know.
PTX = b"""\
.version 6.0
.target sm_50
.address_size 64

.visible .entry spin(.param .u64 span_ns)
{
    .reg .u64 %span, %first, %now;
    .reg .pred %on;
    ld.param.u64 %span, [span_ns];
    mov.u64 %first, %globaltimer;
AGAIN:
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %first;
    setp.lt.u64 %on, %now, %span;
    @%on bra AGAIN;
    ret;
}

.visible .entry work(.param .u64 rounds, .param .u64 out)
{
    .reg .u64 %left, %address;
    .reg .u32 %thread;
    .reg .f32 %value;
    .reg .pred %on, %never;
    ld.param.u64 %left, [rounds];
    ld.param.u64 %address, [out];
    mov.u32 %thread, %tid.x;
    cvt.rn.f32.u32 %value, %thread;
MORE:
    fma.rn.f32 %value, %value, 0f3F7FF000, 0f3F800000; // value * 0.99975 + 1: stays below 5000
    sub.u64 %left, %left, 1;
    setp.ne.u64 %on, %left, 0;
    @%on bra MORE;
    setp.lt.f32 %never, %value, 0f00000000;
    @%never st.global.f32 [%address], %value;
    ret;
}
"""


class Driver:
    """CUDA's driver and its first GPU: CUDA_VISIBLE_DEVICES chooses."""

    def __init__(self):
        self.path = os.environ.get("CARMA_CUDA_LIBRARY") or "libcuda.so.1"
        try:
            self.library = ctypes.CDLL(self.path)
        except OSError:
            text = f"no GPU is usable here: cannot load {self.path}, the CUDA driver's library"
            raise Failure(text, NO_GPU) from None
        count, self.device, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(96)
        code = self._function("cuInit")(0) or self._function("cuDeviceGetCount")(ctypes.byref(count))
        if code == NO_DEVICE or (code == 0 and count.value == 0):
            raise Failure(f"no GPU is usable here: {self.path} finds none (is CUDA_VISIBLE_DEVICES right?)", NO_GPU)
        self._check("cuInit", code)
        self._call("cuDeviceGet", ctypes.byref(self.device), 0)
        self._call("cuDeviceGetName", name, 95, self.device)
        self.name, self.uuid = name.value.decode("utf-8", "replace"), self._uuid()
        self.sms = self._attribute(SM_COUNT)

    def _function(self, name):
        try:
            return getattr(self.library, name)
        except AttributeError:
            raise Failure(f"{self.path} lacks {name}: name another library with CARMA_CUDA_LIBRARY") from None

    def _check(self, name, code):
        if code:
            text = ctypes.c_char_p()
            known = self._function("cuGetErrorName")(code, ctypes.byref(text)) == 0 and text.value
            text = text.value.decode("ascii", "replace") if known else "an error that it does not name"
            raise Failure(f"{self.path}: {name}: {text} ({code})")

    def _call(self, name, *words):
        self._check(name, self._function(name)(*words))

    def _newest(self, name):
        return self._function(f"{name}_v2" if hasattr(self.library, f"{name}_v2") else name)

    def _uuid(self):
        """As NVML has it; "": an old driver does not tell."""
        found = ctypes.create_string_buffer(16)
        try:
            return f"GPU-{uuid.UUID(bytes=found.raw)}" if self._newest("cuDeviceGetUuid")(found, self.device) == 0 else ""
        except Failure:
            return ""

    def _attribute(self, which):
        value = ctypes.c_int()
        code = self._function("cuDeviceGetAttribute")(ctypes.byref(value), which, self.device)
        return max(0, value.value) if code == 0 else 0

    def speeds(self):
        """Of a machine profile; two transfers a clock."""
        bandwidth = 2.0 * self._attribute(MEMORY_CLOCK_KHZ) * self._attribute(BUS_BITS) / 8 / 1e6
        return {"sm_count": self.sms, "sm_clock_mhz": self._attribute(CLOCK_KHZ) // 1000,
                "bandwidth_gbps": int(bandwidth + 0.5)}

    def take_context(self):
        """An empty context: the least that any CUDA program takes. How much memory is free beside it, in bytes."""
        context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self._call("cuCtxSetCurrent", context)
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def give_context(self):
        self._newest("cuDevicePrimaryCtxRelease")(self.device)


class Cuda(Driver):
    """A kernel on it."""

    def __init__(self, kernel, *parameters):
        super().__init__()
        module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.take_context()
        self._call("cuModuleLoadData", ctypes.byref(module), PTX)
        self._call("cuModuleGetFunction", ctypes.byref(self.kernel), module, kernel.encode())
        self.values = [ctypes.c_uint64(value) for value in parameters]
        self.parameters = (ctypes.c_void_p * len(parameters))(*map(ctypes.addressof, self.values))
        self.launched = self._function("cuLaunchKernel")

    def launch(self, blocks, threads):
        """Does not wait."""
        code = self.launched(self.kernel, blocks, 1, 1, threads, 1, 1, 0, None, self.parameters, None)
        if code:
            self._check("cuLaunchKernel", code)

    def wait(self):
        self._call("cuCtxSynchronize")


def run_load(heavy, stop):
    """One epoch: a fixed amount of arithmetic in many short kernels, on all SMs, or on a few so that most are idle."""
    launches, blocks_per_sm, threads, rounds = (50000, 8, 256, 20000) if heavy else (200000, 0.05, 128, 10000)
    cuda = Cuda("work", rounds, 0)
    for _ in range(launches // 100):
        for _ in range(100):
            cuda.launch(max(1, int(cuda.sms * blocks_per_sm)), threads)
        cuda.wait()
        if stop.number:
            raise Failure("interrupted", 0)


def run_point(bench, cuda, point):
    """Keeps the GPU at it for the time of a point; when that was."""
    begun_ns = node.now_ns()
    while node.now_ns() - begun_ns < bench.point_ns:
        for _ in range(BATCH):
            cuda.launch(point["blocks"], point["threads"])
        cuda.wait()
        if bench.stop.number:
            raise Failure("interrupted", 0)
    return begun_ns, node.now_ns()


def measure(bench, start_monitor, wait_for_frames, frames):
    """Every size, from one thread to twice a full GPU; the report."""
    os.environ["CUDA_VISIBLE_DEVICES"] = bench.gpu.uuid  # the same GPU for CUDA's driver
    span_ns = bench.point_ns / node.SCALE / (BATCHES_PER_POINT * BATCH)
    cuda = Cuda("spin", int(min(max(span_ns, KERNEL_LEAST_NS), KERNEL_MOST_NS)))
    sms = max(cuda.sms, 4)
    points = [{"blocks": blocks, "threads": threads}
              for blocks in (1, sms // 4, sms // 2, sms, 2 * sms) for threads in THREADS]
    folder = node.own_folder(bench.folder, "kernel")
    period_ns = max(bench.point_ns / LOOKS_PER_POINT, PERIOD_LEAST_NS)
    monitor = start_monitor(period_ns, folder)
    try:
        wait_for_frames(bench, monitor, folder)
        spans = [run_point(bench, cuda, point) for point in points]
    finally:
        monitor.end()
    take_metrics(bench, list(frames(folder)), points, spans, period_ns)
    return {"gpu": bench.gpu.uuid, "gpu_name": cuda.name, "simulated": node.SIMULATED, "sms": cuda.sms,
            "time_scale": node.SCALE, "point_s": bench.point_ns / 1e9, "points": points}


def take_metrics(bench, readings, points, spans, period_ns):
    """Means. An interval's reading belongs to the point that contains the whole interval. Utilisation, which may stand
    in for a metric, is shown under its own name."""
    looks = [(reading.at_ns, gpu) for reading in readings for gpu in reading.gpus if gpu.uuid == bench.gpu.uuid]
    for point, (begun_ns, ended_ns) in zip(points, spans):

        def within(at_ns, from_ns=begun_ns + period_ns, to_ns=ended_ns):
            return from_ns <= at_ns <= to_ns

        for name in node.METRICS:
            found = [gpu.metrics[name] for _, gpu in looks if name in gpu.metrics]
            found = [metric for metric in found if metric.source != "utilization" and within(metric.at_ns)]
            if name not in node.TRAFFIC:
                mean = found and sum(metric.value for metric in found) / len(found)
                point[name] = {"value": mean, "source": found[-1].source} if found else None
        used = [gpu.utilization for at_ns, gpu in looks if within(at_ns) and gpu.utilization is not None]
        point["utilization"] = sum(used) / len(used) if used else None


COLUMNS = [("BLOCKS", True, 0, 0), ("THREADS", True, 0, 0), ("UTILIZATION", True, 0, 0), ("GRACT", True, 0, 0),
           ("SMACT", True, 0, 0), ("SMOCC", True, 0, 0), ("SOURCE", False, 0, 1)]


def percent(share):
    return None if share is None else f"{share * 100:.1f}%"


def print_table(result):
    simulated = "; a virtual node: simulated" if node.SIMULATED else ""
    print(f"{result['gpu_name']} {result['gpu']}, {result['sms']} SMs{simulated}\n")
    rows = []
    for point in result["points"]:
        shown = [point[name] for name in ("graphics_activity", "sm_activity", "sm_occupancy")]
        rows.append([point["blocks"], point["threads"], percent(point["utilization"]),
                     *(percent(metric and metric["value"]) for metric in shown),
                     shown[1]["source"] if shown[1] else "none"])
    show.table(COLUMNS, rows)
