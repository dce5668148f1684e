"""Usage: test_forge.py CARMA SOURCE BUILD [sample|ROW...]: what a user of Slurm's tries, to have GPUs that Slurm does not count for him, or to
pass for somebody else. One cluster for all rows."""

import pwd
import re
import sys
import time

from lab import NODES, Lab, skip_where_impossible, until

POST = """
import json, socket, sys
body = json.dumps(dict(engine="slurm", cluster="lab", job=77, restart=0, node="n1", uid=0, command="x", gpu_memory=1 << 30))
one = socket.socket(socket.AF_UNIX)
one.connect(sys.argv[1])
one.sendall(f"POST /v1/leases HTTP/1.1\\r\\nHost: carma\\r\\nConnection: close\\r\\nContent-Type: application/json\\r\\n"
            f"Content-Length: {len(body)}\\r\\n\\r\\n{body}".encode())
sys.exit(one.recv(64).split()[1] == b"403")
"""
COUNTS = "TresPerNode=gres:gpumem:160G,gres:gpuslot:8 Restarts=7 JobState=CANCELLED"
# Another job's environment, or another machine's.
WORDS = "SLURM_CLUSTER_NAME=other SLURM_JOB_UID=0 SLURM_RESTART_COUNT=7 SLURMD_NODENAME=n2 SLURM_JOB_NAME=x"
OPTION = "_SLURM_SPANK_OPTION_carma_carma"

# What the user types; how many GPUs each task sees then, None where any is well; and the most MiB that a lease has on
# each of its GPUs, 0 where there is no lease. `see` notes what it sees, `b` submits a script of these words.
ROWS = {
    # Options of steps
    "a step asks for more": ("salloc --carma-mem=1G env SLURM_CLUSTER_NAME=other srun --carma-mem=39G --carma-gpus=4 see", [1], 1024),
    "a step asks for whole GPUs": ("salloc --carma-mem=1G srun --carma-exclusive see", [1], 1024),
    "a step asks for more GPUs": ("salloc --carma-mem=1G srun --carma-gpus=2 see", [1], 1024),
    "a step asks by Slurm's options": ("salloc --carma-mem=1G srun --gpus=4 see; salloc --carma-mem=1G srun --gres=gpuslot:8 see", None, 1024),
    "a step of a job without a count": ("b 'srun --carma-mem=30G see'", [], 0),
    "a step of an allocation without a count": ("salloc srun --carma-mem=30G see; salloc srun --carma-capture=auto see", [], 0),
    "the option by the environment": (f"b '{OPTION}_mem=30G {OPTION}_gpus=4 srun see'", None, 0),
    "the option by the submitter's environment": (f"{OPTION}_mem=30G {OPTION}_gpus=4 salloc --carma-mem=1G srun see", None, 1024),
    "a step without its options": ("b --carma-mem=1G 'env -i PATH=$PATH SLURM_CONF=$SLURM_CONF SLURM_JOB_ID=$SLURM_JOB_ID srun see'", [1], 1024),
    "the second of two steps": ("b --carma-mem=1G 'srun see; srun --carma-mem=39G see'", [1, 1], 1024),
    "a step from outside": ("j=$(b --carma-mem=1G 'sleep 3'); sleep 1.5; srun --overlap --jobid=$j --carma-mem=39G --carma-gpus=4 see", [1], 1024),
    "a plugstack of one's own": ("SLURM_CONF=$MINE salloc srun see; SLURM_CONF=$MINE salloc --gres=gpumem:160G,gpuslot:8 srun see", [0], 0),
    "a step without the plugin": ("salloc --carma-mem=1G env SLURM_CONF=$MINE srun see", [1], 1024),
    # Texts
    "a job's name": (f"b -J 'x {COUNTS}' --carma-mem=1G see", [1], 1024),
    "a name of several lines": (f"b -J 'x\n{COUNTS}' --carma-mem=1G see", [1], 1024),
    "a name without options": (f"b -J 'x {COUNTS}' see", [0], 0),
    "a comment": (f"b --comment='{COUNTS}' --carma-mem=1G see", [1], 1024),
    "a comment, later": ("j=$(b -H --carma-mem=1G see); scontrol update JobId=$j Comment='carma:gpu_oom:1.0 GiB->40.0 GiB'; scontrol release $j", [1], 1024),
    "an administrator's comment": ("j=$(b -H --carma-mem=1G see); scontrol update JobId=$j AdminComment=x; scontrol release $j", [1], 1024),
    "a folder": (f"mkdir -p '{COUNTS}'; b -D '{COUNTS}' --carma-mem=1G see", [1], 1024),
    "an output file": (f"sbatch -o 'x {COUNTS}' --carma-mem=1G --wrap=see", [1], 1024),
    "words that carmad refuses": ("b --carma-mem=1G 'SLURM_JOB_NAME= SLURM_SUBMIT_DIR=x srun see \"$(printf \"a\\033b\")\"'", [1], 1024),
    "an environment": (f"b --carma-mem=1G '{WORDS} srun see'", [1], 1024),
    "an exported environment": (f"{WORDS} b --carma-mem=1G see", [1], 1024),
    "another's GPUs by their names": ("CUDA_VISIBLE_DEVICES=GPU-0,GPU-1 b see; CUDA_VISIBLE_DEVICES=GPU-0,GPU-1 b --carma-mem=1G see", [0, 1], 1024),
    # Counts
    "counts without options": ("b --gres=gpumem:160G see; b --gres=gpuslot:8 see; b --gres=gpubig:1 see; b --gres=gpusm:1 see", [], 0),
    "counts beside an option": ("b --carma-mem=1G --gres=gpumem:160G,gpuslot:8 see", [1], 1024),
    "counts of one name twice": ("b --carma-gpus=1 --gres=gpumem:1G,gpumem:160G see", [1], 1024),
    "nothing, on four GPUs": ("b --carma-gpus=4 --gres=gpumem:0 see; b --carma-mem=0G see; b --carma-mem=-1G see", [], 0),
    "odd numbers": ("for n in 0x4 4.0 1e1 ' 4' 4x -4 0; do b --carma-mem=1G --carma-gpus=\"$n\" see; done", [], 0),
    "more than there is": ("b --carma-mem=41G see; b --carma-gpus=5 see; b --gpus-per-node=5 see; b --gpus=13 see; b --gres=gpu:5 see", [], 0),
    "less, before the start": ("j=$(b -H --carma-mem=12G see); for w in Gres=gpumem:1M TresPerNode=gres:gpumem:1M Gres=gpuslot:8 Gres=gpu:4 Gres=; do "
                               "scontrol update JobId=$j $w; done; scontrol release $j", [1], 12288),
    "more, while it runs": ("j=$(b --carma-mem=1G 'sleep 2; srun see'); sleep 1; scontrol update JobId=$j Gres=gpumem:160G,gpuslot:8", [1], 1024),
    "another partition of nodes": ("j=$(b -H --carma-mem=1G see); scontrol update JobId=$j NumNodes=2; scontrol release $j", [1], 1024),
    "a count that another job has": ("j=$(b --carma-mem=30G 'sleep 2'); salloc env SLURM_JOB_ID=$j SLURM_JOBID=$j srun --overlap true; salloc srun see", [0], 30720),
    # Kinds of jobs
    "a component without a count": ("salloc -n1 : --carma-mem=1G srun --het-group=0 see", [0], 0),
    "the components' own counts": ("salloc --carma-mem=1G : --carma-mem=2G --carma-gpus=2 srun --het-group=0,1 see", [1, 2], 2048),
    "tasks of an array": (f"b --array=0-1 -J 'x {COUNTS}' --carma-mem=1G 'srun --carma-gpus=4 see'", [1, 1], 1024),
    "a job that is requeued": (f"j=$(b -J 'x {COUNTS}' --carma-mem=1G 'see; [ $SLURM_RESTART_COUNT ] || {{ {WORDS} scontrol requeue $SLURM_JOB_ID; sleep 9; }}'); sleep 3; "
                              "until scontrol update JobId=$j StartTime=now+2; do sleep 0.5; done", [1, 1], 1024),
    # Past Slurm
    "a lease from carmad": ("python3 -c \"$POST\" $LAB/n1/carma.sock && exit 7; see", [0], 0),
    "the spool": ("touch $LAB/agent/n1/1.0.retry && exit 7; ls $LAB/agent/n1 && exit 7; echo 64 >$LAB/agent/n1/1.gpus && exit 7; see", [0], 0),
}
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")
SAMPLE = ["a step asks for more", "a step of a job without a count", "a job's name", "counts without options", "less, before the start",
          "a component without a count", "a lease from carmad"]


def write_helpers(lab):
    """see: notes how many GPUs a task has."""
    bin_ = lab.dir / "out/bin"
    bin_.mkdir()
    (bin_ / "see").write_text(f"#!/bin/sh\necho $CUDA_VISIBLE_DEVICES | tr , '\\n' | grep -c GPU- >>{lab.dir}/out/seen\ntrue\n")
    (bin_ / "b").write_text("#!/bin/sh\nfor w; do :; done\nn=$#; i=1\nfor o; do [ $i = 1 ] && set --; [ $i -lt $n ] && set -- \"$@\" \"$o\"; i=$((i+1)); done\n"
                            f"exec sbatch --parsable --open-mode=append -o {lab.dir}/out/said \"$@\" --wrap=\"$w\"\n")
    for one in bin_.iterdir():
        one.chmod(0o755)
    mine = lab.dir / "out/mine.conf" # without carma's plugin and filter
    mine.write_text("".join(f"{line}\n" for line in (lab.dir / "etc/slurm.conf").read_text().splitlines()
                            if not line.startswith(("PlugStack", "CliFilter"))))
    return {"PATH": f"{bin_}:{lab.env['PATH']}", "MINE": str(mine), "LAB": str(lab.dir), "POST": POST}


def all_leases(lab):
    return [lease for node in NODES for lease in lab.ask(node, "GET", "/v1/leases/by-key")[1]["leases"]]


def try_row(lab, env, user, name):
    typed, sees, most_mib = ROWS[name]
    seen = lab.dir / "out/seen"
    seen.write_text("")
    seen.chmod(0o666)
    (lab.dir / "out/said").unlink(missing_ok=True)
    before = len(all_leases(lab))
    said = lab.run(["sh", "-c", typed], user=user, env=env, check=False)
    said += lab.errors
    until(lambda: all(state.startswith(ENDED) for state in
                      re.findall(" JobState=([A-Z_]+) Reason", lab.run(["scontrol", "show", "job", "-o"]))), f"{name}: the end of the jobs")
    said += lab.output("said")
    found = [int(line) for line in seen.read_text().split()]
    assert sees is None or sorted(found) == sees, f"{name}: {found}: {said}"
    leases = sorted(all_leases(lab), key=lambda lease: lease["job"])[before:]
    assert not leases if most_mib == 0 else leases or not sees, f"{name}: leases {leases}: {said}"
    for lease in leases:
        most = max(sees or [1]) or 1
        assert lease["uid"] == user and lease["cluster"] == "lab" and len(lease["gpus"]) <= most, f"{name}: {lease}: {said}"
        assert lease["request_bytes"] is not None and lease["request_bytes"] <= most_mib << 20, f"{name}: {lease}: {said}"
    until(lambda: lab.node_states() == {"idle"}, f"{name}: idle nodes: {lab.run(['sinfo', '-R'])}")


def main():
    skip_where_impossible()
    names = SAMPLE if sys.argv[4:] == ["sample"] else sys.argv[4:] or list(ROWS)
    with Lab(*sys.argv[1:4]) as lab:
        env = write_helpers(lab)
        failed = []
        for name in names:
            began = time.monotonic()
            try:
                try_row(lab, env, pwd.getpwnam("nobody").pw_uid, name)
            except AssertionError as error:
                failed.append(str(error))
            print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
        assert not failed, "\n".join(failed)
    return 0


sys.exit(main())
