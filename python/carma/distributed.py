"""Distributed training as one of its processes sees it: a process group of the right size that sends nothing. NCCL's own
buffers are not PyTorch's, and not recorded."""

import contextlib
import functools
import importlib
import os

import torch

FIRST_BUCKET, BUCKET = 1 << 20, 25 << 20  # of DistributedDataParallel, its defaults
BROADCAST = 250 << 20


class _Done:
    def wait(self, *args):
        return True

    def is_completed(self):
        return True

    is_success = is_completed

    def get_future(self):
        future = torch.futures.Future()
        future.set_result(None)
        return future


def _nothing(*args, async_op=False, **kwargs):
    return _Done() if async_op else None


def _same(outputs, value, *args, async_op=False, **kwargs):
    for output in outputs:
        output.copy_(value)
    return _Done() if async_op else None


def _same_objects(found, value, *args, **kwargs):
    found[:] = [value] * len(found)


def _gathered_objects(value, found=None, *args, **kwargs):
    if found is not None:
        found[:] = [value] * len(found)


def _scattered_objects(found, values, *args, **kwargs):
    found[0] = values[0] if values else None


COLLECTIVES = {
    **dict.fromkeys(
        ("all_reduce", "broadcast", "reduce", "barrier", "monitored_barrier", "all_reduce_coalesced", "send", "recv",
         "all_gather_into_tensor", "reduce_scatter_tensor", "_all_gather_base", "_reduce_scatter_base", "reduce_scatter",
         "all_to_all_single", "all_to_all", "broadcast_object_list", "gather", "scatter", "isend", "irecv"), _nothing,
    ),
    "all_gather": _same, "all_gather_object": _same_objects, "gather_object": _gathered_objects,
    "scatter_object_list": _scattered_objects,
}  # fmt: skip


def _data_parallel(original, recorder):
    class DistributedDataParallel(original):
        """Its buckets of gradients, as large as the gradients, stay beside these, or hold them."""

        def __init__(self, module, device_ids=None, output_device=None, *_, bucket_cap_mb=None, process_group=None,
                     gradient_as_bucket_view=False, broadcast_buffers=True, **__):  # fmt: skip
            torch.nn.Module.__init__(self)
            self.module, self.device_ids, self.output_device = module, device_ids, output_device
            self.process_group = process_group or torch.distributed.distributed_c10d._get_default_group()
            self.require_backward_grad_sync = self.require_forward_param_sync = True
            self.broadcast_buffers, self.gradient_as_bucket_view = broadcast_buffers, gradient_as_bucket_view
            self.find_unused_parameters = self.static_graph = False
            self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
            trained = [value for value in module.parameters() if value.requires_grad]
            if not trained:
                raise RuntimeError("DistributedDataParallel is not needed: no parameter is trained")
            self.device = trained[0].device
            self._broadcast([*module.parameters(), *module.buffers()])
            self._carma_buckets = []
            most = (bucket_cap_mb or 0) * (1 << 20) or BUCKET
            bucket, size = [], 0
            for value in reversed(trained):
                bucket.append(value)
                size += value.numel() * value.element_size()
                if size >= (most if self._carma_buckets else min(most, FIRST_BUCKET)):
                    self._make_bucket(bucket)
                    bucket, size = [], 0
            self._make_bucket(bucket)

        def _broadcast(self, values):
            count = 0
            for value in values:
                count += value.numel() * value.element_size()
                if count >= BROADCAST:
                    torch.empty(count, dtype=torch.uint8, device=self.device)
                    count = 0
            torch.empty(count, dtype=torch.uint8, device=self.device)

        def _make_bucket(self, values):
            for dtype in dict.fromkeys(value.dtype for value in values):
                alike = [value for value in values if value.dtype == dtype]
                made = torch.empty(sum(value.numel() for value in alike), dtype=dtype, device=self.device)
                recorder.name(made, "buffer")
                self._carma_buckets.append(made)
                if self.gradient_as_bucket_view:
                    for value, part in zip(alike, made.split([value.numel() for value in alike])):
                        value.register_post_accumulate_grad_hook(
                            lambda owner, part=part: setattr(owner, "grad", part.view(owner.shape))
                        )

        def forward(self, *inputs, **kwargs):
            return self.module(*inputs, **kwargs)

        @contextlib.contextmanager
        def no_sync(self):
            yield

        @contextlib.contextmanager
        def join(self, *args, **kwargs):
            yield

        def register_comm_hook(self, *args, **kwargs):
            return None

        _set_static_graph = _register_builtin_comm_hook = register_comm_hook

    DistributedDataParallel.__module__ = original.__module__
    return DistributedDataParallel


def _fully_sharded(stack, put):
    def change(module):
        sharded = module.FullyShardedDataParallel.__init__

        @functools.wraps(sharded)
        def shard(self, *args, device_id=None, **kwargs):
            device = torch.device("cuda", device_id) if isinstance(device_id, int) else device_id
            sharded(self, *args, device_id=device, **kwargs)

        put(stack, module.FullyShardedDataParallel, "__init__", shard)

    return change


def replace(stack, put, recorder):
    """Returns {module: change}, of modules that a script may import."""
    if not torch.distributed.is_available():
        return {}
    dist = torch.distributed
    c10d = dist.distributed_c10d
    start, group = dist.init_process_group, dist.new_group

    def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, *_, **__):
        world = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", "1"))
        rank = rank if rank >= 0 else int(os.environ.get("RANK", "0"))
        fake = importlib.import_module("torch.testing._internal.distributed.fake_pg")
        start(backend="fake", store=fake.FakeStore(), rank=rank, world_size=world)

    def new_group(ranks=None, *_, **__):
        return group(ranks)

    calls = {**COLLECTIVES, "init_process_group": init_process_group, "new_group": new_group,
             "get_backend": lambda *_: "nccl", "is_nccl_available": lambda: True}  # fmt: skip
    for name, call in calls.items():
        for module in (dist, c10d):
            if hasattr(module, name):
                put(stack, module, name, call)
    parallel = importlib.import_module("torch.nn.parallel")
    made = _data_parallel(parallel.DistributedDataParallel, recorder)
    for module in (parallel, parallel.distributed, torch.nn.parallel.distributed):
        put(stack, module, "DistributedDataParallel", made)
    put(stack, parallel.DataParallel, "forward", lambda self, *inputs, **kwargs: self.module(*inputs, **kwargs))

    def spawn(function, args=(), nprocs=1, *_, **__):
        function(0, *args)

    put(stack, torch.multiprocessing, "spawn", spawn)
    put(stack, torch.multiprocessing, "start_processes", spawn)
    put(stack, torch.multiprocessing.spawn if hasattr(torch.multiprocessing.spawn, "spawn") else torch.multiprocessing,
        "spawn", spawn)  # fmt: skip
    return {"torch.distributed.fsdp.fully_sharded_data_parallel": _fully_sharded(stack, put)}
