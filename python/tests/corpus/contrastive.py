"""Two views of an image against all others in the batch, with a queue of keys and a momentum encoder."""

import copy

import torch
from torch import nn
from torchvision import models, transforms


class MoCo(nn.Module):
    def __init__(self, dim=128, size=4096, momentum=0.999):
        super().__init__()
        self.momentum = momentum
        self.encoder_q = models.resnet18(num_classes=dim)
        self.encoder_k = copy.deepcopy(self.encoder_q).requires_grad_(False)
        self.register_buffer("queue", nn.functional.normalize(torch.randn(dim, size), dim=0))
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def enqueue(self, keys):
        pointer = int(self.pointer)
        assert self.queue.shape[1] % keys.shape[0] == 0
        self.queue[:, pointer : pointer + keys.shape[0]] = keys.T
        self.pointer[0] = (pointer + keys.shape[0]) % self.queue.shape[1]

    def forward(self, one, two):
        query = nn.functional.normalize(self.encoder_q(one), dim=1)
        with torch.no_grad():
            for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
                k.data = k.data * self.momentum + q.data * (1.0 - self.momentum)
            order = torch.randperm(two.shape[0]).cuda()
            key = nn.functional.normalize(self.encoder_k(two[order]), dim=1)[torch.argsort(order)]
        positive = torch.einsum("nc,nc->n", [query, key]).unsqueeze(-1)
        logits = torch.cat([positive, torch.einsum("nc,ck->nk", [query, self.queue.clone().detach()])], dim=1) / 0.07
        self.enqueue(key)
        return logits, torch.zeros(logits.shape[0], dtype=torch.long).cuda()


augment = transforms.Compose([transforms.RandomResizedCrop(96), transforms.RandomGrayscale(0.2)])
model = MoCo().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
for step in range(10):
    images = torch.rand(32, 3, 128, 128)
    logits, labels = model(augment(images).cuda(non_blocking=True), augment(images).cuda(non_blocking=True))
    loss = nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
