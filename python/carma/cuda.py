"""torch.cuda and torch.accelerator as on a machine with GPUs of 80 GiB. Questions of the script are answered. Streams,
events and graphs do nothing but exist."""

import abc
import contextlib
import os
import types

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from carma.devices import device_count

MEMORY = 80 << 30
PROPERTIES = types.SimpleNamespace(
    name="carma", major=8, minor=0, total_memory=MEMORY, multi_processor_count=108, max_threads_per_multi_processor=2048,
    warp_size=32, regs_per_multiprocessor=65536, shared_memory_per_multiprocessor=167936, shared_memory_per_block=49152,
    shared_memory_per_block_optin=166912, L2_cache_size=40 << 20, is_integrated=0, is_multi_gpu_board=0,
    max_threads_per_block=1024, gcnArchName="", uuid="carma", pci_bus_id=0, pci_device_id=0, pci_domain_id=0,
    memory_clock_rate=1215000, memory_bus_width=5120, clock_rate=1410000,
)  # fmt: skip


class Stream:
    def __init__(self, device=None, priority=0, **_):
        self.device, self.priority, self.cuda_stream, self.stream_id = torch.device("cuda:0"), priority, 0, 0
        self.device_index, self.device_type = 0, 1

    def _nothing(self, *args, **kwargs):
        return None

    wait_stream = wait_event = synchronize = _nothing

    def record_event(self, event=None):
        return event or Event()

    def query(self):
        return True

    def is_capturing(self):
        return False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class ExternalStream(Stream):
    pass


class Event:
    def __init__(self, *args, **kwargs):
        self.cuda_event, self.device = 0, torch.device("cuda:0")

    def _nothing(self, *args, **kwargs):
        return None

    record = wait = synchronize = _nothing

    def query(self):
        return True

    def elapsed_time(self, other):
        return 1.0


class CUDAGraph:
    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)

    def __init__(self, *args, **kwargs):
        pass

    def _nothing(self, *args, **kwargs):
        return None

    capture_begin = capture_end = instantiate = replay = reset = enable_debug_mode = debug_dump = _nothing

    def pool(self):
        return (0, 0)


def _generator(original):
    """Random numbers of the device come from a generator of the host."""

    class Generator(original):
        def __new__(cls, device="cpu"):
            made = super().__new__(cls)
            made.claimed = torch.device(device)
            return made

        @property
        def device(self):
            return self.claimed

    return Generator


def replace(stack, put, recorder):
    """put(stack, owner, name, value) sets an attribute until the stack is left."""
    stream, local = Stream(), [int(os.environ.get("LOCAL_RANK") or 0)]

    def index_of(device=None):
        if isinstance(device, int):
            return device
        found = torch.device(device).index if device is not None else None
        return local[0] if found is None else found

    def set_device(device):
        local[0] = index_of(device)

    @contextlib.contextmanager
    def entered(*args, **kwargs):
        yield

    class Device:
        def __init__(self, device=None):
            self.idx = index_of(device) if not isinstance(device, torch.Tensor) else 0

        def __enter__(self):
            return None

        def __exit__(self, *error):
            return False

    @contextlib.contextmanager
    def graph(*args, **kwargs):
        recorder.doubt("a CUDA graph keeps a memory pool of its own", 150)
        yield

    def allocated(*_, **__):
        return recorder.allocated

    def most(*_, **__):
        return recorder.most_allocated

    def told(settings):
        recorder.allocator.append(str(settings))

    stats = {f"{kind}_bytes.all.{what}": MEMORY // 80 for kind in ("allocated", "reserved", "active", "requested")
             for what in ("current", "peak", "allocated", "freed")}  # fmt: skip
    state = torch.zeros(16, dtype=torch.uint8)
    calls = {
        "is_available": True, "is_initialized": True, "_is_compiled": True, "_lazy_init": None, "init": None,
        "synchronize": None, "empty_cache": None, "reset_peak_memory_stats": None, "reset_accumulated_memory_stats": None,
        "reset_max_memory_allocated": None, "reset_max_memory_cached": None, "ipc_collect": None,
        "manual_seed": None, "manual_seed_all": None, "seed": None, "seed_all": None, "initial_seed": 0,
        "get_device_name": "carma", "get_device_capability": (8, 0), "get_device_properties": PROPERTIES,
        "is_bf16_supported": True, "mem_get_info": (MEMORY, MEMORY), "utilization": 0, "memory_usage": 0,
        "can_device_access_peer": True, "get_arch_list": ["sm_80"], "is_current_stream_capturing": False,
        "memory_summary": "", "memory_snapshot": [], "memory_stats": stats,
        "get_rng_state": state, "get_rng_state_all": [state], "set_rng_state": None, "set_rng_state_all": None,
        "current_stream": stream, "default_stream": stream, "set_stream": None, "_exchange_device": -1,
        "_maybe_exchange_device": -1, "graph_pool_handle": (0, 0), "list_gpu_processes": "", "_sleep": None,
        "_set_rng_state_offset": None, "_get_rng_state_offset": 0, "get_allocator_backend": "native", "power_draw": 0,
        "temperature": 30, "is_tf32_supported": True, "check_error": None,
    }  # fmt: skip
    answers = {name: lambda *args, answer=answer, **kwargs: answer for name, answer in calls.items()}
    answers.update({
        "device_count": device_count, "current_device": lambda: local[0], "set_device": set_device,
        "set_per_process_memory_fraction": lambda share, *_: told(f"per_process_memory_fraction:{share}"),
        "_set_allocator_settings": told, "memory_allocated": allocated, "max_memory_allocated": most, "memory_reserved": allocated,
        "max_memory_reserved": most, "memory_cached": allocated, "max_memory_cached": most,
        "Stream": Stream, "ExternalStream": ExternalStream, "Event": Event, "CUDAGraph": CUDAGraph, "graph": graph,
        "stream": entered, "StreamContext": entered, "device": Device, "device_of": Device,
        "make_graphed_callables": lambda callables, *args, **kwargs: callables,
    })  # fmt: skip
    for original, own in ((torch.cuda.Stream, Stream), (torch.cuda.Event, Event)):
        for base in original.__mro__:
            if isinstance(base, abc.ABCMeta):  # PyTorch 2.2 to 2.4: the compiler demands these classes
                base.register(own)
    for module in (torch.cuda, torch.cuda.memory, torch.cuda.random, torch.cuda.streams, torch.cuda.graphs):
        for name, answer in answers.items():
            if module is torch.cuda or name in vars(module):
                put(stack, module, name, answer)
    accelerator = {
        "is_available": lambda: True, "device_count": device_count, "current_device_index": lambda: local[0],
        "current_device_idx": lambda: local[0], "current_accelerator": lambda *_, **__: torch.device("cuda"),
        "set_device_index": set_device, "set_device_idx": set_device, "current_stream": lambda *_: stream,
        "set_stream": lambda *_: None, "synchronize": lambda *_: None, "empty_cache": lambda: None,
        "device_index": Device, "get_memory_info": lambda *_: (MEMORY, MEMORY),
        "get_device_capability": lambda *_: {"supported_dtypes": set()},
    }  # fmt: skip
    if hasattr(torch, "accelerator"):
        for name in ("memory_stats", "memory_allocated", "max_memory_allocated", "memory_reserved",
                     "max_memory_reserved", "reset_peak_memory_stats", "reset_accumulated_memory_stats"):  # fmt: skip
            accelerator[name] = answers[name]
        for name, answer in accelerator.items():
            put(stack, torch.accelerator, name, answer)
    put(stack, torch._C, "_get_accelerator", lambda *_: torch.device("cuda"))
    put(stack, torch, "Stream", Stream)
    put(stack, torch, "Event", Event)
    put(stack, torch, "Generator", _generator(torch.Generator))
    put(stack, torch.backends.cudnn, "is_available", lambda: True)
    put(stack, torch.backends.cudnn, "version", lambda: 91000)
    put(stack, torch.backends.cudnn, "is_acceptable", lambda tensor: False)  # weights of recurrent layers stay apart
    put(stack, FakeTensorMode, "avoid_device_init", property(lambda mode: True))
    put(stack, torch.Tensor, "pin_memory", lambda tensor, *_: tensor)
    put(stack, torch.Tensor, "record_stream", lambda tensor, *_: None)
    put(stack, FakeTensor, "data_ptr", lambda tensor: tensor.untyped_storage()._cdata)
    pointer = torch.UntypedStorage.data_ptr
    put(stack, torch.UntypedStorage, "data_ptr",
        lambda storage: storage._cdata if storage.device.type == "meta" else pointer(storage))  # fmt: skip
    put(stack, torch.cuda, "default_generators", (torch.default_generator,) * 8)
    put(stack, torch.version, "cuda", torch.version.cuda or "12.8")
