"""Usage: job_fields.py CARMA STORE: every field of a job can be said in every way, is stored and shown (test_job_fields.sh)."""

import collections
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys

import carma
from carma.fields import FIELDS

CARMA, STORE = sys.argv[1:]
KINDS = {"text": "said", "path": "said-%j", "file": "net.txt", "switch": True, "count": 2, "number": 2, "rank": -2, "size": "2G",
         "factor": 1.5, "time": "2h", "signal": "USR2@90"}  # fmt: skip
OF_FIELD = {"chdir": "runs", "share": "time-slice", "visible_devices": "index", "optimizer": "sgd", "precision": "amp", "method": "lora", "dependency": "singleton", "array": "3", "begin": "tomorrow", "deadline": "now+9days", "account": "thesis", "tag": "a,b", "notify": "end,oom", "gpu_type": "a100|h200", "exclude_gpu": "0"}  # words, and existing names
COMMAND = ["sleep", "1000"]
PLAIN = {"hold": True, "gpu_memory": "1G", "time": "3h"}  # it stays where it is; others need a time limit


def ask(*words):
    return subprocess.run([CARMA, *words], check=True, capture_output=True, text=True).stdout


def words_of(said):
    named = {"--" + name.replace("_", "-"): value for name, value in said.items()}
    return [option if value is True else f"{option}={value}" for option, value in named.items() if value is not False]


def by_options(said):
    return int(ask("submit", "--parsable", *words_of(said), "--", *COMMAND))


def by_script(said):
    pathlib.Path("job.sh").write_text("".join(f"{line}\n" for line in ("#!/bin/sh", *(f"#CARMA {word}" for word in words_of(said)))))
    return int(ask("submit", "--parsable", "job.sh"))


def by_job_file(said):
    keys = "".join(f"{name}: {'yes' if value is True else value}\n" for name, value in said.items())
    pathlib.Path("job.rad").write_text(f"sleep 1000\n{keys}")
    return int(ask("submit", "--parsable", "job.rad"))


def by_python(said):
    return carma.submit(COMMAND, **said).id


def stored(job):
    with sqlite3.connect(f"file:{STORE}?mode=ro", uri=True) as store:
        text = store.execute("select body from spec where job = ?", (job,)).fetchone()[0]
    return collections.defaultdict(lambda: None, json.loads(text))  # what is not said is not there


def shown(job):
    """Without the members that differ between any two jobs."""
    return re.sub(rf"\b{job}\b", "ID", re.sub(r"(?m)^Submitted.*\n", "", ask("show", str(job))))


def check_ways(samples):
    """All at once, in each way; nothing is lost, and all ways mean the same."""
    plain = stored(by_options(PLAIN))
    first = None
    for way in (by_options, by_script, by_job_file, by_python):
        said = stored(way(samples))
        first = first or said
        for name, member, _ in FIELDS:
            assert said[member] == first[member], f"{way.__name__}: {name} is {said[member]!r}, not {first[member]!r}"
            assert said[member] != plain[member] or PLAIN.get(name) == samples[name], f"{way.__name__}: {name} is lost"


def check_shown(samples):
    plain = by_options(PLAIN)
    for name, _, _ in FIELDS:
        other = PLAIN | {name: False if name == "hold" else samples[name]}
        assert shown(by_options(other)) != shown(plain), f"carma show does not tell --{name}"


def check_told():
    """By the help, the manual page and the completion."""
    texts = {"help": ask("submit", "--help"), "manual": ask("help", "--man", "submit").replace("\\", ""),
             "completion": ask("help", "--complete", "--", "submit", "-")}  # fmt: skip
    for name, _, _ in FIELDS:
        for where, text in texts.items():
            assert "--" + name.replace("_", "-") in text, f"the {where} does not tell --{name}"


def main():
    os.mkdir("runs")
    pathlib.Path("net.txt").write_text("no summary: the declared request counts\n")
    samples = {name: OF_FIELD.get(name, KINDS.get(kind)) for name, _, kind in FIELDS}
    missing = [name for name, value in samples.items() if value is None]
    assert not missing, f"{missing}: add a word that each takes to OF_FIELD"
    check_ways(samples)
    check_shown(samples)
    check_told()
    print(f"{len(FIELDS)} fields")


main()
