"""The older way: the script itself spawns a process for each GPU."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def worker(rank, world):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("nccl", rank=rank, world_size=world)
    torch.cuda.set_device(rank)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 5)).to(rank), [rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(torch.randn(64, 512).to(rank)), torch.randn(64, 5).to(rank))
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count(), join=True)
