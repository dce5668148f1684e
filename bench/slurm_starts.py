"""What the plugin adds to a job's start on an idle cluster, at the clock of life."""

import slurm_labs

GPU = "--carma-mem=1G"


def one_start(cluster, *options):
    """Milliseconds from srun's start to the job's first instruction."""
    file = cluster.dir / "out" / "stamp"
    said = cluster.run([cluster.stamp, "--then", "srun", "-Q", *options, cluster.stamp, file], user=cluster.user)
    return (int(file.read_text()) - int(said.split()[0])) / 1e6


def measure(build, runs):
    """{how: milliseconds of each start}, and those of the hand-shakes; one of each in turns."""
    with slurm_labs.Whole(build, 1) as bare, slurm_labs.Declared(build, 1) as carma:
        ways = {"Slurm without carma": (bare,), "the plugin, no GPU asked": (carma,), "with a lease": (carma, GPU)}
        for way in ways.values():
            one_start(*way)  # the first one also starts the user's MPS server
        carma.stamps.unlink()
        found = {name: [] for name in ways}
        for _ in range(runs):
            for name, way in ways.items():
                found[name].append(one_start(*way))
        asked = [float(line.split()[2]) for line in carma.stamps.read_text().splitlines() if " after " in line]
        shakes = carma.hand_shakes_ms()
        assert len(asked) == len(shakes) == 2 * runs
        return found, shakes[1::2]  # the other ones asked for nothing
