"""Usage: names.py SOURCE CARMA CARMAD: what documents name exists. Each option behind a command of carma's stands in that
command's help, and each setting `name = value` in the list of settings. What changes.md says of earlier versions is gone."""

import pathlib
import re
import subprocess
import sys

COMMAND = re.compile(r"\bcarma ((?!with )(?:admin |bench )?[a-z]+)([^`\n|]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
SETTING = re.compile(r"`([a-z][a-z0-9_]*) = [^`]*`")
ELSEWHERE = {"gpm", "unified", "key"}  # keys of other files, and a word for any


def output_of(*words):
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def main(source, carma, carmad):
    source, helps, complaints = pathlib.Path(source), {}, []
    settings = set(re.findall(r"^  ([a-z][a-z0-9_]*) ", output_of(carmad, "--settings"), re.M)) | ELSEWHERE
    for path in sorted([source / "README.md", *source.glob("docs/*.md")]):
        if path.name == "changes.md":
            continue
        text = path.read_text(encoding="utf-8")
        for command, rest in COMMAND.findall(text):
            options = OPTION.findall(re.sub(r"'[^']*'", "", rest).split(" -- ")[0])
            if options and command not in helps:
                helps[command] = output_of(carma, "help", *command.split())
            for option in options:
                if not re.search(rf"(?<![\w-]){option}(?![\w-])", helps[command] or "") and option != "--help":
                    complaints.append(f"{path.name}: 'carma {command}' has no option {option}")
        complaints += [f"{path.name}: there is no setting {name}" for name in SETTING.findall(text) if name not in settings]
    print(*complaints, sep="\n", file=sys.stderr)
    return 1 if complaints else 0


sys.exit(main(*sys.argv[1:]))
