#!/usr/bin/env python3
"""Stands in for nvidia-smi on a virtual node: the output of `carma-vnode show`, in the form of nvidia-smi's queries.
With
FAKE_SMI_WRONG in the environment, memory in use is 1000 MiB too much. FAKE_SMI_VNODE names carma-vnode."""

import os
import re
import subprocess
import sys

FIXED = {"driver_version": "550.54.15", "compute_mode": "Default", "mig.mode.current": "[N/A]",
         "persistence_mode": "Enabled"}


def node():
    text = subprocess.run([os.environ["FAKE_SMI_VNODE"], "show"], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout
    gpus, processes = [], []
    for line in text.splitlines():
        head = re.match(r"GPU (\d+)  (.*)  (GPU-\S+)", line)
        memory = re.match(r"  memory (\d+) of (\d+) MiB, .*power ([0-9.]+) W", line)
        process = re.match(r"  process (\d+) .*?(\d+) MiB", line)
        if head:
            gpus.append(dict(FIXED, index=head[1], name=head[2], uuid=head[3]))
        elif memory:
            used = int(memory[1]) + (1000 if os.environ.get("FAKE_SMI_WRONG") else 0)
            gpus[-1].update({"memory.used": used, "memory.total": int(memory[2]) + 615, "memory.reserved": 615,
                             "power.draw": memory[3]})
        elif process:
            processes.append({"pid": process[1], "used_gpu_memory": process[2]})
    return gpus, processes


def main():
    gpus, processes = node()
    query = next((word for word in sys.argv if word.startswith("--query-")), None)
    if not query:
        print("| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4 |")
        return
    what, fields = query.split("=")
    for row in gpus if what == "--query-gpu" else processes:
        print(", ".join(str(row[field]) for field in fields.split(",")))


main()
