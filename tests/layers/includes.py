"""Usage: includes.py SRC: fails when a file under SRC includes a module that its layer may not see.

A file includes its own module, base, and modules of lower levels (docs/architecture.md). Modules of one level do not see one
another. Within a module that INSIDE names, a folder sees itself and the folders listed for it. Project headers are written
"module/file.h", so that the module can be read off. The files of src/core have one order, in which each sees those before it. And jansson's own readers are called in one file alone: all others go by
its bounds."""

import pathlib
import re
import sys

LEVELS = [
    ["base"],
    ["core", "contention", "estimate"],
    ["api", "config", "trace"],
    ["gpu", "launch", "sandbox", "store", "http", "client", "evaluation", "sim"],
    ["daemon", "cli", "vnode"],
    ["dashboard", "notify", "slurm"],
]
# Which folders of a module see which others of it; "" is the module's own.
INSIDE = {
    "cli": {
        "show": [],
        "": ["show"],
        "admin": ["", "show"],
        "cluster": ["", "show"],
        "doctor": ["", "show", "admin", "cluster"],
        "estimate": ["", "show", "job"],
        "gpus": ["", "show", "cluster"],
        "history": ["", "show", "cluster"],
        "job": ["", "show", "cluster", "history"],
        "attach": ["", "show", "job"],
        "programs": ["", "show", "cluster"],
        "play": ["", "show"],
        "simulate": ["", "show"],
        "top": ["", "show", "cluster", "job"],
    },
    "daemon": {
        "view": [""],
        "account": [""],
        "engine": [""],  # tells the others by the calls that daemon.c gives it; they report records to it
        "node": ["", "account", "engine", "view"],
        "run": ["", "engine", "node"],
        "capture": ["", "account", "engine", "node", "view"],
        "lease": ["", "engine", "run", "view"],
        "metrics": ["", "account", "capture", "engine", "node", "view"],
        "whatif": ["", "node"],
        "submit": ["", "account", "engine", "node", "run", "view"],
        "edit": ["", "engine", "submit", "view"],
        "request": ["", "account", "capture", "edit", "engine", "lease", "metrics", "node", "run", "submit", "view", "whatif"],
        "": ["account", "capture", "engine", "lease", "node", "request", "run", "submit", "view", "whatif"],
    },
    "launch": {
        "cgroup": [],
        "": ["cgroup"],
        "shepherd": ["", "cgroup"],
    },
    "gpu": {
        "": [],
        "dcgm": [""],
        "mps": [""],
        "nvml": [""],
        "monitor": ["", "dcgm", "nvml"],
    },
    "slurm": {
        "shared": [],
        "plugin": ["shared"],
        "agent": ["shared"],
        "step": ["plugin", "shared"],
    },
}
# The order of src/core: a file, its code and its header, sees those named before it. A header that is named by itself
# holds what lower files need; its code comes later. (guess/program_history.c and guess/prior.c call each other by guess/prior.h.)
CORE = [
    "config", "quantum", "reason.h", "policy/policy", "record", "learn/profile", "common_wants", "verdict",
    "guess/prior.h",
    "job", "core.h", "waiting/queue.h", "waiting/by_turn", "ledger.h", "user.h", "state", "waiting/queue", "ledger",
    "user",
    "guess/program_history", "guess/prior", "learn/learn", "learn/pairs", "use", "need/overuse", "gpus/suits", "share/sharing", "need/need", "need/fence",
    "share/rates", "share/slowdown", "share/seen", "learn/readings", "learn/parts",
    "policy/best_fit", "policy/carma", "policy/exclusive", "policy/first_fit", "policy/lug", "policy/magm",
    "policy/mug", "policy/round_robin",
    "gpus/allotment", "gpus/closing", "qualify", "waiting/depend.h", "waiting/array.h", "waiting/eligible", "waiting/vacancy", "waiting/autocluster", "waiting/order", "waiting/places",
    "waiting/depend", "waiting/array", "users", "jobs", "core", "idle", "crash", "gpus/apply_gpu", "snapshot", "dump",
    "apply/reserved", "apply/reconfigured", "apply/placed", "apply/memory", "apply/wants", "apply/enter_state", "apply", "place", "waiting/reserve", "waiting/turn", "waiting/backfill", "decide",
    "reason",
]
LEVEL_OF = {module: level for level, modules in enumerate(LEVELS) for module in modules}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]*)"')
LOADER, LOADS = re.compile(r"\bjson_load\w*\s*\("), "base/json/json_read.c"
# What is read under the lock of another process's memory, which may be held for ever (base/kernel/aside.h).
HELD = re.compile(r'"(?:[^"]*/)?(?:cmdline|environ|maps|numa_maps|smaps(?:_rollup)?|auxv|pagemap|map_files[^"]*)"|'
                  r'"/proc/[^"]*/(?:mem|syscall|stack)"|\b(?:process_vm_readv|ptrace)\((?!\d\))')
HELD_BY = {
    "cli/doctor/mps.c": "aside, of processes with the name of an MPS program",
    "gpu/mps/process.c": "aside, of its own user's processes",
    "launch/sweep.c": "aside, in a program of its own",
    "launch/tree.c": "in a thread that is left to itself",
    "sandbox/unowned.c": "as watch.c",
    "sandbox/watch.c": "in a process of the keeper's, which does not wait for it",
    "slurm/agent/node.c": "aside, of slurmstepds",
    "vnode/nvml_system.c": "in place of NVIDIA's library, which reads it, and which carmad does not ask for it",
}


def inside(where, module, folder, seen):
    arrows = INSIDE.get(module)
    if arrows is None:
        return
    if folder not in arrows:
        yield f"{where}: the folder '{module}/{folder}' has no arrows: put it into INSIDE of tests/layers/includes.py"
    elif seen != folder and seen not in arrows[folder]:
        yield f"{where}: {module}/{folder} may not see {module}/{seen}"


def in_order(where, file, header):
    place, seen = (CORE.index(name if name in CORE else name[:-2]) if name in CORE or name[:-2] in CORE else None
                   for name in (file, header))
    if place is None:
        yield f"{where}: core/{file} has no place: put it into CORE of tests/layers/includes.py"
    elif seen is not None and seen > place:
        yield f"{where}: core/{file} may not see core/{header}, which comes after it"


def violations(src):
    for path in sorted(src.rglob("*.[ch]")):
        name = path.relative_to(src)
        module = name.parts[0]
        if len(name.parts) < 2 or module not in LEVEL_OF:
            yield f"{name}: the module '{module}' has no level: put it into the table of tests/layers/includes.py"
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if LOADER.search(line) and str(name) != LOADS:
                yield f"{name}:{number}: reads JSON past its bounds: call json_read of base/json/json_read.h"
            if HELD.search(line) and str(name) not in HELD_BY:
                yield f"{name}:{number}: may wait for ever: base/kernel/aside.h says why, HELD_BY of includes.py who may"
            match = INCLUDE.match(line)
            if not match:
                continue
            header = match[1]
            seen = header.split("/")[0]
            where = f"{name}:{number}: \"{header}\""
            if seen not in LEVEL_OF or "/" not in header or not (src / header).is_file():
                yield f"{where} is not a header of a known module: write it as \"module/file.h\""
            elif seen == module == "core":
                yield from in_order(where, str(name).removeprefix("core/"), header.removeprefix("core/"))
            elif seen == module:
                yield from inside(where, module, *("/".join(file.split("/")[1:-1]) for file in (str(name), header)))
            elif LEVEL_OF[seen] >= LEVEL_OF[module]:
                yield f"{where}: {module} (level {LEVEL_OF[module]}) may not see {seen} (level {LEVEL_OF[seen]})"


# Headers that name what a module's files have in common, and so stand by themselves: their bodies see all of these.
COMMON = {"daemon/daemon.h"} | {f"core/{name}" for name in CORE if name.endswith(".h")}
LARGEST_CIRCLE = 4


def circles(src):
    """A file is its header and its body. Files that see one another, if by way of others, are a circle."""
    def file_of(path):
        return path if path in COMMON else path[:-2]

    sees = {}
    for path in src.rglob("*.[ch]"):
        seen = (match[1] for line in path.read_text(encoding="utf-8").splitlines() if (match := INCLUDE.match(line)))
        sees.setdefault(file_of(str(path.relative_to(src))), set()).update(
            file_of(header) for header in seen if header.endswith(".h"))
    reached = {}
    for file in sees:
        reached[file], ahead = set(), [file]
        while ahead:
            new = sees.get(ahead.pop(), set()) - reached[file]
            reached[file] |= new
            ahead.extend(new)
    told = set()
    for file in sorted(sees):
        circle = sorted(other for other in reached[file] if other in reached and file in reached[other])
        if len(circle) > LARGEST_CIRCLE and file not in told:
            told.update(circle)
            yield f"{', '.join(circle)}: a circle of {len(circle)} files, {LARGEST_CIRCLE} at most: name what they share in a header of its own"


def main(src):
    found = [*violations(pathlib.Path(src)), *circles(pathlib.Path(src))]
    for line in found:
        print(line)
    if not any(pathlib.Path(src).rglob("*.c")):
        print(f"{src}: no C file here: the check has looked at nothing")
        return 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
