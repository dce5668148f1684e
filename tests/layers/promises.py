"""Usage: promises.py SOURCE BUILD: each test that docs/threat-model.md names is there."""

import json
import pathlib
import re
import sys

# Tables of rules end with a column of tests.
TESTS = re.compile(r"^\|.*\| ((?:`[a-z0-9_-]+` ?)+)\|$")
LEAST = 20  # rules, so that a page that is written otherwise does not pass unread


def main():
    source, build = map(pathlib.Path, sys.argv[1:])
    page = source / "docs" / "threat-model.md"
    tests = {test["name"] for test in json.loads((build / "meson-info" / "intro-tests.json").read_text(encoding="utf-8"))}
    wrong, rules, in_table = [], 0, False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if re.match(r"^\|.*\| test \|$", line):
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not line.startswith("|--"):
            rules += 1
            found = TESTS.match(line)
            names = re.findall(r"`([^`]+)`", found.group(1)) if found else []
            wrong += [f"{page}:{number}: no test is named"] * (not names)
            wrong += [f"{page}:{number}: there is no test '{name}'" for name in names if name not in tests]
    if rules < LEAST:
        wrong.append(f"{page}: only {rules} rules with tests were found")
    print("\n".join(wrong) or f"{rules} promises, each with its tests")
    return bool(wrong)


sys.exit(main())
