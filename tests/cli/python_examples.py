"""Usage: python_examples.py PAGE.md: runs the examples of docs/python.md, in their order: those that begin with `# file: NAME`
as scripts of this name, where the modules that they need are there; the others in this process. Prints the output of
each."""

import importlib.util
import pathlib
import re
import subprocess
import sys

page = pathlib.Path(sys.argv[1])
examples = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
names = {}
for example in examples:
    head = re.match(r"# file: (\S+?)(?:, needs: (\S+))?\n", example)
    if head is None:
        exec(compile(example, str(page), "exec"), names)
        print("ran lines")
        continue
    name, needed = head.groups()
    pathlib.Path(name).write_text(example, encoding="utf-8")
    if needed is not None and importlib.util.find_spec(needed) is None:
        print(f"left out {name}: there is no {needed}")
        continue
    done = subprocess.run([sys.executable, name], capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout)
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr}")
    print(f"ran {name}")
