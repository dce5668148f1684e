"""Usage: check.py SOURCE DOCUMENT...: checks the blocks of all documents of the tree, and that the documents
named, which are those that tests run, are all that have something to run. The tables of coming-from.md are whole."""

import pathlib
import sys

import blocks
import tables

LEFT_OUT = ("build", ".git")


def main(source, listed):
    complaints, runnable = list(tables.missing(source)), set()
    for path in sorted(pathlib.Path(source).rglob("*.md")):
        name = path.relative_to(source)
        if name.parts[0].startswith(LEFT_OUT) or "node_modules" in name.parts:
            continue
        text = path.read_text(encoding="utf-8")
        try:
            found = blocks.read(text)
            for block in found:
                if block.language == "console" and not block.why_not:
                    blocks.steps(block)
        except ValueError as problem:
            complaints.append(f"{name}: {problem}")
            continue
        by = blocks.settings(text).get("by")
        if by:
            if path.name not in pathlib.Path(source, by).read_text(encoding="utf-8"):
                complaints.append(f"{name}: {by}, which is to run it, does not")
        elif any(block.language in blocks.RUN and not block.why_not for block in found):
            runnable.add(str(name))
    for name in sorted(runnable - set(listed)):
        complaints.append(f"{name}: has commands, and tests/docs/meson.build does not run them")
    for name in sorted(set(listed) - runnable):
        complaints.append(f"{name}: tests/docs/meson.build runs it, and it has no commands")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
