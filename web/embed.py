"""Writes a C file that holds the dashboard's files, compressed, as src/daemon/request/dashboard_files.h declares them.

usage: embed.py OUT.c FILE...

A file is served under its own name; index.html as "/" as well. The same files give the same C file, so that a build can be
repeated byte by byte.
"""
import gzip
import hashlib
import os
import re
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def read(path):
    with open(path, "rb") as file:
        content = file.read()
    # It names a file that is not served; browsers' tools would ask for it.
    return re.sub(rb"\n?//# sourceMappingURL=\S+\s*$", b"\n", content)


def rows(data):
    return "".join("    " + ",".join(map(str, data[at:at + 32])) + ",\n" for at in range(0, len(data), 32))


def main(out, paths):
    bodies, table = [], []
    for number, path in enumerate(sorted(paths, key=os.path.basename)):
        name = os.path.basename(path)
        content = read(path)
        packed = gzip.compress(content, compresslevel=9, mtime=0)
        etag = hashlib.sha256(content).hexdigest()[:32]
        bodies.append(f"/* {name} */\nstatic const unsigned char body_{number}[] = {{\n{rows(packed)}}};\n")
        for url in ["/", "/" + name] if name == "index.html" else ["/" + name]:
            table.append(f'    {{"{url}", "{TYPES[os.path.splitext(name)[1]]}", "\\"{etag}\\"", body_{number}, '
                         f"sizeof body_{number}}},\n")
    with open(out, "w", encoding="ascii") as file:
        file.write('/* Made by web/embed.py. */\n#include "daemon/request/dashboard_files.h"\n\n' + "\n".join(bodies) +
                   f"\nconst struct dashboard_file dashboard_files[] = {{\n{''.join(table)}}};\n"
                   f"const size_t dashboard_file_count = {len(table)};\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
