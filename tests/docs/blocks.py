"""The fenced blocks of the documents, and their purposes.

    ```sh                  commands: run one after another in the document's shell; each must succeed
    ```sh in: COMMAND      the same, as the input of COMMAND
    ```sh not here: WHY    commands that no test can run, and why
    ```console             `$ command` lines with their output: run, and compared with it
    ```console where: COMMAND   the same, where this command succeeds
    ```console on a terminal    what a person sees who types what follows a `$ `, whoever waits there, and the keys `^C` and `^]`
    ```python              Python: run by itself
    ```python not here: WHY
    ```text, ```ini, ...   no commands

A block without a word behind its fence is not a command either. A comment `<!-- test: NAME=VALUE ... -->` names the things that a document's
commands find there (run.py)."""

import dataclasses
import re

RUN = ("sh", "console", "python")
COMMAND = re.compile(
    r"(\$ |sudo |carma(d|-vnode|-train) -|carma-vnode [a-z]|script/|bench/|apt |apt-get |systemctl |pip |python3 -m |"
    r"carma (submit|queue|show|explain|cancel|hold|release|logs|wait|gpus|monitor|stats|history|top|dashboard|doctor|play|"
    r"compare|simulate|estimate|calibrate|evaluate|trace|bench|admin|help) )")


@dataclasses.dataclass
class Block:
    language: str
    why_not: str  # "": it is run
    inside: str  # the command that takes it as its input; "": the document's shell
    where: str  # the command that says whether it is run; "": it is
    terminal: bool
    line: int  # of its first line, in the document
    text: str


def settings(text):
    found = re.search(r"<!-- test:([^>]*)-->", text)
    return dict(word.partition("=")[::2] for word in found.group(1).split()) if found else {}


def read(text):
    """The blocks, in order. ValueError: a fence without a kind, or a block of another kind."""
    blocks, fence = [], None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"^\s*(```+)(.*)$", line)
        if mark and fence is None:
            language, _, rest = mark.group(2).strip().partition(" ")
            said = re.fullmatch(r"(?:not here: (?P<why_not>.+)|in: (?P<inside>.+)|where: (?P<where>.+)|(?P<terminal>on a terminal))?", rest)
            if not said:
                raise ValueError(f"line {number}: '{rest}' is none of 'not here: WHY', 'in: COMMAND', 'where: COMMAND', 'on a terminal'")
            fence = mark.group(1)
            blocks.append(Block(language, said["why_not"] or "", said["inside"] or "", said["where"] or "", bool(said["terminal"]),
                                number + 1, ""))
        elif mark and mark.group(1) == fence and not mark.group(2).strip():
            fence = None
        elif fence:
            blocks[-1].text += line + "\n"
    if fence:
        raise ValueError("the last fence is not closed")
    for block in blocks:
        for offset, line in enumerate(block.text.splitlines()):
            if block.language not in RUN and COMMAND.match(line):
                raise ValueError(f"line {block.line + offset}: a command that no test runs: say sh, console, or why not: {line}")
    return blocks


def steps(block):
    """(command, expected lines) of a console block."""
    found = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and not found[-1][1] and (found[-1][0].endswith("\\") or line.startswith("> ")):
            found[-1] = (found[-1][0] + "\n" + line.removeprefix("> "), [])
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"line {block.line}: begins with no command ('$ ...')")
    return found
