"""The runner of mutants, and the check of their list, on a project of one function. The one must tell a caught fault
from all else, the other find the mutants that cannot be planted."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile

import check_list
import run

FILES = {
    "meson.build": "project('p', 'c')\nforeach name : ['less', 'nothing', 'slow']\n"
                   "  test(name, executable(name, name + '.c'))\nendforeach\n",
    "less.c": "int less(int a, int b)\n{\n    return a < b;\n}\nint main(void)\n{\n"
              "    int zero = 0;\n    return less(1, 2) && !less(2, 1) ? zero : 1;\n}\n",
    "nothing.c": "int main(void)\n{\n    return 0;\n}\n",
    "slow.c": "#include <unistd.h>\nint main(void)\n{\n    sleep(1);\n    return 0;\n}\n",
}
ENDLESS = {"old": "return a < b;", "new": "for (;;);"}


def fault(name="f", file="less.c", old="a < b", new="a > b", tests="less", more=""):
    return f"name: {name}\nfile: {file}\nold: {old}\nnew: {new}\ntests: {tests}\n{more}\n"


# Each a fault in one run: its name, its text, its fate, and the report of that.
FAULTS = [
    ("wrong", {}, "caught", "by less"),
    ("second-test", {"tests": "nothing less"}, "caught", "by less"),
    ("not-tested", {"tests": "nothing"}, "survived", "no test of nothing"),  # less.c is whole again before it
    ("not-seen", {"new": "a <= b"}, "survived", "no test of less"),
    ("endless", ENDLESS, "hung", "in less"),
    ("endless-as-it-may", {**ENDLESS, "more": "hangs: yes\n"}, "caught", "by less"),
    ("could-be-endless", {"new": "a <= b", "more": "hangs: yes\n"}, "survived", "no test of less"),
    ("slow-without-it", {"tests": "slow"}, "survived", "no test of slow"),
    ("not-there", {"old": "a << b"}, "unusable", "its old text is in less.c 0 times"),
    ("thrice-there", {"old": "less("}, "unusable", "its old text is in less.c 3 times"),
    ("no-file", {"file": "more.c"}, "unusable", "No such file"),
    ("no-fault", {"new": "a < b"}, "unusable", "its new text is its old text"),
    ("no-code", {"new": "a <"}, "unusable", "the tree does not compile"),
    ("no-test", {"tests": "more"}, "unusable", "there is no test 'more'"),
    ("elsewhere", {"file": "nothing.c", "old": "0", "new": "1", "tests": "nothing"}, "caught", "by nothing"),
]

# Each a run of its own: its subject, the list, the exit status, and the report.
RUNS = [
    ("all caught", fault(), 0, "1 mutants: 1 caught"),
    ("no such line", fault() + "colour: red\n", 1, "unexpected line"),
    ("neither hangs nor not", fault(more="hangs: no\n"), 1, "unexpected line"),
    ("incomplete", "name: f\nfile: less.c\n", 1, "f: no old"),
    ("same name", fault() + fault(), 1, "f is there twice"),
    ("nothing planted", "# no fault\n", 1, "0 mutants"),
]


def run_list(tree, listed, *options):
    (tree / "tests" / "mutants" / "list").write_text(listed, encoding="utf-8")
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        status = run.main(["--tree", str(tree), *options])
    return status, output.getvalue()


def expect(what, got, status, text):
    if got[0] != status or text not in got[1]:
        sys.exit(f"{what}: expected status {status} and '{text}', got {got[0]} and:\n{got[1]}")


def main():
    run.LEAST_SECONDS = 0.8  # less than 'slow' takes
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        for name, text in FILES.items():
            (tree / name).write_text(text, encoding="utf-8")
        (tree / "tests" / "mutants").mkdir(parents=True)
        subprocess.run(["git", "init", "-q", tree], check=True)
        for what, listed, status, text in RUNS:
            expect(what, run_list(tree, listed), status, text)

        expect("no time", run_list(tree, fault() + fault(name="other"), "--minutes", "0"), 1,
               "2 mutants: 0 caught, 0 survived, 0 hung, 0 unusable, 2 not tried in 0 minutes")
        expect("time enough", run_list(tree, fault(), "--minutes", "9"), 0, "1 mutants: 1 caught")

        status, output = run_list(tree, "".join(fault(name=name, **what) for name, what, _, _ in FAULTS))
        expect("all faults", (status, output), 1, "15 mutants: 4 caught, 4 survived, 1 hung, 6 unusable")
        for name, _, result, text in FAULTS:
            line = next((line for line in output.splitlines() if line.split()[:1] == [name]), "")
            expect(name, (line.split()[1:2], output), [result], text)

        (tree / "meson-info").mkdir()
        (tree / "meson-info" / "intro-tests.json").write_text(
            json.dumps([{"name": name} for name in ["less", "nothing", "slow"]]), encoding="utf-8")
        for place, name in ("core", "rule"), ("a/b", "engine"), ("daemon", "other"):
            (tree / "src" / place).mkdir(parents=True)
            (tree / "src" / place / f"{name}.c").write_text("", encoding="utf-8")
        (tree / "compile_commands.json").write_text(
            json.dumps([{"directory": str(tree), "file": name, "command": f"cc -MD -MQ o -MF d -o o -c {name}"}
                        for name in FILES if name.endswith(".c")]), encoding="utf-8")
        expected = {name for name, _, result, _ in FAULTS if result == "unusable"}
        expected |= {"src/core/rule.c", "src/a/b/engine.c"}
        for sanitize, missing in ("none", set()), ("address,undefined", {"no-test", "no-code"}):
            (tree / "meson-info" / "intro-buildoptions.json").write_text(
                json.dumps([{"name": "b_sanitize", "value": sanitize}]), encoding="utf-8")
            told = {line.partition(":")[0] for line in check_list.check(tree, tree)}
            if told != expected - missing:
                sys.exit(f"the check of the list tells of {sorted(told)}")

        (tree / "less.c").write_text(FILES["less.c"].replace("zero = 0", "zero = 1"), encoding="utf-8")
        expect("fails without a fault", run_list(tree, fault()), 1, "without any fault, less fails")


if __name__ == "__main__":
    main()
