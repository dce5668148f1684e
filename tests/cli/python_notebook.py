"""Usage: python_notebook.py: functions that are written in the cells of a notebook, run as jobs of a virtual node's daemon.
Prints ok. IPython runs the cells as a notebook's kernel does: __main__ has no file."""

import os
import sys
import tempfile

os.environ["IPYTHONDIR"] = tempfile.mkdtemp(dir=".")

from IPython.core.interactiveshell import InteractiveShell  # noqa: E402

shell = InteractiveShell.instance()
sys.modules["__main__"] = shell.user_module


def cell(text):
    result = shell.run_cell(text)
    result.raise_error()
    return result.result


def refused(text, why):
    result = shell.run_cell(f"try:\n    {text}\nexcept carma.Invalid as error:\n    said = str(error)\nelse:\n    said = None\nsaid")
    assert why in (result.result or ""), (text, result.result)


cell("""
import dataclasses
import functools
import json as notation
import os.path
from typing import Optional
import carma
RATE = 0.5
TABLE = {1: "one"}
model = open(os.devnull)  # a name that the functions below have for themselves
class Config:
    steps = 3
@dataclasses.dataclass
class Point(Config):
    x: float
    note: Optional[str] = None
    def scaled(self, by):
        return Point(self.x * by, notation.dumps(TABLE[1]))
LAST = Point(7.0)
""")
cell("""
def doubled(function):
    @functools.wraps(function)
    def call(*args):
        return 2 * function(*args)
    return call
@doubled
def even(n):
    return n
def helper(point, by=RATE):
    model = [value for value in (point.scaled(by),)]
    return model[0]
@carma.job(gpus=1)
def train(point: Point, times: int = 1):
    assert __name__ != "__main__"
    return [helper(point)] * times, even(2), LAST, os.path.basename("a/b"), Config.steps
""")
job = cell('job = train.submit(Point(3.0), times=2)\njob')
assert job._repr_html_().startswith("<table>")
points, number, last, name, steps = cell("job.result()")
assert [type(point).__name__ for point in points] == ["Point", "Point"], points
assert type(points[0]) is shell.user_ns["Point"], "a class of the notebook is not its own when it comes back"
assert (points[0].x, points[0].note, number, last.x, name, steps) == (1.5, '"one"', 4, 7.0, "b", 3)

# A cell that is run again counts.
cell("def helper(point, by=RATE):\n    return 'anew'")
assert cell("train.submit(Point(3.0)).result()")[0] == ["anew"]

# A value that cannot go along is refused by its name.
cell("@carma.job\ndef uses_file():\n    return model.name")
refused("uses_file.submit()", "'model' cannot go along")
cell("def outer():\n    @carma.job\n    def inner(): pass\n    return inner")
refused("outer().submit()", "can only find names at the top")
cell("@carma.job\ndef uses_magic():\n    %time pass")
refused("uses_magic.submit()", "uses a magic of IPython")
cell("big = bytes(70 << 20)\n@carma.job\ndef uses_big():\n    return len(big)")
refused("uses_big.submit()", "'big', which takes 70 MiB")
cell("short = lambda: 0\n@carma.job\ndef uses_lambda():\n    return short()")
refused("uses_lambda.submit()", "source of short is not to be found")
print("ok")
