"""For the tests of carma.capture: records into a folder of its own, and reads files without carma's reader."""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import carma

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZE = re.compile(r"(?:(?P<base>\d+)(?:\+(?P<slope>\d+)x)?|(?P<only>\d+)x)$")
# kind: a category's letter, "-" or "c"; size: less than none of "-", the convolution's number of "c"
Event = collections.namedtuple("Event", "kind step phase label size")


def size_at(text, batch):
    match = SIZE.match(text)
    if match["only"]:
        return int(match["only"]) * batch
    return int(match["base"]) + int(match["slope"] or 0) * batch


class File:
    """header: the lines before the tables; events; live(step, phase): bytes alive at the end of that part; peak."""

    def __init__(self, path, batch=None):
        lines = iter(path.read_text().splitlines())
        self.header = dict(self._field(next(lines)) for _ in range(11))
        self.batch = batch or int(self.header["batch"].split()[0])
        line = next(lines)
        self.doubts = ""
        if line.startswith("doubts "):
            self.doubts, line = line.split(" ", 2)[2], next(lines)
        self.allocator = ""
        if line.startswith("allocator "):
            self.allocator, line = line.split(" ", 1)[1], next(lines)
        self.labels = [""] + [next(lines) for _ in range(self._count(line, "labels"))]
        self.convs = [next(lines).split() for _ in range(self._count(next(lines), "convs"))]
        count, tensors = map(int, next(lines).split()[1:])
        self.events, self._live, self.peak = [], {}, 0
        step = phase = None
        label, sizes, live = "", [], 0
        for line in lines:
            if line == "end":
                break
            if line.startswith("step "):
                _, step, phase = line.split()
                continue
            for word in line.split():
                kind, rest = word[0], word[1:]
                if kind == "@":
                    label = self.labels[int(rest)]
                    continue
                size = 0
                if kind == "-":
                    size = -sizes[int(rest)]
                    live += size
                    sizes[int(rest)] = None  # again would fail
                elif kind != "c":
                    size = size_at(rest, self.batch)
                    sizes.append(size)
                    live += size
                self.peak = max(self.peak, live)
                self.events.append(Event(kind, int(step), phase, label, size if kind != "c" else int(rest)))
                self._live[int(step), phase] = live
        assert (len(self.events), len(sizes)) == (count, tensors)

    @staticmethod
    def _field(line):
        word, _, value = line.partition(" ")
        return word, value

    @staticmethod
    def _count(line, word):
        name, count = line.split()
        assert name == word
        return int(count)

    def live(self, step, phase):
        return self._live[step, phase]

    def sizes(self, kind, step=None, phase=None, label=None):
        return [event.size for event in self.events
                if event.kind == kind and step in (None, event.step) and phase in (None, event.phase)
                and label in (None, event.label)]  # fmt: skip

    def total(self, *args, **kwargs):
        return sum(self.sizes(*args, **kwargs))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "model.capture"

    def record(self, model, source, loss="cross_entropy", optimizer="sgd", **options):
        self.result = carma.capture(model, source, loss, optimizer, self.path, **options)
        return self.file()

    def file(self, batch=None):
        return File(self.path, batch)

    def script(self, text, *options, arguments=()):
        path = self.folder / "train.py"
        path.write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "carma.capture", "-o", self.path, *options, path, *arguments],
            cwd=ROOT / "python", capture_output=True, text=True, check=False, timeout=100,
        )  # fmt: skip
        return done, path
