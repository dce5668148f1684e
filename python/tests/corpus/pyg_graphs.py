"""Graphs of different sizes in batches: GIN layers and a pooled classification."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GINConv, global_add_pool

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)


def graph(index):
    nodes = 20 + index % 17
    return Data(
        x=torch.randn(nodes, 16), edge_index=torch.randint(nodes, (2, nodes * 4)), y=torch.tensor([index % 2])
    )


class GIN(torch.nn.Module):
    def __init__(self, layers=5, hidden=64):
        super().__init__()
        self.convs = torch.nn.ModuleList(
            GINConv(MLP([16 if i == 0 else hidden, hidden, hidden]), train_eps=False) for i in range(layers)
        )
        self.mlp = MLP([hidden, hidden, 2], norm=None, dropout=0.5)

    def forward(self, x, edge_index, batch, batch_size):
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.mlp(global_add_pool(x, batch, batch_size))


loader = DataLoader([graph(i) for i in range(512)], 128, shuffle=True)
model = GIN().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(100):
    model.train()
    total = 0
    for data in loader:
        data = data.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data.x, data.edge_index, data.batch, data.batch_size), data.y)
        loss.backward()
        optimizer.step()
        total += float(loss) * data.num_graphs
    print(epoch, total / len(loader.dataset))
