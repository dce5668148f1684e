"""The loopback clusters of bench/slurm: tests/slurm/lab.py's, with one way or another to give jobs their GPUs."""

import os
import pathlib
import re
import stat
import sys

import common

sys.path.insert(0, str(common.ROOT / "tests" / "slurm"))
import lab  # noqa: E402


def contain():
    """All that this program starts ends with it, however it ends. Returns in a process of its own."""
    if "CONTAIN_PID" not in os.environ:
        program = common.ROOT / "tests/contain.py"
        os.execv(sys.executable, [sys.executable, "-S", "-B", str(program), sys.executable, "-B", *sys.argv])


class Cluster(lab.Lab):
    """Jobs of the trace by sbatch, each with times of its own in the folder `out`."""

    name, user = None, "65534"  # nobody, an ordinary user
    period_s = 5  # the default

    def __init__(self, build, scale):
        super().__init__(build / "bin" / "carma", common.ROOT, build / "meson", scale)
        self.stamp = build / "meson" / "bench" / "bench-stamp"

    def edit(self, pattern, new):
        """slurmctld's configuration, and each node's."""
        for name in ["slurm", *lab.NODES]:
            path = self.dir / "etc" / f"{name}.conf"
            text, count = re.subn(pattern, new, path.read_text())
            if count == 0:
                raise AssertionError(f"{path} has no {pattern!r}")
            path.write_text(text)

    def request(self, workload, number):
        """sbatch's options for the number-th job of the trace; None: it cannot be expressed."""
        raise NotImplementedError

    def refusals(self, output):
        """carmad's reasons in a job's output, one for each start that it refused."""
        return []

    def hand_shakes_ms(self):
        return []

    def energy_j(self):
        """Of all GPUs since the lab began, by the virtual NVML's counters."""
        shown = [self.run([self.prefix / "bin/carma-vnode", "show", self.vnode(node)]) for node in lab.NODES]
        return sum(1000 * float(kilo) for text in shown for kilo in re.findall(r"energy ([\d.]+) kJ", text))


class Alone(Cluster):
    """Slurm without carma: no daemon, no plugin, no filter."""

    types, count, lines = None, None, ()

    def write_slurm(self):
        super().write_slurm()
        etc = self.dir / "etc"
        for number in range(lab.GPUS):
            os.mknod(etc / f"gpu{number}", stat.S_IFCHR | 0o666, os.makedev(195, number))
        self.edit(r"Gres=gpumem\S*", f"Gres={self.count}")
        self.edit("GresTypes=gpu,gpumem,gpubig,gpusm,gpuslot", f"GresTypes={self.types}")
        self.edit(" LLN=YES", "")
        for setting in ("PlugStackConfig", "CliFilterPlugins", "JobSubmitPlugins"):
            self.edit(f"{setting}=.*\n", "")
        for stack in etc.glob("plugstack*.conf"): # Slurm finds one beside slurm.conf by itself
            stack.unlink()
        (etc / "gres.conf").write_text("\n".join(["AutoDetect=off", f"Name=gpu File={etc}/gpu[0-{lab.GPUS - 1}]",
                                                  *self.lines, ""]))

    def start_carmad(self, node):
        pass

    def start_agent(self, node):
        pass

    def until_carmad(self, node):
        pass


class Whole(Alone):
    """gres/gpu: a job has its GPUs for itself."""

    name, types, count = "gres/gpu", "gpu", f"gpu:{lab.GPUS}"

    def request(self, workload, number):
        return [f"--gres=gpu:{workload['gpus']}"]


class Shard(Alone):
    """gres/shard, one for each GiB: Slurm finds a GPU with so many left. No job has shards of two GPUs."""

    name, types, count = "shard", "gpu,shard", f"gpu:{lab.GPUS},shard:{lab.GPUS * lab.GPU_GIB}"
    lines = (f"Name=shard Count={lab.GPUS * lab.GPU_GIB}",)

    def request(self, workload, number):
        return [f"--gres=shard:{needed_gib(workload)}"] if workload["gpus"] == "1" else None


class Carma(Cluster):
    """carmad with default settings but those that docs/slurm.md asks for; the plugin between two stamps."""

    settings = ()

    def write_slurm(self):
        super().write_slurm()
        self.stamps = self.dir / "stamps"
        stamp = f"required {self.build}/bench/bench_spank_stamp.so {self.stamps}"
        for node in lab.NODES:
            plugstack = self.dir / f"etc/plugstack-{node}.conf"
            plugstack.write_text(f"{stamp} before\n{plugstack.read_text()}{stamp} after\n")

    def start_carmad(self, node):
        vnode = self.build / "src/vnode"
        self.start("carmad-" + node, [
            self.prefix / "bin/carmad", "--state", self.dir / node / "state", "--socket", self.socket(node),
            "--config", "/dev/null", "--set", f"nvml_library={vnode}/libnvidia-ml.so.1",
            "--set", f"mps_control={vnode}/nvidia-cuda-mps-control", "--set", "engine=slurm", "--set", "max_slowdown=3",
            *(word for setting in self.settings for word in ("--set", setting))],
            CARMA_VNODE=str(self.vnode(node)))

    def hand_shakes_ms(self):
        """Of the tasks that got their GPUs."""
        before, found = {}, []
        for line in self.stamps.read_text().splitlines() if self.stamps.exists() else []:
            job, word, time_ns = line.split()
            if word == "before":
                before[job] = int(time_ns)
            else:
                found.append((int(time_ns) - before[job]) / 1e6)
        return found

    def refusals(self, output):
        return re.findall(r"carma: \S+ has no GPU for job \d+ now \((.*)\): it goes back", output)


class Declared(Carma):
    """Each job says what it needs, an array what most of its tasks do; every twelfth says 30% too little."""

    name = "carma, declared"

    def request(self, workload, number):
        gib = needed_gib(workload)
        said = max(1, int(gib * 0.7)) if number % 12 == 11 else gib
        return [f"--carma-gpus={workload['gpus']}", f"--carma-mem={said}G"]


class Together(Declared):
    """One MPS server for all users, which drivers have from 555 on."""

    name, settings = "carma, one server", ("mps_multiuser=yes",)

    def write_slurm(self):
        super().write_slurm()
        text = (common.ROOT / "data/nodes/a100x4-40g.ini").read_text()
        self.profile = self.dir / "etc/newer.ini"
        self.profile.write_text(re.sub("driver_version = .*", "driver_version = 555.42.02", text))


class Estimated(Carma):
    """No job says what it needs: carma estimates by the model's summary. Of a job without one nothing is known."""

    name = "carma, estimated"

    def request(self, workload, number):
        gpus = f"--carma-gpus={workload['gpus']}"
        if not workload["summary"]:
            return [gpus]
        return [gpus, f"--carma-summary={common.ROOT / 'data' / workload['summary']}",
                f"--carma-batch-size={workload['batch_size']}"]


def needed_gib(workload):
    """The published peak, or the resident memory where that is more, in whole GiB."""
    mib = max(int(workload["peak_mib"]), int(workload["resident_mib"]))
    return min(-(-mib // 1024), lab.GPU_GIB)


CLUSTERS = (Whole, Shard, Declared, Together, Estimated)


def build_dir(path):
    build = pathlib.Path(path).resolve()
    for needed in ("bin/carma", "meson/bench/bench_spank_stamp.so", "meson/src/slurm/plugin/libcarma_spank.so"):
        if not (build / needed).exists():
            sys.exit(f"{sys.argv[0]}: {build}/{needed} is not there: script/packages test installs libslurm-dev, "
                     f"script/build {build} builds it")
    return build
