"""Usage: surroundings.py tell FILE | surroundings.py compare SHELL JOB PAGE

tell writes down what this process has from the one that started it. compare takes what a shell and its job told, and
demands that each difference stands in PAGE, in the first column of the table of "What differs from the submitter's
shell", and that each item there is one."""

import ctypes
import json
import os
import pathlib
import platform
import re
import sys

# What a process has of itself, in /proc/PID/status and /proc/PID: all else there is compared.
OF_ITSELF = re.compile("Name|State|.*[Pp]id|Tgid|NS[a-z]*|FDSize|Vm.*|Rss.*|Hugetlb.*|Threads|SigQ|SigPnd|ShdPnd|SigCgt|CoreDumping|"
                       "(non)?voluntary_ctxt_switches|Speculation.*|x86_.*|untag_mask")  # fmt: skip
FILES = ("oom_score_adj", "sessionid", "personality", "timerslack_ns", "loginuid", "coredump_filter", "cgroup", "cpuset",
         "uid_map", "gid_map", "setgroups", "attr/current")  # fmt: skip
IOPRIO_GET, GET_MEMPOLICY, KEYCTL = {"x86_64": (252, 239, 250), "aarch64": (31, 236, 219)}[platform.machine()]
PRCTL = {"dumpable": 3, "securebits": 27, "transparent huge pages": 42, "io flusher": 58}
# Where a machine has one processor, no keys, or no control groups to make, these do not differ.
ELSEWHERE = ("Cpus_allowed*", "processors", "session keyring", "cgroup")
OF_THE_SHELL = {"_", "SHLVL"}  # its own count and its last command


def tell():
    status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    told = {name: value.strip() for name, value in status.items() if not OF_ITSELF.fullmatch(name)}
    told["Groups"] = " ".join(sorted(told["Groups"].split()))
    for line in pathlib.Path("/proc/self/limits").read_text().splitlines()[1:]:
        name, soft, hard = re.match(r"(.{25}) (\S+) +(\S+)", line).groups()
        told |= {"soft: " + name.strip(): soft, "hard: " + name.strip(): hard}
    for name in FILES:
        try:
            told[name] = pathlib.Path("/proc/self", name).read_text().strip()
        except OSError:
            told[name] = None
    for name in os.listdir("/proc/self/ns"):
        told["namespace: " + name] = os.readlink(f"/proc/self/ns/{name}")
    told["mounts"] = sorted(line.split(" ", 2)[2] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines())
    libc = ctypes.CDLL(None, use_errno=True)
    told |= {name: libc.prctl(option, 0, 0, 0, 0) for name, option in PRCTL.items()}
    mode = ctypes.c_int(-1)
    libc.syscall(GET_MEMPOLICY, ctypes.byref(mode), 0, 0, 0, 0)
    stat = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    told |= {"niceness": os.nice(0), "directory": os.getcwd(), "root": os.readlink("/proc/self/root"),
             "scheduling": (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority),
             "processors": sorted(os.sched_getaffinity(0)), "priority of input and output": libc.syscall(IOPRIO_GET, 1, 0),
             "memory policy": mode.value, "terminal": stat[4], "session keyring": libc.syscall(KEYCTL, 0, -3, 0),
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
              if item not in ELSEWHERE and not any(pattern.fullmatch(name) for name in differ)]
    return wrong


if __name__ == "__main__":
    if sys.argv[1] == "tell":
        pathlib.Path(sys.argv[2]).write_text(json.dumps(tell()))
    else:
        shells, jobs = (json.loads(pathlib.Path(name).read_text()) for name in sys.argv[2:4])
        sys.exit("\n".join(compare(shells, jobs, pathlib.Path(sys.argv[4]).read_text())) or 0)
