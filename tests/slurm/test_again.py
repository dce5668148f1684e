"""Usage: test_again.py CARMA SOURCE BUILD: a job that goes back to the queue twice from the same node, where slurmd now and
then runs no prolog for the next start. Here the node's own prolog takes away all that the plugin's has written. And one whose
facts a late epilog takes away while it runs."""

import sys

from lab import Lab, skip_where_impossible, until


class NoProlog(Lab):
    def write_slurm(self):
        super().write_slurm()
        prolog = self.dir / "etc/prolog"
        prolog.write_text(f'#!/bin/sh\ntouch "{self.dir}/out/prolog"\nrm -f "{self.dir}/agent/n1/$SLURM_JOB_ID".[a-z]*\n')
        prolog.chmod(0o755)
        with open(self.dir / "etc/n1.conf", "a", encoding="utf-8") as conf:
            conf.write(f"Prolog={prolog}\n")


skip_where_impossible()
with NoProlog(*sys.argv[1:4], wait_s=2) as lab:
    lab.kill("carmad-n1")  # refuses every start
    job = lab.sbatch("-w", "n1", "--carma-mem=2G", wrap="true")
    # Slurm may call it FAILED for a moment, until the agent has put it back.
    until(lambda: lab.job(job).get("Restarts") == "2", f"the second refusal of job {job}")
    lab.start_carmad("n1")
    found = lab.until_end(job)
    assert found["JobState"] == "COMPLETED", found
    assert (lab.dir / "out/prolog").exists()
    leases = lab.ask("n1", "GET", f"/v1/leases/by-key?cluster=lab&job={job}")[1]["leases"]
    restarts = {lease["restart"] for lease in leases}
    assert restarts == {int(found["Restarts"])}, f"{restarts}: {found}"
    # A late epilog of an earlier start takes it away while the job runs: its end is told all the same.
    takes = f'touch once; rm -f "{lab.dir}/agent/n1/$SLURM_JOB_ID".[a-z]*; echo "torch.OutOfMemoryError: CUDA out of memory." >&2'
    gone = lab.sbatch("-w", "n1", "--carma-mem=2G", wrap=f"[ -e once ] || {{ {takes}; exit 1; }}")
    back = until(lambda: (found := lab.job(gone)).get("JobState") == "COMPLETED" and found, f"the end of job {gone}")
    assert back["Restarts"] == "1" and back["Comment"].startswith("carma:gpu_oom:2.0"), back
