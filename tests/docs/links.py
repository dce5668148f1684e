"""Usage: links.py DOCUMENT...: the links of the documents lead to a file that is there, and to a heading in it."""

import pathlib
import re
import sys


def prose(path):
    """The document's text without its blocks of code."""
    return re.sub(r"^(```+).*?^\1$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(path):
    """The names of the document's headings in links."""
    headings = re.findall(r"^#+ +(.*)$", prose(path), re.MULTILINE)
    texts = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings)
    return {re.sub(r"[^\w -]", "", text).replace(" ", "-") for text in texts}


def broken_links(path):
    """One line for each link that leads nowhere."""
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        document = path.parent / target if target else path
        if not document.exists():
            yield f"{path}: links to {target}, which is not there"
        elif anchor and document.suffix == ".md" and anchor not in anchors(document):
            yield f"{path}: links to {target}#{anchor}, and there is no such heading"


def main(paths):
    complaints = [line for path in paths for line in broken_links(pathlib.Path(path))]
    print("\n".join(complaints), file=sys.stderr, end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
