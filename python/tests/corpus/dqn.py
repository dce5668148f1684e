"""Deep Q-learning: a replay memory on the host, a target network, masks of states that are not final."""

import random
from collections import deque, namedtuple

import torch
from torch import nn, optim

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
BATCH, GAMMA, TAU = 128, 0.99, 0.005


def net():
    return nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))


policy, target = net().to(device), net().to(device)
target.load_state_dict(policy.state_dict())
optimizer = optim.AdamW(policy.parameters(), lr=1e-4, amsgrad=True)
memory = deque([], maxlen=10000)
random.seed(3)
steps = 0
for episode in range(50):
    state = torch.randn(4, device=device).unsqueeze(0)
    for t in range(30):
        steps += 1
        if random.random() > 0.5:
            with torch.no_grad():
                action = policy(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[random.randrange(2)]], device=device, dtype=torch.long)
        done = t == 29
        next_state = None if done else torch.tensor([random.gauss(0, 1 + action.item()) for _ in range(4)]).to(device).unsqueeze(0)
        memory.append(Transition(state, action, next_state, torch.tensor([1.0], device=device)))
        state = next_state
        if len(memory) < BATCH:
            continue
        batch = Transition(*zip(*random.sample(memory, BATCH)))
        mask = torch.tensor([s is not None for s in batch.next_state], device=device, dtype=torch.bool)
        following = torch.cat([s for s in batch.next_state if s is not None])
        values = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
        next_values = torch.zeros(BATCH, device=device)
        with torch.no_grad():
            next_values[mask] = target(following).max(1).values
        expected = next_values * GAMMA + torch.cat(batch.reward)
        loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        slow, fast = target.state_dict(), policy.state_dict()
        for key in fast:
            slow[key] = fast[key] * TAU + slow[key] * (1 - TAU)
        target.load_state_dict(slow)
