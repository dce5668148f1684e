"""Kills carmad, the agent and slurmd at random moments on bench/slurm's clusters."""

import collections
import random
import threading

import slurm_labs

BETWEEN_S, AWAY_S = (1, 6), (0, 3)  # of wall time, drawn evenly


class Killer:
    """While in its block: one daemon of one node at a time is killed, and started again a little later."""

    def __init__(self, cluster, seed):
        self.cluster, self.draw, self.kills = cluster, random.Random(seed), collections.Counter()
        self.starts = {"carmad": cluster.start_carmad, "agent": cluster.start_agent, "slurmd": cluster.start_slurmd}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.go)

    def go(self):
        while not self.over.wait(self.draw.uniform(*BETWEEN_S)):
            daemon, node = self.draw.choice(list(self.starts)), self.draw.choice(slurm_labs.lab.NODES)
            self.cluster.kill(f"{daemon}-{node}")
            self.kills[daemon] += 1
            self.over.wait(self.draw.uniform(*AWAY_S))
            self.starts[daemon](node)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
