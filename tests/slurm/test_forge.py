"""Usage: test_forge.py CARMA SOURCE BUILD: a user of Slurm's cannot pass for Slurm, nor change what it says about his job."""

import pwd
import sys

from lab import Lab, skip_where_impossible, until

POST = """
import json, socket, sys
body = json.dumps(dict(engine="slurm", cluster="lab", job=77, restart=0, node="n1", uid=0, command="x", gpu_memory=1 << 30))
one = socket.socket(socket.AF_UNIX)
one.connect(sys.argv[1])
one.sendall(f"POST /v1/leases HTTP/1.1\\r\\nHost: carma\\r\\nConnection: close\\r\\nContent-Type: application/json\\r\\n"
            f"Content-Length: {len(body)}\\r\\n\\r\\n{body}".encode())
print(one.recv(64).split()[1].decode())
"""


def main():
    skip_where_impossible()
    user = pwd.getpwnam("nobody").pw_uid
    with Lab(*sys.argv[1:4]) as lab:
        assert lab.run([sys.executable, "-c", POST, lab.socket("n1")], user=user).strip() == "403"

        # The spool is root's alone.
        for words in [["touch", lab.dir / "agent/n1/1.0.retry"], ["ls", lab.dir / "agent/n1"]]:
            lab.run(words, user=user, check=False)
            assert "denied" in lab.errors, lab.errors

        # A step's environment is the user's; its lease is still that of his job, and in his name.
        job = lab.sbatch("-w", "n1", "--carma-mem=5G", user=user,
                         wrap="SLURM_CLUSTER_NAME=other SLURM_JOB_UID=0 SLURM_RESTART_COUNT=7 SLURMD_NODENAME=n2 "
                              f"srun sh -c 'echo began; until [ -e {lab.dir}/out/go ]; do sleep 0.05; done'")
        until(lambda: "began" in lab.output(job), "the step")
        found = [(one["cluster"], one["job"], one["restart"], one["uid"]) for one in lab.leases("n1")]
        assert found == [("lab", int(job), 0, user)], found
        # His own note on his job changes nothing of it.
        lab.run(["scontrol", "update", f"JobId={job}", "Comment=carma:gpu_oom:1.0 GiB->40.0 GiB"], user=user)
        (lab.dir / "out/go").touch()
        end = lab.until_end(job)
        assert end["JobState"] == "COMPLETED" and "gpumem:5120M" in end["TresPerNode"], end
        until(lambda: not lab.leases("n1"), "the end of the lease")
    return 0


if __name__ == "__main__":
    sys.exit(main())
