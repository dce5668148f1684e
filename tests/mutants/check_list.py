"""Usage: check_list.py TREE BUILD [compile]: every mutant can be planted, and the files that decide have one each. In a build
without sanitizers, which has all tests: its tests are tests of the build. With `compile`: every mutant compiles.

The mutants themselves are planted after all tests; this reports a moved line or test at once."""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

import listed

# Where a lost rule costs a job or its record.
NEEDED = ["src/core/**/*.c", "src/store/**/*.c", "src/launch/**/*.c", "src/**/engine.c", "src/**/record.c"]


def info(build, what):
    return json.loads((build / "meson-info" / f"intro-{what}.json").read_text(encoding="utf-8"))


def compilations(build):
    """Of each C file, the folder and the command that look at its text on standard input and make nothing."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    for entry in entries:
        words = shlex.split(entry["command"])
        words = [word for word in words if word not in (entry["file"], "-c", "ccache", "/usr/bin/ccache")]
        for option in ("-o", "-MF", "-MQ"):
            del words[words.index(option):words.index(option) + 2]
        path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        looks = ["-fsyntax-only", "-fdiagnostics-color=never", "-Werror=implicit-function-declaration", "-x", "c", "-"]
        yield path, (entry["directory"], [word for word in words if word != "-MD"] + looks)


def compiles(text, path, commands):
    """The first error of a file with a fault in it; None: there is none, or it is not of a language that is known here."""
    if path.suffix == ".py":
        try:
            compile(text, path.name, "exec")
        except SyntaxError as error:
            return str(error)
    command = commands.get(os.path.realpath(path))
    if not command:
        return None
    done = subprocess.run(command[1], cwd=command[0], input=text, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    return (errors or [f"exit status {done.returncode}"])[0] if done.returncode else None


def check(tree, build, compile_each):
    tests = {test["name"] for test in info(build, "tests")}
    options = {option["name"]: option["value"] for option in info(build, "buildoptions")}
    mutants = listed.read_list((tree / "tests" / "mutants" / "list").read_text(encoding="utf-8"))
    with_mutants = {mutant["file"] for mutant in mutants}
    for path in sorted(str(path.relative_to(tree)) for pattern in NEEDED for path in tree.glob(pattern)):
        if path not in with_mutants:
            yield f"{path}: has no fault"
    planted = {}
    for mutant in mutants:
        try:
            planted[mutant["name"]] = listed.plant(mutant, (tree / mutant["file"]).read_text(encoding="utf-8"))
        except (OSError, listed.Unusable) as reason:
            yield f"{mutant['name']}: {reason}"
        for name in mutant["tests"]:
            if name not in tests and options["b_sanitize"] == "none":
                yield f"{mutant['name']}: there is no test '{name}'"
    if not compile_each:
        return
    commands = dict(compilations(build))
    usable = [mutant for mutant in mutants if mutant["name"] in planted]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        errors = pool.map(lambda mutant: compiles(planted[mutant["name"]], tree / mutant["file"], commands), usable)
        for mutant, error in zip(usable, errors):
            if error:
                yield f"{mutant['name']}: does not compile: {error}"


def main(tree, build, *words):
    faults = list(check(pathlib.Path(tree), pathlib.Path(build), "compile" in words))
    for fault in faults:
        print(f"tests/mutants/list: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
