"""carma for submitit: `submitit.AutoExecutor(folder, cluster="carma")`, found by the entry points of this package. The names that
begin with `_` are submitit's interface for plugins.

How it works: submitit pickles each call into a file of the folder; the job runs submitit's own program, which finds the call by
the job's number (CarmaJobEnvironment) and leaves the result beside it. A job is submitted held and released once its file has
its place. With several tasks on the node, this module's main starts one process for each."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import uuid
from typing import Any, Dict, List, Optional, Sequence, Union

from submitit.core import core, job_environment, utils

import carma
from carma import daemon, units, waiting
from carma.fields import JobFields
from carma.submission import specification

RANK, TASKS = "CARMA_SUBMITIT_RANK", "CARMA_SUBMITIT_TASKS"
NODE, NODES = "CARMA_SUBMITIT_NODE", "CARMA_SUBMITIT_NODES"  # never set: node 0 of 1
BEFORE_LIMIT_S = 90  # a job has so long to save its state
STATES = {
    "HELD": "PENDING", "QUEUED": "PENDING", "CRASHED": "REQUEUED", "REQUEUING": "REQUEUED", "PLACED": "RUNNING", "RUNNING": "RUNNING",
    "SUSPENDED": "RUNNING", "STOPPING": "COMPLETING", "GPU_OOM": "OUT_OF_MEMORY", "LOST": "NODE_FAIL", "REFUSED": "FAILED",
}  # fmt: skip


class CarmaInfoWatcher(core.InfoWatcher):
    """One request for all jobs that have not ended."""

    def update(self) -> None:
        wanted = self._registered - self._finished
        self._num_calls += 1
        self._info_dict.update({name: {"State": "UNKNOWN"} for name in wanted if name not in self._info_dict})
        self._info_dict.update(dict(map(_entry, waiting.entries(wanted))))
        self._last_status_check = core._time.time()
        self._finished |= {name for name in wanted if self.is_done(name, mode="cache")}

    def get_state(self, job_id: str, mode: str = "standard") -> str:
        return self.get_info(job_id, mode=mode).get("State", "UNKNOWN")


def _entry(job: Dict[str, Any]) -> Any:
    array, state = job.get("array"), str(job["state"])
    name = f"{array['id']}_{array['index']}" if array else str(job["id"])
    return name, {"JobID": name, "State": STATES.get(state, state), "NodeList": os.uname().nodename}


class CarmaJob(core.Job[core.R]):
    watcher = CarmaInfoWatcher(delay_s=2)
    _results_timeout_s = 5  # the result is on this machine's own disk

    def cancel(self, check: bool = True) -> None:
        answer = daemon.call("POST", f"/v1/jobs/cancel?ids={self.job_id}")
        if check and answer["refused"] and not self.done(force_check=True):
            raise carma.Conflict(answer["refused"][0]["error"])


class CarmaJobEnvironment(job_environment.JobEnvironment):
    _env = {
        "job_id": "CARMA_JOB_ID", "array_job_id": "CARMA_ARRAY_JOB_ID", "array_task_id": "CARMA_ARRAY_TASK_ID",
        "num_tasks": TASKS, "num_nodes": NODES, "node": NODE, "global_rank": RANK, "local_rank": RANK,
    }  # fmt: skip

    def _requeue(self, countdown: int) -> None:
        """Nothing: a job that had its signal and then ends comes back by itself (--requeue)."""


class CarmaExecutor(core.PicklingExecutor):
    """`python` starts the jobs in place of this interpreter. All options of carma.submit() are parameters, with the prefix carma_
    in AutoExecutor, and carma_array_parallelism: so many jobs of an array run at a time."""

    job_class = CarmaJob

    def __init__(
        self, folder: Union[str, pathlib.Path], max_num_timeout: int = 3, max_pickle_size_gb: float = 1.0,
        python: Optional[str] = None,
    ) -> None:  # fmt: skip
        super().__init__(folder, max_num_timeout=max_num_timeout, max_pickle_size_gb=max_pickle_size_gb)
        self._throttling = 0
        self.python = python or sys.executable

    @classmethod
    def affinity(cls) -> int:
        try:
            daemon.call("GET", "/v1/status")
        except carma.CarmaError:
            return -1
        return 2

    @classmethod
    def _equivalence_dict(cls) -> core.EquivalenceDict:
        return {
            "name": "job_name", "timeout_min": "time", "mem_gb": "memory", "nodes": "nodes", "cpus_per_task": "cpus",
            "gpus_per_node": "gpus", "tasks_per_node": "tasks_per_node",
        }  # fmt: skip

    @classmethod
    def _valid_parameters(cls) -> Any:
        return set(JobFields.__annotations__) | {"tasks_per_node", "nodes", "array_parallelism", "stderr_to_stdout"}

    def _convert_parameters(self, params: Dict[str, Any]) -> Dict[str, Any]:
        converted = super()._convert_parameters(params)
        if "memory" in converted:
            converted["memory"] = f"{converted['memory']}G"
        return converted

    def _internal_update_parameters(self, **kwargs: Any) -> None:
        unknown = sorted(set(kwargs) - self._valid_parameters())
        if unknown:
            raise ValueError(f"there is no parameter {unknown[0]!r}: one of {', '.join(sorted(self._valid_parameters()))}")
        if kwargs.get("nodes", 1) != 1:
            raise ValueError(f"nodes={kwargs['nodes']}: carma's jobs have one node")
        super()._internal_update_parameters(**kwargs)

    def _num_tasks(self) -> int:
        return int(self.parameters.get("tasks_per_node", 1))

    def _internal_process_submissions(self, delayed_submissions: List[utils.DelayedSubmission]) -> List[core.Job[Any]]:
        first = utils.JobPaths.get_first_id_independent_folder(self.folder)
        first.mkdir(parents=True, exist_ok=True)
        pickles = [first / f"{uuid.uuid4().hex}.pkl" for _ in delayed_submissions]
        for submission, path in zip(delayed_submissions, pickles):
            submission.set_timeout(int(self.parameters.get("time", 5)), self.max_num_timeout)
            submission.dump(path)
        count = len(delayed_submissions)
        submitted = carma.client.submit_specifications([self._specification(count)])[0].id
        names = [str(submitted)] if count == 1 else [f"{submitted}_{index}" for index in range(count)]
        jobs: List[core.Job[Any]] = [
            self.job_class(folder=self.folder, job_id=name, tasks=list(range(self._num_tasks()))) for name in names
        ]
        for job, path in zip(jobs, pickles):
            job.paths.move_temporary_file(path, "submitted_pickle")
        daemon.call("POST", f"/v1/jobs/release?ids={submitted}")
        return jobs

    def _specification(self, count: int) -> Dict[str, Any]:
        given = dict(self.parameters)
        tasks, parallel = given.pop("tasks_per_node", 1), given.pop("array_parallelism", 0)
        merged = given.pop("stderr_to_stdout", False)
        given.pop("nodes", None)
        paths = utils.JobPaths(self.folder)
        number = "%j" if count == 1 else "%A_%a"
        for name, path in (("output", paths.stdout), ("error", paths.stderr)):
            if name == "output" or not merged:
                given.setdefault(name, str(path).replace("%j", number).replace("%t", "0"))
        given.setdefault("job_name", "submitit")
        given.setdefault("time", 5)
        given.setdefault("gpus", 1)
        if units.time_ns("time", given["time"]) > 2 * BEFORE_LIMIT_S * 10**9:
            given.setdefault("signal", f"{job_environment.JobEnvironment.USR_SIG}@{BEFORE_LIMIT_S}")
            given.setdefault("requeue", True)
        if count > 1:
            given["array"] = f"0-{count - 1}" + (f"%{parallel}" if parallel else "")
        given["hold"] = True
        environment = {**os.environ, "SUBMITIT_EXECUTOR": "carma", TASKS: str(tasks), RANK: "0"}
        own = str(pathlib.Path(__file__).resolve().parent.parent)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), own]))
        given["environment"] = environment
        program = ["submitit.core._submit"] if tasks == 1 else ["carma.submitit", str(paths.stdout), str(paths.stderr)]
        return specification([self.python, "-u", "-m", *program, str(self.folder)], given)  # type: ignore[arg-type]

    def _make_submission_file_text(self, command: str, uid: str) -> str:
        raise NotImplementedError("carma's jobs have no submission file: use submit(), map_array() or batch()")

    def _make_submission_command(self, submission_file_path: pathlib.Path) -> List[str]:
        raise NotImplementedError("carma's jobs have no submission file: use submit(), map_array() or batch()")

    @staticmethod
    def _get_job_id_from_submission_command(string: Union[bytes, str]) -> str:
        raise NotImplementedError("carma's jobs have no submission file: use submit(), map_array() or batch()")


def run_tasks(arguments: Sequence[str]) -> int:
    """In a job of several tasks: a process for each, the first with the job's own output; the first status that is not 0."""
    *logs, folder = arguments
    command = [sys.executable, "-u", "-m", "submitit.core._submit", folder]
    job = CarmaJobEnvironment().job_id
    signal.signal(CarmaJobEnvironment._usr_sig(), lambda *_: None)  # is for the tasks, who get it, too
    tasks = []
    for rank in range(int(os.environ[TASKS])):
        with contextlib.ExitStack() as files:
            paths = [path.replace("%j", job).replace("%t", str(rank)) for path in logs]
            out, error = [files.enter_context(open(path, "ab")) if rank else None for path in paths]
            tasks.append(subprocess.Popen(command, env={**os.environ, RANK: str(rank)}, stdout=out, stderr=error))
    statuses = [task.wait() for task in tasks]
    return next((status for status in statuses if status), 0)


if __name__ == "__main__":
    sys.exit(run_tasks(sys.argv[1:]))
