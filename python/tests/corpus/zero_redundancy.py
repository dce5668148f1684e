"""ZeRO 1 of PyTorch: the optimizer's states are shared out among the ranks."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(1000, 1000) for _ in range(10)]).to(rank)
model = DDP(model, device_ids=[rank], gradient_as_bucket_view=True)
criterion = nn.MSELoss()
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)
for _ in range(20):
    outputs = model(torch.randn(20, 1000).to(rank))
    criterion(outputs, torch.randn(20, 1000).to(rank)).backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
