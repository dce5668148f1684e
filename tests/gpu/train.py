#!/usr/bin/env python3
"""A small training for checks on a real GPU: random data, and a line for each epoch ("epoch 2: 1.234 s"). It takes the
memory that is asked for, so that running out of it can be provoked.

With PyTorch it trains a small convolutional or fully connected network. Without, it runs a kernel of its own through
the CUDA driver's library, which keeps some of the SMs busy for a fixed amount of work. That is not a training, but a
load of known shape. Needs Python 3.8 and nothing else. Exit status: 0; 1 where something failed (out of memory, for
one); 3 without a GPU that it can use."""

import argparse
import csv
import ctypes
import os
import sys
import time

NO_GPU = 3
MIB = 1 << 20
BLOCK_BYTES = 256 * MIB  # memory to hold is taken in blocks of this size, one a step


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=["auto", "torch", "kernel"], default="auto",
                        help="PyTorch, or the driver's library alone (default: PyTorch where it works)")
    parser.add_argument("--model", choices=["cnn", "mlp"], default="cnn", help="what PyTorch trains")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100, help="of an epoch")
    parser.add_argument("--memory-mib", type=int, default=0, help="hold this much GPU memory besides")
    parser.add_argument("--sm-share", type=float, default=0.4, help="of the SMs that the kernel keeps busy, 0 to 1")
    parser.add_argument("--workload", help="take epochs and memory from this row of --workloads, as carma play asks for")
    parser.add_argument("--workloads", help="a file as docs/formats/workloads.md describes")
    wanted = parser.parse_args()
    if wanted.workload:
        if not wanted.workloads:
            parser.error("--workload needs --workloads")
        with open(wanted.workloads, encoding="utf-8") as file:
            rows = csv.DictReader(line for line in file if not line.startswith("#"))
            row = next((row for row in rows if row["id"] == wanted.workload), None)
        if row is None:
            parser.error(f"{wanted.workloads} has no workload {wanted.workload}")
        wanted.epochs = int(row["epochs"])
        wanted.memory_mib = int(row["resident_mib"])
    return wanted


class TorchLoad:
    """A step of training, on data that stays on the GPU."""

    name = "torch"

    def __init__(self, wanted):
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")
        self.torch = torch
        nn = torch.nn
        if wanted.model == "cnn":
            self.data = torch.randn(wanted.batch_size, 3, 32, 32, device="cuda")
            layers = [nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 128, 3, padding=1, stride=2), nn.ReLU(),
                      nn.Conv2d(128, 256, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(256 * 8 * 8, 10)]
        else:
            self.data = torch.randn(wanted.batch_size, 1024, device="cuda")
            layers = [nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)]
        self.target = torch.randint(0, 10, (wanted.batch_size,), device="cuda")
        self.model = nn.Sequential(*layers).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.held = []

    def step(self):
        self.optimizer.zero_grad()
        loss = self.torch.nn.functional.cross_entropy(self.model(self.data), self.target)
        loss.backward()
        self.optimizer.step()

    def hold(self, count):
        self.held.append(self.torch.ones(count, dtype=self.torch.uint8, device="cuda"))

    def finish(self):
        self.torch.cuda.synchronize()


# Each thread multiplies and adds `rounds` times: it occupies its SM and touches memory only at the end.
KERNEL = b"""\
.version 6.0
.target sm_50
.address_size 64
.visible .entry work(.param .u64 output, .param .u32 rounds)
{
    .reg .pred %more;
    .reg .f32 %value, %factor;
    .reg .u32 %left, %thread;
    .reg .u64 %address, %offset;
    ld.param.u64 %address, [output];
    ld.param.u32 %left, [rounds];
    mov.u32 %thread, %tid.x;
    cvt.rn.f32.u32 %value, %thread;
    mov.f32 %factor, 0f3F7FFFFF;
again:
    fma.rn.f32 %value, %value, %factor, %factor;
    sub.u32 %left, %left, 1;
    setp.ne.u32 %more, %left, 0;
    @%more bra again;
    cvta.to.global.u64 %address, %address;
    mul.wide.u32 %offset, %thread, 4;
    add.u64 %address, %address, %offset;
    st.global.f32 [%address], %value;
    ret;
}
"""
THREADS = 256
ROUNDS = 2_000_000  # of four cycles or so: about 5 ms a launch
ATTRIBUTE_SM_COUNT = 16
OUT_OF_MEMORY = 2


class KernelLoad:
    """A launch of the kernel as a step."""

    name = "kernel"

    def __init__(self, wanted):
        try:
            self.cuda = ctypes.CDLL(os.environ.get("CARMA_CUDA_LIBRARY", "libcuda.so.1"))
        except OSError as error:
            raise RuntimeError(f"no CUDA driver: {error}") from error
        device, count = ctypes.c_int(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            raise RuntimeError("the CUDA driver shows no GPU")
        context, module, self.function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDeviceGetAttribute", ctypes.byref(count), ATTRIBUTE_SM_COUNT, device)
        self.blocks = max(1, round(count.value * wanted.sm_share))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuModuleLoadData", ctypes.byref(module), KERNEL)
        self.call("cuModuleGetFunction", ctypes.byref(self.function), module, b"work")
        self.output = self.allocate(4 * THREADS)

    def call(self, name, *arguments):
        code = getattr(self.cuda, name)(*arguments)
        if code == 0:
            return
        text = ctypes.c_char_p()
        self.cuda.cuGetErrorName(code, ctypes.byref(text))
        what = text.value.decode() if text.value else f"error {code}"
        raise (MemoryError if code == OUT_OF_MEMORY else RuntimeError)(f"{name}: {what}")

    def allocate(self, count):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(count))
        return address

    def step(self):
        rounds = ctypes.c_uint32(ROUNDS)
        parameters = (ctypes.c_void_p * 2)(ctypes.addressof(self.output), ctypes.addressof(rounds))
        self.call("cuLaunchKernel", self.function, self.blocks, 1, 1, THREADS, 1, 1, 0, None, parameters, None)
        self.call("cuCtxSynchronize")

    def hold(self, count):
        try:
            address = self.allocate(count)
        except MemoryError as error:
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
            raise MemoryError(f"{error}: {count} bytes asked for, {free.value} of {total.value} free") from error
        self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(1), ctypes.c_size_t(count))

    def finish(self):
        self.call("cuCtxSynchronize")


def make_load(wanted):
    if wanted.backend != "kernel":
        try:
            return TorchLoad(wanted)
        except (ImportError, RuntimeError) as error:
            # a GPU without room for the model is no reason to try another way
            if wanted.backend == "torch" or "out of memory" in str(error).lower():
                raise
    return KernelLoad(wanted)


def train(load, wanted):
    wanted_bytes = wanted.memory_mib * MIB
    held_bytes = 0
    for epoch in range(1, wanted.epochs + 1):
        begun = time.monotonic()
        for _ in range(wanted.steps):
            load.step()
            if held_bytes < wanted_bytes:
                count = min(BLOCK_BYTES, wanted_bytes - held_bytes)
                load.hold(count)
                held_bytes += count
        load.finish()
        print(f"epoch {epoch}: {time.monotonic() - begun:.3f} s", flush=True)
    if held_bytes < wanted_bytes:
        print(f"train.py: only {held_bytes // MIB} of {wanted.memory_mib} MiB held: too few steps", file=sys.stderr)


def main():
    wanted = arguments()
    try:
        load = make_load(wanted)
    except (ImportError, RuntimeError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 1 if "out of memory" in str(error).lower() else NO_GPU
    except MemoryError as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 1
    print(f"train.py: {load.name}, {wanted.epochs} epochs of {wanted.steps} steps, {wanted.memory_mib} MiB", flush=True)
    try:
        train(load, wanted)
    except MemoryError as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
