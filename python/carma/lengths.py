"""Batches differ in length where each is as long as its longest sample. Then the step that is recorded last is as long as the data
loader's longest batch, which the first steps hardly meet: once two of its batches differ, it is asked for more, in a
pass of its own."""

import collections.abc
import contextlib
import signal
import threading
import time

import torch
from torch.utils import data

LOOKED = 256  # batches
SECONDS = 3  # of the clock: who reads slowly shows fewer
KEPT = 64  # batches whose shapes are remembered


def _shapes(value, found):
    """Of the tensors in a batch, in order."""
    if isinstance(value, torch.Tensor):
        found.append(tuple(value.shape))
    elif isinstance(value, collections.abc.Mapping):
        for item in value.values():
            _shapes(item, found)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _shapes(item, found)
    return found


def _one_that_differs(shapes):
    """The dimension in which they differ, and no other; None: there is none, or several."""
    if len({len(shape) for shape in shapes}) != 1:
        return None
    differ = [at for at, sizes in enumerate(zip(*shapes)) if len(set(sizes)) > 1]
    return differ[0] if len(differ) == 1 else None


@contextlib.contextmanager
def _at_most(seconds):
    """A loader that blocks is interrupted, in a process's first thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Lengths:
    """Of the batches of the loader that was asked last."""

    def __init__(self):
        self.loader, self.given = None, []
        self.count = 0  # batches that were looked at
        self.begin, self.give = data.DataLoader.__iter__, data.dataloader._BaseDataLoaderIter.__next__

    def watch(self, stack, put):
        """put(stack, owner, name, value) sets an attribute until the stack is left."""

        def iterate(loader):
            iterator = self.begin(loader)
            iterator.carma_loader = loader
            return iterator

        def give_batch(iterator):
            batch = self.give(iterator)
            loader = getattr(iterator, "carma_loader", None)
            if loader is not None:
                if loader is not self.loader:
                    self.loader, self.given = loader, []
                self.given = [*self.given[1 - KEPT :], _shapes(batch, [])]
            return batch

        put(stack, data.DataLoader, "__iter__", iterate)
        put(stack, data.dataloader._BaseDataLoaderIter, "__next__", give_batch)

    def _longest(self, places):
        """{place in a batch: its length in the longest}, of a pass of our own, without what a library does with batches."""
        longest, end = dict.fromkeys(places, 0), time.monotonic() + SECONDS
        with contextlib.suppress(Exception), _at_most(SECONDS):
            iterator = self.begin(self.loader)
            while self.count < LOOKED and time.monotonic() < end:
                shapes = _shapes(self.give(iterator), [])
                self.count += 1
                for place, dimension in places.items():
                    if place < len(shapes) and dimension < len(shapes[place]):
                        longest[place] = max(longest[place], shapes[place][dimension])
        return longest

    def of(self, moved):
        """{index among the tensors of a step: (dimension, length)} of those that are longer in another batch. moved: the
        shapes of a step's."""
        columns = zip(*self.given) if len({*map(len, self.given)}) == 1 else ()
        places = {place: _one_that_differs(shapes) for place, shapes in enumerate(columns)}
        places = {place: dimension for place, dimension in places.items() if dimension is not None}
        are = {index: [place for place in places if any(shapes[place] == shape for shapes in self.given)]
               for index, shape in enumerate(moved)}  # fmt: skip
        if not any(are.values()):
            return {}
        longest, found = self._longest(places), {}
        for index, candidates in are.items():
            longer = [(longest[place], places[place]) for place in candidates if longest[place] > moved[index][places[place]]]
            if longer:
                length, dimension = max(longer)
                found[index] = (dimension, length)
        return found
