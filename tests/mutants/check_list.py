"""Usage: check_list.py TREE BUILD: every planted fault can be planted, and its tests are tests of the build.

The faults themselves are planted once, after all tests; this reports a moved line or test at once."""

import json
import pathlib
import sys

import run


def check(tree, build):
    known = (build / "meson-info" / "intro-tests.json").read_text(encoding="utf-8")
    tests = {test["name"] for test in json.loads(known)}
    for mutant in run.read_list(tree / "tests" / "mutants" / "list"):
        try:
            run.plant(mutant, (tree / mutant["file"]).read_text(encoding="utf-8"))
        except (OSError, run.Unusable) as reason:
            yield f"{mutant['name']}: {reason}"
        for name in mutant["tests"]:
            if name not in tests:
                yield f"{mutant['name']}: there is no test '{name}'"


def main(tree, build):
    faults = list(check(pathlib.Path(tree), pathlib.Path(build)))
    for fault in faults:
        print(f"tests/mutants/list: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
