"""Usage: count.py RESULT MESON_TREE...: adds up the test logs of the trees and one more RESULT (passed, failed, skipped).
       count.py --failed MESON_TREE: prints the names of the tests that failed

Prints `N passed, N failed, N skipped`. Exits 1 when something failed, or when a tree has run no tests at all: a run that
broke before its first test must not look like a good one. A test that failed and was run again (log `again`) counts as
the second run says; those that passed only then are named."""

import json
import pathlib
import sys

KINDS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}
MOST_AGAIN = 10  # if more failed than that, it was not by chance


def results(tree, log):
    """The kind of each test of the log, by its name; {} where the log is missing."""
    # Meson adds the name of the test setup to that of the log.
    paths = pathlib.Path(tree, "meson-logs").glob(f"{log}*.json")
    tests = [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return {test["name"]: KINDS.get(test["result"], "failed") for test in tests}


def failed(tree):
    names = [name.rpartition(" / ")[2] for name, kind in results(tree, "testlog").items() if kind == "failed"]
    return names if len(names) <= MOST_AGAIN else []


def main(extra, trees):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    counts[extra] += 1
    for tree in trees:
        first, again = results(tree, "testlog"), results(tree, "again")
        if not first:
            print(f"{tree}: no test has run")
            counts["failed"] += 1
        for name, kind in {**first, **again}.items():
            counts[kind] += 1
            if kind != first[name]:
                print(f"{kind} only when run again, alone: {name} ({tree})")
            elif kind != "passed":
                print(f"{kind}: {name} ({tree})")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    if sys.argv[1] == "--failed":
        print(" ".join(failed(sys.argv[2])))
    else:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
