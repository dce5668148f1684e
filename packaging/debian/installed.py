"""Usage: meson introspect --targets BUILD | installed.py BUILD: the outputs that are installed, as ninja names them."""

import json
import pathlib
import sys

for target in json.load(sys.stdin):
    if target["installed"]:
        for name in target["filename"]:
            print(pathlib.Path(name).relative_to(sys.argv[1]))
