"""What the plugin adds to a job's start on an idle cluster, at the clock of life."""

import slurm_labs

GPU = "--carma-mem=1G"


def one_start(cluster, *options):
    """Milliseconds from srun's start to the job's first instruction."""
    file = cluster.dir / "out" / "stamp"
    said = cluster.run([cluster.stamp, "--then", "srun", "-Q", *options, cluster.stamp, file], user=cluster.user)
    return (int(file.read_text()) - int(said.split()[0])) / 1e6


def measure(build, runs):
    """{how: milliseconds of each start}, {how: those of the hand-shakes}; one of each in turns. A task enters its lease's
    control group, unless Slurm has one for it."""
    with slurm_labs.Whole(build, 1) as bare, slurm_labs.Declared(build, 1) as carma, slurm_labs.Declared(build, 1) as grouped:
        if None in [grouped.enter_own_group(node) for node in slurm_labs.lab.NODES]:
            raise SystemExit("bench/slurm --starts: no unified hierarchy of control groups can be written to here")
        ways = {"Slurm without carma": (bare,), "the plugin, no GPU asked": (carma,), "with a lease": (carma, GPU),
                "with a lease, in Slurm's own control group": (grouped, GPU)}
        for way in ways.values():
            one_start(*way)  # the first one also starts the user's MPS server
        carma.stamps.unlink()
        grouped.stamps.unlink()
        found = {name: [] for name in ways}
        for _ in range(runs):
            for name, way in ways.items():
                found[name].append(one_start(*way))
        asked = [line for line in carma.stamps.read_text().splitlines() if " after " in line]
        shakes, others = carma.hand_shakes_ms(), grouped.hand_shakes_ms()
        assert len(asked) == len(shakes) == 2 * runs and len(others) == runs
        # the other ones asked for nothing
        return found, {"the task enters the lease's control group": shakes[1::2], "Slurm has one of its own": others}
