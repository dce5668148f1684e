"""The list of mutants: read, planted, and those that a change must answer for."""

import hashlib
import subprocess

KEYS = ["file", "old", "new", "tests"]
COMMITS = 10  # a change where nothing else says where it begins


class Unusable(Exception):
    """A mutant, or the tree, that cannot be judged."""


def read_list(text, where="tests/mutants/list"):
    """Blocks of `name:`, `file:`, `old:`, `new:`, `tests:` lines, and perhaps `hangs: yes`, separated by empty lines;
    # starts a comment line."""
    mutants = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, colon, value = line.partition(":")
        value = value.strip()
        if key == "name":
            mutants.append({"name": value})
        elif mutants and (key, value) == ("hangs", "yes"):
            mutants[-1]["hangs"] = True
        elif not colon or not mutants or key not in KEYS or key in mutants[-1]:
            raise Unusable(f"{where}:{number}: unexpected line '{line}'")
        else:
            mutants[-1][key] = value
    for mutant in mutants:
        missing = [key for key in KEYS if key not in mutant]
        if missing:
            raise Unusable(f"{where}: {mutant['name']}: no {missing[0]}")
        mutant["tests"] = mutant["tests"].split()
    names = [mutant["name"] for mutant in mutants]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise Unusable(f"{where}: {min(twice)} is there twice")
    return mutants


def plant(mutant, text):
    """The text of the mutant's file with the fault in it."""
    count = text.count(mutant["old"])
    if count != 1:
        raise Unusable(f"its old text is in {mutant['file']} {count} times")
    if mutant["new"] == mutant["old"]:
        raise Unusable("its new text is its old text")
    return text.replace(mutant["old"], mutant["new"])


def number_of(mutant):
    """The same for a name everywhere and always: it draws shards, and orders what is too much for one landing."""
    return int.from_bytes(hashlib.sha256(mutant["name"].encode()).digest()[:8], "big")


def shard(mutants, part, parts):
    """The mutants of a part, 1 to `parts`."""
    return [mutant for mutant in mutants if number_of(mutant) % parts == part - 1]


def git(tree, *args):
    """What git prints; '' where it fails."""
    done = subprocess.run(["git", *args], cwd=tree, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def base_of(tree):
    """The commit that the change of this tree begins at: where it left origin/main, if that differs. Else the last
    release or the tenth last commit, the older of them; at most as old as the history is."""
    head = git(tree, "rev-parse", "HEAD")
    left = git(tree, "merge-base", "HEAD", "origin/main")
    if left and left != head:
        return left
    history = git(tree, "rev-list", "--first-parent", "HEAD").split()
    release = git(tree, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    at_release = git(tree, "rev-list", "--first-parent", f"{release}..HEAD").split() if release else []
    return history[min(max(COMMITS, len(at_release)), len(history) - 1)]


def touched_files(tree, base):
    """The files that differ from the base, as they are now."""
    return set(git(tree, "diff", "--name-only", base).splitlines() +
               git(tree, "ls-files", "--others", "--exclude-standard").splitlines())


def touched(mutants, tree, base, files_of_tests):
    """The mutants that the change since `base` must answer for: those of its files, of the tests that it touches, and
    those that the base's list has not, or has otherwise."""
    files = touched_files(tree, base)
    tests = {name for name, own in files_of_tests.items() if files.intersection(own)}
    before = at_base(tree, base)
    return [mutant for mutant in mutants
            if mutant["file"] in files or tests.intersection(mutant["tests"]) or before.get(mutant["name"]) != mutant]


def at_base(tree, base):
    """The base's mutants by their names."""
    try:
        return {mutant["name"]: mutant for mutant in read_list(git(tree, "show", f"{base}:tests/mutants/list"))}
    except Unusable:
        return {}
