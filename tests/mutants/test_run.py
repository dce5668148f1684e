"""The runner of planted faults, on a project of one function: it must tell a caught fault from all else."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile

import run

FILES = {
    "meson.build": "project('p', 'c')\ntest('less', executable('less', 'less.c'))\ntest('nothing', executable('no', 'no.c'))\n",
    "less.c": "int less(int a, int b)\n{\n    return a < b;\n}\nint main(void)\n{\n"
              "    int zero = 0;\n    return less(1, 2) && !less(2, 1) ? zero : 1;\n}\n",
    "no.c": "int main(void)\n{\n    return 0;\n}\n",
}


def fault(name="f", file="less.c", old="a < b", new="a > b", tests="less"):
    return f"name: {name}\nfile: {file}\nold: {old}\nnew: {new}\ntests: {tests}\n\n"


CASES = [
    ("caught", fault(), 0, "1 planted faults: 1 caught"),
    ("caught by the second test", fault(tests="nothing less"), 0, "by less"),
    ("restored afterwards", fault() + fault(name="g", tests="nothing"), 1, "1 caught, 1 survived"),
    ("survivor", fault(new="a <= b"), 1, "0 caught, 1 survived"),
    ("text not there", fault(old="a << b"), 1, "its old text is in less.c 0 times"),
    ("text there twice", fault(old="less("), 1, "its old text is in less.c 3 times"),
    ("does not compile", fault(new="a <"), 1, "the changed tree does not compile"),
    ("unknown test", fault(tests="more"), 1, "there is no test 'more'"),
    ("no such line", fault() + "colour: red\n", 1, "unexpected line"),
    ("incomplete", "name: f\nfile: less.c\n", 1, "f: no old"),
    ("same name", fault() + fault(), 1, "f is there twice"),
    ("nothing planted", "# no fault\n", 1, "0 planted faults"),
]


def main():
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        for name, text in FILES.items():
            (tree / name).write_text(text, encoding="utf-8")
        (tree / "tests" / "mutants").mkdir(parents=True)
        subprocess.run(["git", "init", "-q", tree], check=True)
        cases = [*CASES, ("tests fail without a fault", fault(), 1, "without any fault, less fails")]
        for what, listed, status, text in cases:
            (tree / "tests" / "mutants" / "list").write_text(listed, encoding="utf-8")
            if what == cases[-1][0]:
                (tree / "less.c").write_text(FILES["less.c"].replace("zero = 0", "zero = 1"), encoding="utf-8")
            output = io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                got = run.main(["--tree", str(tree)])
            if got != status or text not in output.getvalue():
                sys.exit(f"{what}: expected status {status} and '{text}', got {got} and:\n{output.getvalue()}")


if __name__ == "__main__":
    main()
