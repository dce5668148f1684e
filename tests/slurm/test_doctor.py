"""Usage: test_doctor.py CARMA SOURCE BUILD: carma doctor --slurm beside a real Slurm: its answers, its plugin, its files."""

import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from lab import Lab, skip_where_impossible  # noqa: E402

CHECKS = ["Slurm engine", "Slurm gate", "Slurm agent", "plugstack", "Slurm plugin", "job_submit", "cli_filter", "Slurm requeue", "Slurm devices", "gpumem",
          "gpubig", "Slurm counts"]


def marks(lab, node):
    settings = lab.dir / "carma.conf"
    settings.write_text("engine = slurm\ngate = memory\n")
    answer = json.loads(lab.carma(node, "doctor", "--json", f"--slurm={node}", "--config", settings))
    return {one["check"]: (one["mark"], one["found"]) for one in answer["checks"]}


def main():
    skip_where_impossible()
    with Lab(*sys.argv[1:4]) as lab:
        found = marks(lab, "n2")
        for check in CHECKS:
            assert found[check][0] == "ok", (check, found)
        assert str(lab.plugin) in found["Slurm plugin"][1], found
        assert "gpumem:40960M" in found["Slurm counts"][1] and not lab.run(["squeue", "-h"]), found
        submit = lab.dir / "etc/job_submit.lua"
        ours = submit.read_text()
        for age, (old, new, mark) in enumerate([("job.gres = list", "job.gres = nil", "fail"), ("default = 40", "default = 80", "warn")]):
            submit.write_text(ours.replace(old, new))
            os.utime(submit, (0, time.time() + 10 * age)) # slurmctld reads a younger file again, by whole seconds
            found = marks(lab, "n2")["Slurm counts"]
            assert found[0] == mark, found
        lab.run(["scontrol", "update", "NodeName=n2", "Gres=gpumem:80G,gpubig:2"])
        found = marks(lab, "n2")
        assert found["gpumem"][0] == found["gpubig"][0] == "warn", found
        lab.kill("slurmctld")
        assert marks(lab, "n2")["Slurm"][0] == "fail", found


main()
