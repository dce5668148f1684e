"""A loopback Slurm cluster for tests: slurmctld, three slurmd, and on each node a carmad with four virtual GPUs and its
carma-slurm-agent. All of it lies below one temporary folder, listens on free ports, and ends with the `with` block. It needs root:
slurmstepd becomes the users."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

# A cluster is many programs, and slow on a busy machine.
PATIENCE_S = max(60.0, float(os.environ.get("PATIENCE_S", "90")))
GPU_GIB, GPUS, GPU_SM, GPU_SLOTS = 40, 4, 1500, 32
NODES = ["n1", "n2", "n3"]
SKIPPED = 77


def skip_where_impossible():
    if "SLURM_PROGRAMS" in os.environ: # before the distribution's: tests/contain.py puts Python's own folder first
        os.environ["PATH"] = os.environ["SLURM_PROGRAMS"] + ":" + os.environ["PATH"]
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if os.getuid() != 0:
        print("skipped: only root can run Slurm's daemons for several users")
        sys.exit(SKIPPED)
    for program in ["slurmctld", "slurmd", "sbatch"]:
        if shutil.which(program) is None:
            print(f"skipped: no {program} here: script/packages test installs it")
            sys.exit(SKIPPED)


def until(condition, what, patience_s=PATIENCE_S):
    """Waits until condition() gives something true, and returns that."""
    end = time.monotonic() + patience_s
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"it does not come: {what}")
        time.sleep(0.05)


def slurm_release():
    said = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=True).stdout
    return tuple(int(number) for number in said.split()[-1].split(".")[:2])


PORTS_HELD = []  # for as long as this process lives


def free_ports(count):
    """Ports below those that the kernel gives out, each kept from other labs by an abstract socket of its number: the
    daemons that listen there come seconds later, and a lab beside this one would find them free as well."""
    found = []
    for port in random.sample(range(20000, 32000), 4000):
        name, listener = socket.socket(socket.AF_UNIX), socket.socket()
        try:
            name.bind(f"\0carma-lab-port-{port}")
            listener.bind(("127.0.0.1", port))
        except OSError:
            name.close()
            continue
        finally:
            listener.close()
        PORTS_HELD.append(name)
        found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError("no ports are free")


class Lab:
    profile = "a100x4-40g"
    period_s = 1  # between an agent's looks at its node
    sharing = ("share=time-slice", "mps_pipe_directory={lab.dir}/{node}/mps")  # carmad's settings of it

    def __init__(self, carma, source, build, scale=60, gpubig=True, wait_s=8, job_sm=600):
        self.source, self.build = pathlib.Path(source), pathlib.Path(build)
        self.plugin = self.build / "src/slurm/plugin/libcarma_spank.so"
        if not self.plugin.exists():
            print("skipped: libcarma_spank.so was not built: script/packages test installs libslurm-dev")
            sys.exit(SKIPPED)
        self.carma_program = pathlib.Path(carma)
        self.scale, self.gpubig, self.wait_s, self.job_sm = scale, gpubig, wait_s, job_sm
        self.running, self.groups = {}, []

    def __enter__(self):
        # The users' jobs and output files are below it.
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="carma-slurm-"))
        self.dir.chmod(0o755)
        try:
            self.write_prefix()
            self.write_slurm()
            for node in NODES:
                (self.dir / node).mkdir()
                self.run([self.prefix / "bin/carma-vnode", "create", self.vnode(node), "--profile", self.profile])
                self.start_carmad(node)
            self.start_slurmctld()
            for node in NODES:
                self.start_slurmd(node)
                self.start_agent(node)
            for node in NODES:
                self.until_carmad(node)
            until(lambda: set(self.run(["sinfo", "-h", "-N", "-o", "%T"]).split()) == {"idle"}, "idle nodes")
            until(lambda: "SchedulerParameters=" in self.log("slurmctld"), "Slurm's scheduler")
        except BaseException:
            self.print_logs()
            self.stop()
            raise
        return self

    def __exit__(self, kind, _value, _trace):
        if kind is not None and not issubclass(kind, SystemExit):
            self.print_logs()
        self.stop()

    def print_logs(self):
        for log in sorted((self.dir / "log").glob("*")):
            lines = log.read_text(errors="replace").splitlines()[-40:]
            print(f"--- {log.name}", *lines, sep="\n", file=sys.stderr)

    def write_prefix(self):
        self.prefix = self.dir / "prefix"
        links = {
            "bin": ["cli/carma", "daemon/carmad", "vnode/carma-train", "vnode/carma-vnode"],
            "lib/carma": ["cli/carma-tools", "gpu/carma-monitor", "launch/carma-shepherd", "sandbox/carma-sandbox"],
            "lib/carma/vnode": ["vnode/libnvidia-ml.so.1"],
        }
        for folder, programs in links.items():
            (self.prefix / folder).mkdir(parents=True, exist_ok=True)
            for program in programs:
                (self.prefix / folder / pathlib.Path(program).name).symlink_to(self.build / "src" / program)
        share = self.prefix / "share/carma"
        share.mkdir(parents=True)
        for data in ["nodes", "workloads.csv", "summaries", "traces"]:
            (share / data).symlink_to(self.source / "data" / data)
        self.train = self.prefix / "bin/carma-train"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("CARMA", "SLURM", "SBATCH"))}
        self.env.update(CARMA_PREFIX=str(self.prefix), CARMA_TIME_SCALE=str(self.scale), LC_ALL="C", TZ="UTC",
                        SLURM_CONF=str(self.dir / "etc/slurm.conf"))

    def write_slurm(self):
        for folder in ["etc", "log", "state", "out", "spool", "agent"]:
            (self.dir / folder).mkdir()
        (self.dir / "out").chmod(0o1777)
        host = socket.gethostname().split(".")[0]
        ports = free_ports(1 + len(NODES))
        gres = f"gpumem:{GPU_GIB * GPUS}G,gpubig:{GPUS},gpusm:{GPU_SM * GPUS},gpuslot:{GPU_SLOTS * GPUS}"
        nodes = "".join(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} Gres={gres}\n"
                        for node, port in zip(NODES, ports[1:]))
        etc = self.dir / "etc"
        text = f"""\
ClusterName=lab
DebugFlags=NO_CONF_HASH
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={self.dir}/state
SlurmdSpoolDir={self.dir}/spool/%n
SlurmctldPidFile={self.dir}/slurmctld.pid
SlurmdPidFile={self.dir}/slurmd-%n.pid
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskProlog={etc}/task_prolog
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=100000,bf_interval=1,bf_hetjob_prio=min
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
ReturnToService=2
JobRequeue=1
KillWait=5
MinJobAge=86400
GresTypes=gpu,gpumem,gpubig,gpusm,gpuslot
PlugStackConfig={etc}/plugstack.conf
CliFilterPlugins=lua
JobSubmitPlugins=lua
NodeName=DEFAULT CPUs=64 Boards=1 SocketsPerBoard=1 CoresPerSocket=64 ThreadsPerCore=1 RealMemory=4000 State=UNKNOWN
{nodes}PartitionName=main Nodes=ALL LLN=YES Default=YES MaxTime=INFINITE State=UP
"""
        # Newer Slurms look for control groups even where nothing uses them; 22.05 does not know this word.
        if slurm_release() >= (23, 11):
            (etc / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        (etc / "gres.conf").write_text(f"AutoDetect=off\nName=gpumem Count={GPU_GIB * GPUS}G Flags=CountOnly\n"
                                       f"Name=gpubig Count={GPUS} Flags=CountOnly\n"
                                       f"Name=gpusm Count={GPU_SM * GPUS} Flags=CountOnly\n"
                                       f"Name=gpuslot Count={GPU_SLOTS * GPUS} Flags=CountOnly\n")
        (etc / "slurm.conf").write_text(text)
        (etc / "plugstack.conf").write_text(f"required {self.plugin}\n")
        # Each slurmd as on a machine of its own: its plugin's socket and folder are other ones.
        for node in NODES:
            (etc / f"plugstack-{node}.conf").write_text(
                f"required {self.plugin} socket={self.socket(node)} spool={self.dir}/agent/{node} "
                f"wait={self.wait_s}\n")
            (etc / f"{node}.conf").write_text(text.replace("plugstack.conf", f"plugstack-{node}.conf"))
        # A real GPU needs no more than carmad's environment; a virtual one is a file.
        (etc / "task_prolog").write_text(f"#!/bin/sh\necho export CARMA_VNODE={self.dir}/$SLURMD_NODENAME/node\n"
                                         f"echo export CARMA_TIME_SCALE={self.scale}\n"
                                         f"echo export CARMA_PREFIX={self.prefix}\n")
        (etc / "task_prolog").chmod(0o755)
        integrations = self.source / "integrations/slurm"
        submit = (integrations / "job_submit.lua").read_text()
        submit = submit.replace("local JOB_SM = 600", f"local JOB_SM = {self.job_sm}")
        if not self.gpubig:
            submit = submit.replace("local COUNT_BIG = true", "local COUNT_BIG = false")
        (etc / "job_submit.lua").write_text(submit)
        client = (integrations / "cli_filter.lua").read_text()
        (etc / "cli_filter.lua").write_text(client.replace('"/usr/bin/carma"', f'"{self.prefix}/bin/carma"'))

    def vnode(self, node):
        return self.dir / node / "node"

    def socket(self, node):
        return self.dir / node / "carma.sock"

    def walk(self, rows):
        """One after the other; each leaves no node drained, and no lease."""
        for row in rows:
            began = time.monotonic()
            print(row.__name__, flush=True)
            try:
                row(self)
                until(lambda: self.node_states() == {"idle"}, "idle nodes: " + self.run(["sinfo", "-R"]))
                for node in NODES:
                    until(lambda node=node: not self.leases(node), f"no lease left on {node}")
            except BaseException:
                for path in sorted((self.dir / "out").glob("[0-9]*")):
                    print(f"--- output of {path.name}", path.read_text(errors="replace")[-2000:], self.job(path.name), sep="\n")
                raise
            print(f"  {time.monotonic() - began:.1f} s", flush=True)

    def log(self, name):
        path = self.dir / "log" / name
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self, name, command, **env):
        with open(self.dir / "log" / name, "ab") as log:
            self.running[name] = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log,
                                                  stderr=log, env={**self.env, **env})

    def start_carmad(self, node):
        self.start("carmad-" + node, [
            self.prefix / "bin/carmad", "--state", self.dir / node / "state", "--socket", self.socket(node),
            "--config", "/dev/null", "--set", f"nvml_library={self.prefix}/lib/carma/vnode/libnvidia-ml.so.1",
            "--set", "grace=500ms", "--set", "engine=slurm", "--set", "gate=memory",
            *(word for one in self.sharing for word in ("--set", one.format(lab=self, node=node)))], CARMA_VNODE=str(self.vnode(node)))

    def until_carmad(self, node):
        until(lambda: '"observed_ns": ' in self.carma(node, "gpus", "--json"), f"carmad of {node}")

    def start_slurmctld(self, *arguments):
        self.start("slurmctld", ["slurmctld", "-D", "-i", *arguments])

    def start_slurmd(self, node, *arguments):
        self.start("slurmd-" + node, ["slurmd", "-D", "-f", self.dir / "etc" / f"{node}.conf", "-N", node, *arguments])

    def enter_own_group(self, node, job=1):
        """From now on the node's steps are born in a control group of the name that Slurm's own have for that job. Returns the
        group, or None where there is no unified hierarchy to write to."""
        mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
        root = next((pathlib.Path(words[1]) for words in mounts if words[2] == "cgroup2"), None)
        if root is None or not os.access(root / "cgroup.procs", os.W_OK):
            return None
        group = root / self.dir.name / node / f"slurmstepd.scope/job_{job}/step_batch/task_0"
        group.mkdir(parents=True)
        self.groups.append((root, group))
        (group / "cgroup.procs").write_text(str(self.running[f"slurmd-{node}"].pid))
        return f"/{group.relative_to(root)}"

    def remove_groups(self):
        for root, group in self.groups:
            for folder in [group, *group.parents]:
                if folder == root or any(one.is_dir() for one in folder.iterdir()): # another node has one below it
                    break
                folder.rmdir()

    def start_agent(self, node, **env):
        self.start("agent-" + node, [self.build / "src/slurm/agent/carma-slurm-agent", "--socket", self.socket(node),
                                     "--spool", self.dir / "agent" / node, "--node", node, "--period", self.period_s], **env)

    def kill(self, name, number=signal.SIGKILL):
        process = self.running.pop(name)
        process.send_signal(number)
        process.wait()

    def stop(self):
        if "slurmctld" in self.running:
            jobs = self.run(["squeue", "-h", "-o", "%A"], check=False).split()
            if jobs:
                self.run(["scancel", "--full", *jobs], check=False)
                end = time.monotonic() + 15
                while time.monotonic() < end and self.run(["squeue", "-h"], check=False).strip():
                    time.sleep(0.1)
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.end_strays()
        self.remove_groups()
        shutil.rmtree(self.dir, ignore_errors=True)

    def end_strays(self):
        """Steps and shepherds whose daemons are gone."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            if int(process.name) != os.getpid() and self.owns(process):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process.name), signal.SIGKILL)

    def owns(self, process):
        """Whether this folder of /proc is a process of this lab: by its environment, which newer slurmstepds wipe, by a file that
        it has open, or by its children: an srun's slurmstepd has none open."""
        with contextlib.suppress(OSError): # it has ended
            if str(self.dir).encode() in (process / "environ").read_bytes():
                return True
            for file in (process / "fd").iterdir():
                with contextlib.suppress(OSError): # it was closed
                    if os.readlink(file).startswith(f"{self.dir}/"):
                        return True
            children = [child for thread in (process / "task").iterdir() for child in (thread / "children").read_text().split()]
            return (process / "comm").read_text() == "slurmstepd\n" and any(self.owns(pathlib.Path("/proc", child)) for child in children)
        return False

    def run(self, command, check=True, user=None, cwd=None, env=None):
        command = [str(word) for word in command]
        if user is not None:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *command]
        done = subprocess.run(command, capture_output=True, text=True, env={**self.env, **(env or {})}, check=False,
                              cwd=cwd or self.dir / "out", timeout=PATIENCE_S)
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: status {done.returncode}: {done.stdout}{done.stderr}")
        self.errors = done.stderr
        return done.stdout

    def carma(self, node, *arguments, check=False):
        return self.run([self.prefix / "bin/carma", *arguments], check=check, env={"CARMA_SOCKET": str(self.socket(node))})

    def ask(self, node, method, path, body=None):
        """carmad's answer to root: (status, JSON)."""
        text = json.dumps(body) if body is not None else ""
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(PATIENCE_S)
            one.connect(str(self.socket(node)))
            one.sendall(f"{method} {path} HTTP/1.1\r\nHost: carma\r\nConnection: close\r\nContent-Type: application/json\r\n"
                        f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
            whole = b""
            while part := one.recv(65536):
                whole += part
        head, _, rest = whole.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(rest) if rest.strip() else None

    def leases(self, node):
        return self.ask(node, "GET", "/v1/leases")[1]["leases"]

    def sbatch(self, *arguments, wrap=None, **kwargs):
        words = ["sbatch", "--parsable", "--open-mode=append", "-o", f"{self.dir}/out/%j", *arguments]
        return self.run(words + (["--wrap", wrap] if wrap else []), **kwargs).strip()

    def train(self, *arguments):
        return " ".join(["exec", str(self.prefix / "bin/carma-train"), *arguments])

    def output(self, job):
        path = self.dir / "out" / job
        return path.read_text(errors="replace") if path.exists() else ""

    def job(self, job):
        """Slurm's properties of a job; {} when Slurm has forgotten it."""
        line = self.run(["scontrol", "show", "job", "-o", job], check=False)
        return dict(word.split("=", 1) for word in line.split() if "=" in word)

    def until_state(self, job, *states):
        return until(lambda: (found := self.job(job)).get("JobState") in states and found, f"job {job} {states}")

    def until_end(self, job):
        return self.until_state(job, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")

    def ended(self, job, state="COMPLETED"):
        found = self.until_end(job)
        assert found["JobState"] == state, f"job {job}: {found}: {self.output(job)}"
        return found

    def node_states(self):
        return set(self.run(["sinfo", "-h", "-N", "-o", "%T"]).split())
