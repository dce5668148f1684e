"""Data-parallel training by torchrun: a process for each GPU, a sampler, an all-reduced figure, snapshots by rank 0."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    data = TensorDataset(torch.randn(2048, 256), torch.randint(10, (2048,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, pin_memory=True, shuffle=False, sampler=sampler)
    model = nn.Sequential(nn.Linear(256, 2048), nn.BatchNorm1d(2048), nn.ReLU(), nn.Linear(2048, 10)).to(local_rank)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    model = DDP(model, device_ids=[local_rank], output_device=local_rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for source, target in loader:
            source, target = source.to(local_rank), target.to(local_rank)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(source), target)
            loss.backward()
            optimizer.step()
        dist.all_reduce(loss, op=dist.ReduceOp.AVG)
        if rank == 0:
            torch.save(model.module.state_dict(), "snapshot.pt")
            print(f"epoch {epoch}: {loss.item():.4f} on {dist.get_world_size()} GPUs")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
