"""Sets of graphs that PyTorch Geometric downloads, by name: citations (one graph of nodes) or molecules and proteins."""

import argparse
import os.path as osp

import torch
import torch.nn.functional as F
from torch_geometric.datasets import Planetoid, TUDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GATConv, GINConv, global_add_pool
from torch_geometric.transforms import NormalizeFeatures

parser = argparse.ArgumentParser()
parser.add_argument("--dataset", default="Cora")
parser.add_argument("--hidden_channels", type=int, default=8)
parser.add_argument("--heads", type=int, default=8)
parser.add_argument("--batch_size", type=int, default=128)
args = parser.parse_args()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
path = osp.join(osp.dirname(osp.realpath(__file__)), "..", "data", args.dataset)


class GAT(torch.nn.Module):
    def __init__(self, given, classes):
        super().__init__()
        self.first = GATConv(given, args.hidden_channels, args.heads, dropout=0.6)
        self.second = GATConv(args.hidden_channels * args.heads, classes, concat=False, dropout=0.6)

    def forward(self, x, edges):
        x = F.elu(self.first(F.dropout(x, 0.6, self.training), edges))
        return self.second(F.dropout(x, 0.6, self.training), edges)


class GIN(torch.nn.Module):
    def __init__(self, given, classes, wide=32):
        super().__init__()
        self.convs = torch.nn.ModuleList(GINConv(MLP([wide if i else given, wide, wide])) for i in range(5))
        self.head = MLP([wide, wide, classes], norm=None, dropout=0.5)

    def forward(self, x, edges, batch):
        for conv in self.convs:
            x = conv(x, edges).relu()
        return self.head(global_add_pool(x, batch))


if args.dataset in ("Cora", "CiteSeer", "PubMed"):
    dataset = Planetoid(path, args.dataset, transform=NormalizeFeatures())
    data = dataset[0].to(device)
    model = GAT(dataset.num_features, dataset.num_classes).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
    for _ in range(200):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
else:
    dataset = TUDataset(path, name=args.dataset).shuffle()
    loader = DataLoader(dataset[: int(0.9 * len(dataset))], args.batch_size, shuffle=True)
    model = GIN(dataset.num_features, dataset.num_classes).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for rows in loader:
        rows = rows.to(device)
        optimizer.zero_grad()
        F.cross_entropy(model(rows.x, rows.edge_index, rows.batch), rows.y).backward()
        optimizer.step()
