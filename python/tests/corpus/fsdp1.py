"""The first FSDP, a wrapper with a policy."""

import functools
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy

dist.init_process_group("nccl")
rank = int(os.environ.get("LOCAL_RANK", 0))
torch.cuda.set_device(rank)
model = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(6)), nn.Linear(1024, 10))
model = FSDP(
    model,
    device_id=torch.cuda.current_device(),
    auto_wrap_policy=functools.partial(size_based_auto_wrap_policy, min_num_params=500_000),
    mixed_precision=MixedPrecision(torch.bfloat16, torch.bfloat16, torch.bfloat16),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(10):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(64, 1024).cuda()).float(), torch.randint(10, (64,)).cuda())
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
