"""Batches differ in size where each is as long as its longest sample. Then the steps that are recorded last have the data
loader's largest batch, which the first steps hardly meet: once two of its batches differ, it is asked for more, in a
pass of its own, and gives the largest from then on."""

import collections.abc
import contextlib
import copy
import signal
import time
import weakref

import torch
from torch.utils import data

LOOKED = 256  # batches that a loader is asked for, at most
ENOUGH = 64  # batches: few others are larger than the largest of these
SECONDS = 3  # of the clock; a slow loader is asked for fewer batches


def _shapes(value):
    """Of the tensors in a batch."""
    if isinstance(value, torch.Tensor):
        return [tuple(value.shape)]
    if isinstance(value, collections.abc.Mapping):
        value = [*value.values()]
    return [shape for item in value for shape in _shapes(item)] if isinstance(value, (tuple, list)) else []


def _size(shapes):
    return sum(map(torch.Size.numel, map(torch.Size, shapes)))


@contextlib.contextmanager
def _at_most(seconds):
    """A loader that blocks is interrupted."""

    def ring(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    begun, (left, again) = time.monotonic(), signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # the script's own alarm
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - begun), 0.01), again)


class Lengths:
    def __init__(self):
        self.given = weakref.WeakKeyDictionary()  # loader: the shapes in each batch that it has given
        self.largest = weakref.WeakKeyDictionary()  # loader: the batch that it gives when we are giving
        self.giving = False
        self.loader, self.count = None, 0  # and batches that were looked at, of the loader that showed most
        self.is_sure = False  # its largest batch is as large as any, or nearly so
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
                self.given.setdefault(loader, []).append(_shapes(batch))
                if self.giving and loader in self.largest:
                    batch = self.largest[loader]
                    return batch if isinstance(batch, torch.Tensor) else copy.copy(batch)  # scripts take things out of a dict
            return batch

        put(stack, data.DataLoader, "__iter__", iterate)
        put(stack, data.dataloader._BaseDataLoaderIter, "__next__", give_batch)

    def _look(self, loader, largest):
        """In a pass of our own, without what a library does with batches."""
        end, count, is_sure = time.monotonic() + SECONDS, 0, False
        with contextlib.suppress(Exception, SystemExit), _at_most(SECONDS):
            iterator = self.begin(loader)
            try:
                while count < LOOKED and time.monotonic() < end:
                    batch = self.give(iterator)
                    count += 1
                    if _size(_shapes(batch)) > largest:
                        largest = _size(_shapes(batch))
                        self.largest[loader] = batch
            except StopIteration:
                is_sure = True
        if count > self.count:
            self.count, self.loader, self.is_sure = count, weakref.ref(loader), is_sure or count >= ENOUGH

    def left(self, steps):
        """Steps until the pass ends: after it, scripts evaluate and save."""
        loader = self.loader()
        given = len(self.given[loader]) if loader is not None else 0  # its truth would be its length, which not all have
        return max(self.count - given, 0) // max(given // steps, 1)

    def find(self, moved):
        """Whether a loader has a larger batch than it has given. moved: shapes of what a step copied to the device."""
        for loader, given in [*self.given.items()]:
            if len({*map(tuple, given)}) > 1 and any(shape in moved for shapes in given for shape in shapes):
                self._look(loader, max(map(_size, given)))
        return bool(self.largest)
