"""The tables of other programs' words beside carma's (docs/coming-from.md): all words of those programs have a row, and
what a row says of carma is tried.

    <!-- rows: NAME...; TEMPLATE -->

stands above such a table. Its first column has words of these programs, which tests/docs/foreign lists; behind spans that are names of
commands there, they are those commands'. In its second column a span `-x` is tried as TEMPLATE with it in place of *,
`carma ...` as it stands, and `NAME` is a variable that the job of TEMPLATE has. ID is the number of a job that is
made for the command: one that waits, or as MADE says."""

import getpass
import pathlib
import re

DOCUMENT = "docs/coming-from.md"
LIST = pathlib.Path(__file__).with_name("foreign")
ENDLESS = re.compile(r"--watch|carma (dashboard|top|shell|attach|logs -f)")  # until a key ends them, on a terminal: other tests'
HELD = "printf '#!/bin/sh\\ntrue\\n' | carma submit --parsable -H --gpu-memory 1G -J train -A thesis --tag paper -"
RUNS = """carma queue --json -s {} --name runs | sed -n 's/^ *"id": \\([0-9]*\\),/\\1/p' | grep . || {{
    carma submit --parsable -G 0 -J runs --signal USR1@60 -t 1-0 -- sh -c 'trap : USR1; while :; do sleep 0.1; done'
    carma wait --until state=RUNNING @; }}"""
ENDS = "carma submit --parsable -G 0 -A thesis -- sleep 0.2"
MADE = {
    "requeue": RUNS.format("R"), "signal": RUNS.format("R"), "suspend": RUNS.format("R"), "resume": RUNS.format("SUSPENDED"),
    "wait --until": RUNS.format("R"), "wait": ENDS, "logs": f"{ENDS}; carma wait @",
}  # fmt: skip


def spans(cell):
    return [span.replace("\\|", "|") for span in re.findall(r"`([^`]+)`", cell)]


def rows(text):
    """(line, names, template, first cell, second cell) of each row."""
    for mark in re.finditer(r"^<!-- rows: ([^;\n]*); *(.*?) *-->\n((?:\|.*\n)+)", text, re.MULTILINE):
        line = text.count("\n", 0, mark.start()) + 2
        for number, row in enumerate(mark.group(3).splitlines()):
            cells = re.split(r"(?<!\\)\|", row)[1:-1]
            if number > 1:
                yield line + number, mark.group(1).split(), mark.group(2), cells[0], cells[1]


def missing(source):
    """Complaints: words without a row, and rows of words that the programs do not have."""
    listed = {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        names, _, words = line.partition(":")
        if not line.startswith("#"):
            listed.update((name, set(words.split())) for name in names.split(", "))
    said = {name: set() for name in listed}
    named = set()
    for line, names, _, first, second in rows(pathlib.Path(source, DOCUMENT).read_text(encoding="utf-8")):
        subjects, commands = names, False
        for word in spans(first):
            if word in listed:
                subjects = [*subjects, word] if commands else [word]
                named.add(word)
            commands = word in listed
            owners = [name for name in subjects if word in listed.get(name, ())]
            for name in owners:
                said[name].add(word)
            if word not in listed and not owners:
                yield f"{DOCUMENT}: line {line}: '{word}' is not a word of {' or '.join(subjects)} in {LIST}"
        named.update(names)
        if not second.strip():
            yield f"{DOCUMENT}: line {line}: a row without carma's word"
    for name, words in listed.items():
        for word in sorted(words - said[name]) + ([name] if name not in named else []):
            yield f"{DOCUMENT}: {name}: no row has '{word}'"


def tried(text, shell):
    """Complaints: what does not work as a row says."""
    variables = {}
    for line, _, template, _, second in rows(text):
        for span in spans(second):
            command = template.replace("*", span) if span.startswith("-") else span
            if re.fullmatch(r"[A-Z][A-Z0-9_]+", span) and "env" in template:
                if template not in variables:
                    variables[template] = shell.run(template)[1]
                if not re.search(rf"^{span}=", variables[template], re.MULTILINE):
                    yield f"line {line}: a job has no variable {span}"
            elif re.match(r"(env .*)?carma (?!(run|submit)$)", command) and not ENDLESS.search(command):
                verb = command.partition("carma ")[2]
                made = next((made for begin, made in MADE.items() if verb.startswith(begin)), HELD)
                ready = re.sub(r"\bID\b", lambda _, made=made: (shell.run(made)[1].split() or ["none"])[0], command)
                if re.search(" -A | --tag |@", ready):  # finds one by itself
                    shell.run(made)
                status, said = shell.run("timeout 20 " + re.sub(r"\bada\b", getpass.getuser(), ready))
                if status != 0:
                    yield f"line {line}: {ready}: exit status {status}: {said[-400:]}"
                shell.run("carma cancel -y --me -s waiting")
