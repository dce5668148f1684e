"""Usage: test_guards.py CC AR: plants violations and demands that each guard of this folder sees them."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile

import folders
import formats
import includes
import symbols


def report(main, *args):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        status = main(*args)
    return status, output.getvalue()


def expect(what, outcome, status, text=""):
    if outcome[0] != status or text not in outcome[1]:
        sys.exit(f"{what}: expected status {status} and '{text}', got {outcome}")


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def check_includes(root):
    src = root / "src"
    for name in ["base/a.h", "core/a.h", "contention/a.h", "config/a.h", "api/a.h", "gpu/a.h", "store/a.h", "cli/a.h"]:
        put(src / name, "")
    probe = src / "gpu" / "probe.c"
    put(probe, '#include <time.h>\n#include "base/a.h"\n#include "gpu/a.h"\n#include "core/a.h"\n#include "api/a.h"\n')
    expect("allowed includes", report(includes.main, src), 0)
    for header, text in [
        ("store/a.h", "gpu (level 3) may not see store (level 3)"),
        ("cli/a.h", "may not see cli"),
        ("a.h", 'write it as "module/file.h"'),
        ("../core/a.h", 'write it as "module/file.h"'),
        ("core/missing.h", 'write it as "module/file.h"'),
    ]:
        put(probe, f'\n #  include "{header}"\n')
        expect(header, report(includes.main, src), 1, text)
        expect(header, report(includes.main, src), 1, "gpu/probe.c:2:")
    put(probe, "")
    for name, header in [("base/b.c", "core/a.h"), ("core/policy/b.c", "contention/a.h"), ("config/b.c", "api/a.h")]:
        put(src / name, f'#include "{header}"\n')
        expect(name, report(includes.main, src), 1, "may not see")
        put(src / name, "")
    for name in ["core/state.h", "core/job.h"]:
        put(src / name, "")
    for name, status, text in [("state.h", 0, ""), ("job.c", 1, "core/job.c may not see core/state.h, which comes after it"),
                               ("attic.c", 1, "core/attic.c has no place")]:
        put(src / "core" / name, '#include "core/job.h"\n#include "core/state.h"\n')
        expect(name, report(includes.main, src), status, text)
        put(src / "core" / name, "")
    put(src / "cli" / "top" / "a.h", "")
    for name, status, text in [("top/b.c", 0, ""), ("job/b.c", 1, "cli/job may not see cli/top"),
                               ("b.c", 1, "may not see"), ("attic/b.c", 1, "'cli/attic' has no arrows")]:
        put(src / "cli" / name, '#include "cli/top/a.h"\n')
        expect(name, report(includes.main, src), status, text)
        put(src / "cli" / name, "")
    put(src / "api" / "b.c", "\n    json = json_loads(text, 0, NULL);\n")
    expect("JSON past its bounds", report(includes.main, src), 1, "api/b.c:2: reads JSON past its bounds")
    for text in ['xasprintf("/proc/%d/environ", pid)', 'names[] = {"cmdline", "comm"}', '"/proc/%s/mem"', "ptrace(PTRACE_PEEKDATA, pid)"]:
        put(src / "api" / "b.c", f"    {text};\n")
        expect(text, report(includes.main, src), 1, "api/b.c:1: may wait for ever")
    put(src / "api" / "b.c", 'a(environ, "/proc/self/uid_map", "/proc/%d/comm", "mem");\n')
    expect("what does not wait", report(includes.main, src), 0)
    put(src / "attic" / "b.c", "")
    expect("unknown module", report(includes.main, src), 1, "'attic' has no level")
    expect("empty tree", report(includes.main, root / "nothing"), 1, "looked at nothing")


def check_symbols(root, cc, ar):
    def library(module, code):
        source, archive = root / f"{module}.c", root / f"lib{module}.a"
        put(source, code)
        archive.unlink(missing_ok=True)
        subprocess.run([*cc, "-O2", "-c", "-o", root / f"{module}.o", source], check=True)
        subprocess.run([ar, "rcs", archive, root / f"{module}.o"], check=True, capture_output=True)
        return str(archive)

    clean = "#include <string.h>\nint f(const char *a, const char *b) { return strcmp(a, b); }\n"
    expect("clean core", report(symbols.main, [library("core", clean)]), 0)
    for name, code in [
        ("time", "#include <time.h>\nlong f(void) { return time(0); }\n"),
        ("clock_gettime", "#include <time.h>\nint f(struct timespec *t) { return clock_gettime(CLOCK_REALTIME, t); }\n"),
        ("open", "#include <fcntl.h>\nint f(const char *p) { return open(p, O_RDONLY); }\n"),
        ("getenv", "#include <stdlib.h>\nchar *f(void) { return getenv(\"HOME\"); }\n"),
        ("rand", "#include <stdlib.h>\nint f(void) { return rand(); }\n"),
        ("stderr", "#include <stdio.h>\nint f(int a) { return fprintf(stderr, \"%d\", a); }\n"),
        ("exp", "#include <math.h>\ndouble f(double a) { return exp(a); }\n"),
    ]:
        expect(name, report(symbols.main, [library("core", code)]), 1, f"needs '{name}'")
    expect("maths", report(symbols.main, [library("contention", code)]), 0)
    code = "#include <stdlib.h>\nvoid *f(void) { return malloc(4); }\n"
    expect("allocation", report(symbols.main, [library("contention", code)]), 1, "needs 'malloc'")
    expect("no list", report(symbols.main, [library("attic", clean)]), 1, "'attic' has no list")


def check_formats(root):
    page = root / "docs" / "formats" / "page.md"
    put(root / "tests" / "golden" / "page.json", "")
    put(page, "Held by `tests/golden/page.json`.\n")
    expect("golden file", report(formats.main, root), 0)
    put(page, "Held by `tests/golden/pages.json`.\n")
    expect("golden file gone", report(formats.main, root), 1, "names tests/golden/pages.json")


def check_folders(root):
    src, page = root / "layout", root / "layout.md"
    table = "| 5 programs | `slurm` | x |\n| 4 programs | `cli` | y |\n| | `cli/top` | z |\n| | `daemon` | d |\n"
    for name in ["slurm/a.c", "cli/a.c", "cli/top/a.h", "daemon/a.c"]:
        put(src / name, "")
    put(page, table)
    expect("layout", report(folders.main, src, page), 0)
    for text, what in [(table.replace("`cli/top`", "`cli/job`"), "no row for src/cli/top"),
                       (table + "| | `core` | w |\n", "src/core, which the layout table names"),
                       (table.replace("| 4 programs", "| 3 programs"), "src/cli/top is not on level 3")]:
        put(page, text)
        expect(what, report(folders.main, src, page), 1, what)
    put(page, table)
    for i in range(40):
        put(src / "cli" / "top" / f"b{i}.c", "")
    expect("too many files", report(folders.main, src, page), 1, "src/cli/top holds 41 code files")


def main(cc, ar):
    with tempfile.TemporaryDirectory() as folder:
        check_includes(pathlib.Path(folder))
        check_symbols(pathlib.Path(folder), cc, ar)
        check_formats(pathlib.Path(folder))
        check_folders(pathlib.Path(folder))


main(sys.argv[1:-1], sys.argv[-1])
