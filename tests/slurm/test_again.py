"""Usage: test_again.py CARMA SOURCE BUILD: a job that goes back to the queue twice from the same node. Slurm runs no prolog
there while the first start's credential lives, which is two minutes: the plugin must know the restart all the same."""

import sys

from lab import Lab, skip_where_impossible, until

skip_where_impossible()
with Lab(*sys.argv[1:4]) as lab:
    lab.kill("carmad-n1")  # refuses every start
    job = lab.sbatch("-w", "n1", "--carma-mem=2G", wrap="true")
    until(lambda: lab.job(job).get("Restarts") == "2", f"the second refusal of job {job}: {lab.job(job)}")
    lab.start_carmad("n1")
    found = lab.until_end(job)
    assert found["JobState"] == "COMPLETED", found
    restarts = {lease["restart"] for lease in lab.ask("n1", "GET", f"/v1/leases/by-key?cluster=lab&job={job}")[1]["leases"]}
    assert restarts == {int(found["Restarts"])}, f"{restarts}: {found}"
