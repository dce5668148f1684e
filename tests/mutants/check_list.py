"""Usage: check_list.py TREE BUILD: every mutant can be planted, its tests are tests of the build (of one without
sanitizers, which has all), and the files that decide have one each.

The faults themselves are planted once, after all tests; this reports a moved line or test at once."""

import json
import pathlib
import sys

import run

# Where a lost rule costs a job or its record.
NEEDED = ["src/core/**/*.c", "src/store/**/*.c", "src/launch/**/*.c", "src/**/engine.c", "src/**/record.c"]


def info(build, what):
    return json.loads((build / "meson-info" / f"intro-{what}.json").read_text(encoding="utf-8"))


def check(tree, build):
    tests = {test["name"] for test in info(build, "tests")}
    options = {option["name"]: option["value"] for option in info(build, "buildoptions")}
    mutants = run.read_list(tree / "tests" / "mutants" / "list")
    with_mutants = {mutant["file"] for mutant in mutants}
    for path in sorted(str(path.relative_to(tree)) for pattern in NEEDED for path in tree.glob(pattern)):
        if path not in with_mutants:
            yield f"{path}: has no fault"
    for mutant in mutants:
        try:
            run.plant(mutant, (tree / mutant["file"]).read_text(encoding="utf-8"))
        except (OSError, run.Unusable) as reason:
            yield f"{mutant['name']}: {reason}"
        for name in mutant["tests"]:
            if name not in tests and options["b_sanitize"] == "none":
                yield f"{mutant['name']}: there is no test '{name}'"


def main(tree, build):
    faults = list(check(pathlib.Path(tree), pathlib.Path(build)))
    for fault in faults:
        print(f"tests/mutants/list: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
