"""A whole step in a CUDA graph: warm-up on a side stream, capture, replays with new data in static tensors, events."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4096, 2048), nn.Dropout(0.2), nn.Linear(2048, 4096), nn.Dropout(0.1)).cuda()
loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
static_input, static_target = torch.randn(640, 4096, device="cuda"), torch.randn(640, 4096, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        loss_fn(model(static_input), static_target).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    static_loss = loss_fn(model(static_input), static_target)
    static_loss.backward()
    optimizer.step()
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
for _ in range(10):
    static_input.copy_(torch.rand(640, 4096))
    static_target.copy_(torch.rand(640, 4096))
    graph.replay()
end.record()
torch.cuda.synchronize()
print(static_loss.item(), start.elapsed_time(end), torch.cuda.memory_summary())
