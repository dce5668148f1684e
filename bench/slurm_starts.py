"""What the plugin adds to a job's start on an idle cluster, at the clock of life; and what it does for that, counted by strace."""

import re
import shutil
import signal

import slurm_labs

GPU, NODE = "--carma-mem=1G", ("-w", "n1")
# A job: its helpers, and what they ask carmad. A task's begin asks for the GPUs' size, for the lease, and to enter it; a script's
# end for its lease, and to end that; the epilog for what is left, and of an srun's own job to end it. A helper serves the prolog, each
# task's begin and end, and the epilog.
JOBS = {"no GPU asked": (("srun", "-Q", *NODE, "true"), 4, 0), "srun": (("srun", "-Q", *NODE, GPU, "true"), 4, 5),
        "sbatch": (("sbatch", "-Q", "-W", *NODE, "-o", "/dev/null", GPU, "--wrap", "true"), 4, 6),
        "sbatch with two steps": (("sbatch", "-Q", "-W", *NODE, "-o", "/dev/null", GPU, "--wrap", "srun true && srun true"), 8, 12)}


def one_start(cluster, *options):
    """Milliseconds from srun's start to the job's first instruction."""
    file = cluster.dir / "out" / "stamp"
    said = cluster.run([cluster.stamp, "--then", "srun", "-Q", *NODE, *options, cluster.stamp, file], user=cluster.user)
    return (int(file.read_text()) - int(said.split()[0])) / 1e6


def counts(cluster, command):
    """(helpers, questions to carmad) of one job on n1."""
    trace = cluster.dir / "log" / "calls"
    cluster.start("strace", ["strace", "-f", "-qq", "-e", "trace=execve,connect", "-s", 200, "-o", trace, "-p", cluster.running["slurmd-n1"].pid])
    slurm_labs.lab.until(lambda: "TracerPid:\t0" not in slurmd_status(cluster), "strace")
    cluster.run(command, user=cluster.user)
    slurm_labs.lab.until(lambda: cluster.node_states() == {"idle"}, "the job's epilog")
    cluster.kill("strace", signal.SIGINT)
    text = trace.read_text()
    return len(re.findall(r'execve\("\S*/carma-slurm-step"', text)), len(re.findall(r'connect\(.*carma\.sock"', text))


def slurmd_status(cluster):
    with open(f"/proc/{cluster.running['slurmd-n1'].pid}/status", encoding="utf-8") as status:
        return status.read()


def count(cluster):
    """{job: (helpers, questions, those that it should have)}; None: there is no strace."""
    if shutil.which("strace") is None:
        return None
    return {name: (*counts(cluster, command), wanted[0], wanted[1]) for name, (command, *wanted) in JOBS.items()}


def measure(build, runs):
    """{how: milliseconds of each start}, {how: those of the hand-shakes}, count(); one of each in turns. A task enters its lease's
    control group, unless Slurm has one for it."""
    with slurm_labs.Whole(build, 1) as bare, slurm_labs.Declared(build, 1) as carma, slurm_labs.Declared(build, 1) as grouped:
        if grouped.enter_own_group("n1") is None:
            raise SystemExit("bench/slurm --starts: no unified hierarchy of control groups can be written to here")
        ways = {"Slurm without carma": (bare,), "the plugin, no GPU asked": (carma,), "with a lease": (carma, GPU),
                "with a lease, in Slurm's own control group": (grouped, GPU)}
        for way in ways.values():
            one_start(*way)  # the first one also starts the user's MPS server
        carma.stamps.unlink()
        grouped.stamps.unlink()
        found = {name: [] for name in ways}
        for number in range(runs):
            grouped.enter_own_group("n1", 2 + number)
            for name, way in ways.items():
                found[name].append(one_start(*way))
        asked = [line for line in carma.stamps.read_text().splitlines() if " after " in line]
        shakes, others = carma.hand_shakes_ms(), grouped.hand_shakes_ms()
        assert len(asked) == len(shakes) == 2 * runs and len(others) == runs
        # the other ones asked for nothing
        return found, {"the task enters the lease's control group": shakes[1::2], "Slurm has one of its own": others}, count(carma)
