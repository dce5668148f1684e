"""Usage: published.py CARMA SOURCE
bench/published on the program CARMA: its accuracy by source is no worse than it was."""

import os
import pathlib
import subprocess
import sys
import tempfile

# By source: points that are compared (at least), and the most of: median error, signed median either way (both in percent),
# largest measurement by the 98% quantile, mean of the quantile by the median. docs/estimation.md has the figures.
BOUNDS = {"thesis": (30, 1.2, 0.5, 0.92, 1.15)}


def part(lines, title):
    """The rows below a table's title and columns, by their first cell."""
    start = lines.index(title) + 2
    rows = (line.split() for line in lines[start:lines.index("", start)])
    return {row[0]: [abs(float(cell.rstrip("%"))) for cell in row[1:]] for row in rows}


def main():
    carma, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as build:
        os.mkdir(f"{build}/bin")
        os.symlink(carma, f"{build}/bin/carma")
        printed = subprocess.run([sys.executable, source / "bench" / "published", build], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout  # fmt: skip
    found = part(printed.splitlines(), "by source")
    for name, (points, *bounds) in BOUNDS.items():
        assert found[name][0] >= points, f"{name}: {found[name][0]:.0f} of {points} points are estimated and compared"
        assert all(value <= bound for value, bound in zip(found[name][1:], bounds)), f"{name}: {found[name][1:]} > {bounds}"


main()
