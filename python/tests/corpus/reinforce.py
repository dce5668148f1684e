"""A policy that balances a pole of our own making: an action is sampled for each step, episodes differ in length."""

import math
from collections import deque

import torch
from torch import nn, optim
from torch.distributions import Categorical

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(543)


class Pole:
    """A cart and a pole with the usual small-angle dynamics."""

    def reset(self):
        self.state = [0.0, 0.0, 0.02, 0.0]
        return self.state

    def step(self, action):
        x, v, angle, spin = self.state
        push = 10.0 if action == 1 else -10.0
        pull = 9.8 * math.sin(angle) - math.cos(angle) * push / 1.1
        spin += 0.02 * pull / 0.6
        self.state = [x + 0.02 * v, v + 0.02 * push / 1.1, angle + 0.02 * spin, spin]
        return self.state, 1.0, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1, self.dropout, self.affine2 = nn.Linear(4, 128), nn.Dropout(0.6), nn.Linear(128, 2)
        self.saved, self.rewards = [], []

    def forward(self, x):
        return torch.softmax(self.affine2(torch.relu(self.dropout(self.affine1(x)))), dim=1)


policy = Policy().to(device)
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
env, running = Pole(), 10.0
for episode in range(1000):
    state, total = env.reset(), 0
    for _ in range(1, 1000):
        distribution = Categorical(policy(torch.tensor(state).float().unsqueeze(0).to(device)))
        action = distribution.sample()
        policy.saved.append(distribution.log_prob(action))
        state, reward, done = env.step(action.item())
        policy.rewards.append(reward)
        total += reward
        if done:
            break
    running = 0.05 * total + 0.95 * running
    discounted, returns = 0.0, deque()
    for reward in reversed(policy.rewards):
        discounted = reward + 0.99 * discounted
        returns.appendleft(discounted)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = torch.cat([-log * value for log, value in zip(policy.saved, returns)]).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    policy.saved.clear()
    policy.rewards.clear()
    if running > 475:
        print(f"solved after {episode}")
        break
