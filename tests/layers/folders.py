"""Usage: folders.py SRC ARCHITECTURE: fails when a folder under SRC holds too many code files, or when the layout table of the
page ARCHITECTURE does not name SRC's folders, all of them and no others, with their levels.

A row of the table is `| level | ``folder`` | meaning |`; an empty first cell is the one above."""

import pathlib
import re
import sys

import includes

MOST_FILES = 40
ROW = re.compile(r"^\|([^|]*)\| `([a-z_/]+)` \|")


def folders(src):
    return {str(path.relative_to(src)): count for path in src.rglob("*")
            if path.is_dir() and (count := sum(1 for file in path.iterdir() if file.suffix in (".c", ".h")))}


def rows(page):
    level = None
    for line in page.read_text(encoding="utf-8").splitlines():
        match = ROW.match(line)
        if not match:
            continue
        if match[1].strip():
            level = int(match[1].split()[0])
        yield match[2], level


def complaints(src, page):
    held, named = folders(src), dict(rows(page))
    for folder, count in sorted(held.items()):
        if folder not in named:
            yield f"{page.name}: the layout table has no row for src/{folder}"
        if count > MOST_FILES:
            yield f"src/{folder} holds {count} code files, {MOST_FILES} at most: give each question a folder of its own"
    for folder, level in named.items():
        if folder not in held:
            yield f"{page.name}: src/{folder}, which the layout table names, has no code file"
        elif includes.LEVEL_OF.get(folder.split("/")[0]) != level:
            yield f"{page.name}: src/{folder} is not on level {level} in tests/layers/includes.py"


def main(src, page):
    found = list(complaints(pathlib.Path(src), pathlib.Path(page)))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
