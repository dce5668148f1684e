"""Usage: surroundings.py tell FILE | surroundings.py compare SHELL JOB PAGE

tell writes down what this process has from the one that started it. compare takes what a shell and its job told, and
demands that each difference stands in PAGE, in the first column of the table of "What differs from the submitter's
shell", and that each item there is one."""

import json
import os
import pathlib
import re
import sys

STATUS = ("Umask", "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
          "SigBlk", "SigIgn", "SigPnd", "Cpus_allowed", "Mems_allowed")
OF_THE_SHELL = {"_", "SHLVL"}  # its own count and its last command


def tell():
    status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    told = {name: status[name].strip() for name in STATUS if name in status}
    told["Groups"] = " ".join(sorted(told["Groups"].split()))
    for line in pathlib.Path("/proc/self/limits").read_text().splitlines()[1:]:
        name, soft, hard = re.match(r"(.{25}) (\S+) +(\S+)", line).groups()
        told |= {"soft: " + name.strip(): soft, "hard: " + name.strip(): hard}
    for name in ("oom_score_adj", "sessionid", "personality", "timerslack_ns"):
        path = pathlib.Path("/proc/self", name)
        told[name] = path.read_text().strip() if os.access(path, os.R_OK) else None
    told |= {"niceness": os.nice(0), "directory": os.getcwd(), "scheduling": os.sched_getscheduler(0),
             "descriptors": sorted(int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")),
             "standard input": os.readlink("/proc/self/fd/0").partition(":")[0]}
    return told | {"variable: " + name: value for name, value in os.environ.items() if name not in OF_THE_SHELL}


def listed(page):
    table = page.partition("What differs from the submitter's shell")[2].partition("\n#")[0]
    return [word for line in table.splitlines() if line.startswith("| `")
            for word in re.findall(r"`([^`]*)`", line.split("|")[1])]


def compare(shell, job, page):
    known = listed(page)
    differ = {name for name in shell | job if shell.get(name) != job.get(name)}
    patterns = {item: re.compile(re.escape(item).replace(r"\*", ".*")) for item in known}
    wrong = [f"{name}: {shell.get(name)!r} in the shell, {job.get(name)!r} in the job" for name in sorted(differ)
             if not any(pattern.fullmatch(name) for pattern in patterns.values())]
    wrong += [f"'{item}' is listed and never differs" for item, pattern in patterns.items()
              if not any(pattern.fullmatch(name) for name in differ)]
    return wrong


if __name__ == "__main__":
    if sys.argv[1] == "tell":
        pathlib.Path(sys.argv[2]).write_text(json.dumps(tell()))
    else:
        shells, jobs = (json.loads(pathlib.Path(name).read_text()) for name in sys.argv[2:4])
        sys.exit("\n".join(compare(shells, jobs, pathlib.Path(sys.argv[4]).read_text())) or 0)
