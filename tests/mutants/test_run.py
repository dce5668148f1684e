"""The runner of mutants, and the check of their list, on a project of one function. The one must tell a caught mutant from
all else, and what a change must answer for. The other must find the mutants that cannot be planted."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile

import check_list
import listed
import run

FILES = {
    "meson.build": "project('p', 'c')\nforeach name : ['less', 'nothing', 'slow', 'broken', 'toolless']\n"
                   "  test(name, executable(name, 'tests' / name + '.c', 'less.c'))\nendforeach\n"
                   "foreach name : ['flaky', 'late']\n  test(name, find_program('tests' / name + '.sh'),\n"
                   "  args: meson.project_source_root())\nendforeach\n",
    "less.c": "int less(int a, int b)\n{\n    return a < b;\n}\n",
    "tests/less.c": "int less(int, int);\nint main(void)\n{\n    return less(1, 2) && !less(2, 1) ? 0 : 1;\n}\n",
    "tests/nothing.c": "int main(void)\n{\n    return 0;\n}\n",
    "tests/slow.c": "#include <unistd.h>\nint main(void)\n{\n    sleep(1);\n    return 0;\n}\n",
    "tests/broken.c": "int main(void)\n{\n    return 1;\n}\n",
    "tests/toolless.c": "int main(void)\n{\n    return 77;\n}\n",
    # Passes without a mutant, fails at first with one, and then passes.
    "tests/flaky.sh": "#!/bin/sh\ncd \"$(dirname \"$0\")\"\ngrep -q 'a < b' ../less.c || ! mkdir failed 2>/dev/null\n",
    # Passes without a mutant and at first with one, and then fails.
    "tests/late.sh": "#!/bin/sh\ncd \"$(dirname \"$0\")\"\ngrep -q 'a < b' ../less.c || mkdir passed 2>/dev/null # $SOURCE/tests/less.c\n",
}
ENDLESS = {"old": "return a < b;", "new": "for (;;);"}


def mutant(name="f", file="less.c", old="a < b", new="a > b", tests="less", more=""):
    return f"name: {name}\nfile: {file}\nold: {old}\nnew: {new}\ntests: {tests}\n{more}\n"


# Each a mutant in one run: its name, its text, its fate, and the report of that.
MUTANTS = [
    ("wrong", {}, "caught", "by less"),
    ("second-test", {"tests": "nothing less"}, "caught", "by less"),
    ("beside-a-broken-test", {"tests": "broken less"}, "caught", "by less"),
    ("not-tested", {"tests": "nothing"}, "survived", "nothing passed"),  # less.c is whole again before it
    ("not-seen", {"new": "a <= b"}, "survived", "less passed"),
    ("seen-once", {"tests": "flaky"}, "survived", "flaky flaky"),
    ("seen-twice-of-thrice", {"tests": "late"}, "caught", "by late"),
    ("endless", ENDLESS, "hung", "less hung"),
    ("endless-as-it-may", {**ENDLESS, "more": "hangs: yes\n"}, "caught", "by less"),
    ("could-be-endless", {"new": "a <= b", "more": "hangs: yes\n"}, "survived", "less passed"),
    ("slow-without-it", {"tests": "slow"}, "survived", "slow passed"),
    ("not-there", {"old": "a << b"}, "unusable", "its old text is in less.c 0 times"),
    ("twice-there", {"old": "int a", "file": "tests/less.c"}, "unusable", "its old text is in tests/less.c 0 times"),
    ("no-file", {"file": "more.c"}, "unusable", "No such file"),
    ("no-fault", {"new": "a < b"}, "unusable", "its new text is its old text"),
    ("no-code", {"new": "a <"}, "unusable", "the tree does not compile"),
    ("no-test", {"tests": "more"}, "unusable", "there is no test 'more'"),
    ("no-test-passes", {"tests": "broken"}, "unusable", "without any fault, broken fails"),
    ("no-tool", {"tests": "toolless"}, "skipped", "as is toolless"),
    ("beside-a-skipped-test", {"tests": "toolless less"}, "caught", "by less"),
    ("elsewhere", {"file": "tests/nothing.c", "old": "0", "new": "1", "tests": "nothing"}, "caught", "by nothing"),
]

# Each a run of its own: its subject, the list, the exit status, and the report.
RUNS = [
    ("all caught", mutant(), 0, "1 mutants: 1 caught"),
    ("no such line", mutant() + "colour: red\n", 1, "unexpected line"),
    ("neither hangs nor not", mutant(more="hangs: no\n"), 1, "unexpected line"),
    ("incomplete", "name: f\nfile: less.c\n", 1, "f: no old"),
    ("same name", mutant() + mutant(), 1, "f is there twice"),
    ("all skipped", mutant(tests="toolless"), 0, "0 unusable, 1 skipped"),
    ("nothing planted", "# no mutant\n", 1, "0 mutants"),
]


def git(tree, *args):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *args], cwd=tree, check=True,
                   capture_output=True)


def commit(tree):
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "--allow-empty", "-m", "change")


def write_list(tree, text):
    (tree / "tests" / "mutants" / "list").write_text(text, encoding="utf-8")


def run_list(tree, text, *options):
    write_list(tree, text)
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        status = run.main(["--tree", str(tree), "--jobs", "2", *options])
    return status, output.getvalue()


def expect(what, got, status, *texts):
    for text in texts:
        if got[0] != status or text not in got[1]:
            sys.exit(f"{what}: expected status {status} and '{text}', got {got[0]} and:\n{got[1]}")


def check_fates(tree):
    listed_text = "".join(mutant(name=name, **what) for name, what, _, _ in MUTANTS)
    status, output = run_list(tree, listed_text)
    expect("all mutants", (status, output), 1, "21 mutants: 7 caught, 5 survived, 1 hung, 7 unusable, 1 skipped")
    for name, _, result, text in MUTANTS:
        line = next((line for line in output.splitlines() if line.split()[:1] == [name]), "")
        expect(name, (line.split()[1:2], output), [result], text)
    return listed_text


def check_changes(tree):
    """A change answers for its files, its tests and its entries, and not for what hung before it."""
    old = mutant("code") + mutant("hangs", **ENDLESS) + mutant("test", "tests/nothing.c", "0", "1", "slow")
    write_list(tree, old)
    commit(tree)
    git(tree, "update-ref", "refs/remotes/origin/main", "HEAD")
    if listed.base_of(tree) == listed.git(tree, "rev-parse", "HEAD"):
        sys.exit("where origin/main does not differ, the change is empty")
    commit(tree)
    base = listed.base_of(tree)
    for what, path, text, names in (
            ("nothing", None, old, []), ("a file", "less.c", old, ["code", "hangs"]), ("a test", "tests/slow.c", old, ["test"]),
            ("an entry", None, old + mutant("new"), ["new"]), ("another entry", None, old.replace("a > b", "a == b"), ["code"])):
        if path:
            (tree / path).write_text(FILES[path] + "\n", encoding="utf-8")
        own = {"less": {"tests/less.c"}, "slow": {"tests/slow.c"}}
        found = [m["name"] for m in listed.touched(listed.read_list(text), tree, base, own)]
        if found != names:
            sys.exit(f"{what} has changed: the change answers for {found}")
        git(tree, "checkout", "-q", ".")
    (tree / "less.c").write_text(FILES["less.c"] + "\n", encoding="utf-8")
    text = old + mutant("survives", new="a <= b")
    expect("a change", run_list(tree, text, "--changed"), 1, "3 mutants for the change", "1 caught, 1 survived, 1 hung",
           "hangs was broken before this change")
    expect("mended", run_list(tree, old, "--changed"), 0, "2 mutants for the change", "1 caught, 0 survived, 1 hung")


def check_copies(tree):
    """A build that was taken from another's has nothing to do with that one's folder."""
    with tempfile.TemporaryDirectory() as folder:
        copies = [pathlib.Path(folder, number) for number in "01"]
        for copy in copies:
            run.copy_working_tree(tree, copy)
        taken = run.Build(copies[1], run.Build(copies[0]))
        if f"{copies[0]}" in json.dumps(taken.tests) + (taken.dir / "build.ninja").read_text(encoding="utf-8"):
            sys.exit("a copy's tests are those of another copy")
        if (files := taken.tests["late"]["files"]) != ["tests/late.sh", "tests/less.c"]:
            sys.exit(f"the files of a script's test are {files}")


def check_shards():
    mutants = listed.read_list("".join(mutant(f"m{number}") for number in range(100)))
    shards = [listed.shard(mutants, part, 8) for part in range(1, 9)]
    if sorted(m["name"] for shard in shards for m in shard) != sorted(m["name"] for m in mutants) or not all(shards):
        sys.exit("the shards are not a partition of the mutants")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        first = run.first_of(2 * mutants)
    if len(first) != run.MOST_AT_LANDING or "50 of 200 mutants of this change are owed" not in said.getvalue():
        sys.exit("a landing has too many mutants")
    if [m["name"] for m in listed.shard(mutants[:9], 3, 8)] != [m["name"] for m in shards[2] if m in mutants[:9]]:
        sys.exit("a mutant's shard depends on the others")


def check_check(tree, listed_text):
    (tree / "meson-info").mkdir()
    (tree / "meson-info" / "intro-tests.json").write_text(
        json.dumps([{"name": name} for name in ["less", "nothing", "slow", "broken", "toolless", "flaky", "late"]]), encoding="utf-8")
    for place, name in ("core", "rule"), ("a/b", "engine"), ("daemon", "other"):
        (tree / "src" / place).mkdir(parents=True)
        (tree / "src" / place / f"{name}.c").write_text("", encoding="utf-8")
    (tree / "compile_commands.json").write_text(
        json.dumps([{"directory": str(tree), "file": name, "command": f"cc -MD -MQ o -MF d -o o -c {name}"}
                    for name in FILES if name.endswith(".c")]), encoding="utf-8")
    write_list(tree, listed_text)
    expected = {name for name, _, result, _ in MUTANTS if result == "unusable" and name != "no-test-passes"}
    expected |= {"src/core/rule.c", "src/a/b/engine.c"}
    for sanitize, each, missing in ("none", True, set()), ("address,undefined", False, {"no-test", "no-code"}):
        (tree / "meson-info" / "intro-buildoptions.json").write_text(
            json.dumps([{"name": "b_sanitize", "value": sanitize}]), encoding="utf-8")
        told = {line.partition(":")[0] for line in check_list.check(tree, tree, each)}
        if told != expected - missing:
            sys.exit(f"the check of the list tells of {sorted(told)}")


def main():
    run.HANGING, run.NOT_HANGING = (2.5, 1), (2.5, 1)  # `less` takes as long on a busy machine
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        (tree / "tests" / "mutants").mkdir(parents=True)
        for name, text in FILES.items():
            (tree / name).write_text(text, encoding="utf-8")
        for script in (tree / "tests").glob("*.sh"):
            script.chmod(0o755)
        git(tree, "init", "-q")
        for what, text, status, said in RUNS:
            expect(what, run_list(tree, text), status, said)
        commit(tree)
        listed_text = check_fates(tree)
        check_shards()
        check_copies(tree)
        check_changes(tree)
        (tree / "less.c").write_text(FILES["less.c"], encoding="utf-8")
        check_check(tree, listed_text)


main()
