"""Makes the C++ code of PyTorch before 2.10 find one CUDA device where there is none.

It asks two objects: CUDA's device guard (c10/core/impl/DeviceGuardImplInterface.h) for the current device and stream, and
CUDA's hooks (ATen/detail/AcceleratorHooksInterface.h) for whether device 0 is in use. Each would answer with an error of the
CUDA runtime. Their tables of virtual functions are replaced. All functions of the guard, and some of the hooks, are one
of our own, which does nothing. What it returns is read as device 0 of CUDA, its default stream, one device, or true."""

import ctypes
import mmap
import os
import platform

import torch

from carma.versions import torch_version

CUDA = 1  # a value of c10::DeviceType, and CUDA's place in the registry of guards
FUNCTION = {  # returns 1 and 0 in the two registers of a result: c10::Device(CUDA, 0) has two bytes, c10::Stream a number more
    "x86_64": bytes.fromhex("b801000000 31d2 c3"),  # mov eax, 1; xor edx, edx; ret
    "aarch64": bytes.fromhex("20008052 01008052 c0035fd6"),  # mov w0, 1; mov w1, 0; ret
}
GUARD_SLOTS = 64  # more than any release has
HOOKS_SLOTS = 128
# Behind the destructors, by release: hasPrimaryContext(), isBuilt(), isAvailable(), deviceCount(); before 2.3 hasCUDA() and
# hasPrimaryContext().
HOOKS_REPLACED = (2, 3, 4) if torch_version() >= (2, 3) else (6, 13)
BEFORE = 2  # words that the compiler puts before a table

_kept = []


def _keep(memory):
    """PyTorch uses it from now on, also after the interpreter's end."""
    _kept.append(memory)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    return memory


def _function():
    page = _keep(mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC))
    page.write(FUNCTION[platform.machine()])
    return ctypes.addressof(ctypes.c_char.from_buffer(page))


def _replace(guard, slots, replaced, function):
    """Gives a C++ object a table with another function in some of its slots."""
    words = ctypes.c_void_p * (BEFORE + slots)
    before = BEFORE * ctypes.sizeof(ctypes.c_void_p)
    pointer = ctypes.c_void_p.from_address(guard)
    table = _keep(words.from_buffer_copy(words.from_address(pointer.value - before)))
    for slot in replaced:
        table[BEFORE + slot] = function
    pointer.value = ctypes.addressof(table) + before


def is_possible():
    return torch.version.cuda is not None and platform.machine() in FUNCTION


def pretend():
    if _kept:
        return
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    registry = (ctypes.c_void_p * (CUDA + 1)).in_dll(
        ctypes.CDLL(os.path.join(folder, "libc10.so")), "_ZN3c104impl26device_guard_impl_registryE"
    )
    hooks = ctypes.CDLL(os.path.join(folder, "libtorch_cpu.so"))._ZN2at6detail12getCUDAHooksEv
    hooks.restype = ctypes.c_void_p
    function = _function()
    _replace(registry[CUDA], GUARD_SLOTS, range(GUARD_SLOTS), function)
    _replace(hooks(), HOOKS_SLOTS, HOOKS_REPLACED, function)
