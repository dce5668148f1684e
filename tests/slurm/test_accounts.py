"""Usage: test_accounts.py CARMA SOURCE BUILD: what sacct says of carma's jobs, by which a site bills: on a cluster with slurmdbd
and a MariaDB of its own. The settings are those of docs/slurm.md, "Accounts"."""

import collections
import re
import shutil
import socket
import subprocess
import sys

from lab import NODES, SKIPPED, Lab, free_ports, skip_where_impossible, until
from test_failures import kill_all, processes

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.80 GiB."
BACK, DONE = ("REQUEUED", "0:0"), ("COMPLETED", "0:0")


class Accounts(Lab):
    def write_slurm(self):
        super().write_slurm()
        self.ports = free_ports(2)
        etc = self.dir / "etc"
        for name in ["slurm", *NODES]:
            text = (etc / f"{name}.conf").read_text().replace("LLN=YES", "LLN=YES TRESBillingWeights=GRES/gpumem=1.0G")
            (etc / f"{name}.conf").write_text(f"""{text}\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={self.ports[0]}
AccountingStorageTRES=gres/gpumem,gres/gpubig
AccountingStoreFlags=job_comment
JobAcctGatherType=jobacct_gather/linux
""")
        (etc / "slurmdbd.conf").write_text(f"""\
AuthType=auth/none
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={self.ports[0]}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={self.ports[1]}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
PidFile={self.dir}/slurmdbd.pid
""")
        (etc / "slurmdbd.conf").chmod(0o600)

    def start_slurmctld(self, *arguments):
        data = self.dir / "database"
        data.mkdir()
        shutil.chown(data, "nobody")
        common = ["--no-defaults", f"--datadir={data}", "--user=nobody"]
        self.run(["mariadb-install-db", *common, "--skip-test-db", "--auth-root-authentication-method=normal"])
        self.start("mariadbd", ["mariadbd", *common, f"--socket={data}/socket", f"--pid-file={data}/pid",
                                f"--port={self.ports[1]}", "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=16M"])
        words = "CREATE USER slurm@'127.0.0.1' IDENTIFIED BY 'slurm'; GRANT ALL ON slurm.* TO slurm@'127.0.0.1';"
        client = ["mariadb", "--no-defaults", "-u", "root", f"--socket={data}/socket", "-e", words]
        until(lambda: not subprocess.run(client, capture_output=True, check=False).returncode, "the database")
        self.start("slurmdbd", ["slurmdbd", "-D"])
        until(lambda: not socket.socket().connect_ex(("127.0.0.1", self.ports[0])), "slurmdbd")
        self.run(["sacctmgr", "-i", "add", "cluster", "lab"])
        super().start_slurmctld(*arguments)

    def sacct(self, fields, *options):
        """The rows of all runs of all jobs, the earliest first."""
        text = self.run(["sacct", "-a", "-D", "-n", "-P", "--noconvert", "-o", f"JobID,{fields}", *options])
        return [line.split("|") for line in text.splitlines()]

    def ends(self):
        """{job: [(state, exit code) of its runs]}. On a busy machine a job may go back twice for one reason."""
        found = collections.defaultdict(list)
        for job, state, code in self.sacct("State,ExitCode", "-X"):
            one = (state.split()[0], code)
            found[job] += [one] if found[job][-1:] != [one] else []
        return found


def jobs(lab):
    """{job: what ends() should say of it}, of jobs that have ended."""
    once = f"[ -e out.$SLURM_JOB_ID ] || {{ touch out.$SLURM_JOB_ID; echo '{OOM}' >&2; exit 1; }}"
    waits = "[ -e back.$SLURM_JOB_ID ] || exec sleep 36000"
    one = ["--carma-mem=12G", "-w", "n2"]
    array = lab.sbatch("--array=0-2", *one, wrap=f"srun true; [ $SLURM_ARRAY_TASK_ID != 2 ] || {once}")
    lab.oom, failed = lab.sbatch(*one, wrap=f"{once}; srun true"), lab.sbatch(*one, wrap="srun sh -c 'exit 3'")
    lost, gone, back = (lab.sbatch(*one, wrap=waits) for _ in range(3))
    for job in (lost, gone, back):
        until(lambda job=job: any("batch" in lease["steps"] and str(lease["job"]) == job for lease in lab.leases("n2")), job)
    kill_all(processes(lab, lost)[1])
    lab.run(["scancel", gone])
    (lab.dir / f"out/back.{back}").touch()
    lab.run(["scontrol", "requeue", back])
    until(lambda: lab.job(back)["JobState"] == "PENDING", "a requeue")
    soon = ["scontrol", "update", f"JobId={back}", "StartTime=now+2"]
    until(lambda: not lab.run(soon, check=False) and not lab.errors, "a start soon")
    lab.kill("carmad-n1")
    lab.refused = lab.sbatch("--carma-mem=12G", "-w", "n1", wrap="true")
    until(lambda: lab.job(lab.refused).get("Restarts") == "1", "a refusal")
    lab.start_carmad("n1")
    until(lambda: not lab.run(["squeue", "-h", "-t", "PD,R,CG"], check=False), "the end of all jobs")
    return {f"{array}_0": [DONE], f"{array}_1": [DONE], f"{array}_2": [BACK, DONE], lab.oom: [BACK, DONE],
            failed: [("FAILED", "3:0")], lost: [("CANCELLED", "0:0")], gone: [("CANCELLED", "0:0")], back: [BACK, DONE],
            lab.refused: [BACK, DONE]}


def main():
    skip_where_impossible()
    for program in ["slurmdbd", "mariadbd", "mariadb-install-db", "mariadb"]:
        if shutil.which(program) is None:
            print(f"skipped: no {program} here: script/packages test installs it")
            sys.exit(SKIPPED)
    with Accounts(*sys.argv[1:4], wait_s=2) as lab:
        wanted = jobs(lab)
        until(lambda: len(lab.ends()) == len(wanted) and "RUNNING" not in str(lab.sacct("State")), "slurmdbd's word")
        assert lab.ends() == wanted, lab.ends()
        states = {state.split()[0] for job, state in lab.sacct("State") if "." in job}
        assert states == {"COMPLETED", "FAILED", "CANCELLED"}, states
        runs = [tres for job, tres in lab.sacct("AllocTRES", "-X") if job == lab.oom]
        counts = [int(re.search(r"gres/gpumem=(\d+)", tres)[1]) >> 30 for tres in runs]
        # Slurm bills the second run as the first.
        assert counts[0] == 12 < counts[-1] and "billing=12," in runs[0], runs
        notes = {job: note for job, note in lab.sacct("Comment", "-X") if note}
        assert notes[lab.oom].startswith("carma:gpu_oom:12.0 GiB->"), notes
        assert notes[lab.refused].startswith("carma:refused:n1"), notes
        assert "No runaway jobs" in lab.run(["sacctmgr", "-i", "show", "runaway"]) + lab.errors


sys.exit(main())
