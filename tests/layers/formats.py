"""Usage: formats.py ROOT: fails when a page of ROOT/docs/formats names a file of the repository that is not there.

The pages name the golden file of each format; a page with a missing golden file promises something unchecked."""

import pathlib
import re
import sys

PATH = re.compile(r"\b((?:tests|src|data)/[\w.+/-]*\w)")


def main(root):
    pages = sorted(pathlib.Path(root, "docs", "formats").glob("*.md"))
    failed = not pages
    if not pages:
        print(f"{root}/docs/formats: no page here: the check has looked at nothing")
    for page in pages:
        for name in sorted(set(PATH.findall(page.read_text(encoding="utf-8")))):
            if not pathlib.Path(root, name).exists():
                print(f"{page.name}: names {name}, which is not there")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
