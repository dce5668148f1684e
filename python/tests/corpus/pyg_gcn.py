"""PyTorch Geometric: a GCN on a graph whose nodes are split by masks."""

import torch
import torch.nn.functional as F
from torch_geometric.datasets import KarateClub
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import NormalizeFeatures

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = NormalizeFeatures()(KarateClub()[0])


class GCN(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(features, hidden, cached=True), GCNConv(hidden, classes, cached=True)

    def forward(self, x, edge_index):
        x = self.conv1(F.dropout(x, p=0.5, training=self.training), edge_index).relu()
        return self.conv2(F.dropout(x, p=0.5, training=self.training), edge_index)


model = GCN(data.num_features, 256, 4).to(device)
data = data.to(device)
optimizer = torch.optim.Adam(
    [{"params": model.conv1.parameters(), "weight_decay": 5e-4}, {"params": model.conv2.parameters()}], lr=0.01
)
best = 0
for epoch in range(1, 201):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        prediction = model(data.x, data.edge_index).argmax(dim=-1)
        accuracy = int((prediction == data.y).sum()) / int(data.num_nodes)
    if accuracy > best:
        best = accuracy
    print(f"{epoch:03d} loss {float(loss):.4f} best {best:.4f}")
