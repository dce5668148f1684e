"""Usage: count.py RESULT MESON_TREE...: adds up the test logs of the trees and one more RESULT (passed, failed, skipped).

Prints `N passed, N failed, N skipped`. Exits 1 when something failed, or when a tree has run no tests at all: a run that
broke before its first test must not look like a good one."""

import json
import pathlib
import sys

KINDS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def results(tree):
    log = pathlib.Path(tree, "meson-logs", "testlog.json")
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def main(extra, trees):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    counts[extra] += 1
    for tree in trees:
        tests = results(tree)
        if not tests:
            print(f"{tree}: no test has run")
            counts["failed"] += 1
        for test in tests:
            kind = KINDS.get(test["result"], "failed")
            counts[kind] += 1
            if kind != "passed":
                print(f"{kind}: {test['name']} ({test['result']})")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
