"""Kills carmad at random moments on bench/slurm's clusters."""

import random
import threading

import slurm_labs

BETWEEN_S, AWAY_S = (1, 6), (0, 3)  # of wall time, drawn evenly


class Killer:
    """While in its block: one node's carmad at a time is killed, and started again a little later."""

    def __init__(self, cluster, seed):
        self.cluster, self.draw, self.kills = cluster, random.Random(seed), 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.go)

    def go(self):
        while not self.over.wait(self.draw.uniform(*BETWEEN_S)):
            node = self.draw.choice(slurm_labs.lab.NODES)
            self.cluster.kill("carmad-" + node)
            self.kills += 1
            self.over.wait(self.draw.uniform(*AWAY_S))
            self.cluster.start_carmad(node)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
