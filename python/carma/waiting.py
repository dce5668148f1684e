"""Waiting for several jobs at once: carma.as_completed(). One request asks for as many as an answer of the daemon's names."""

from __future__ import annotations

import time
from typing import Any, Dict, Iterable, Iterator, List, Optional, TypeVar

from carma import daemon
from carma.handle import ENDED, Array, Job

J = TypeVar("J", bound=Job)

MOST_IDS = 1000  # of one request
FIRST_PAUSE_S, LAST_PAUSE_S = 0.05, 1.0


def entries(names: Iterable[str]) -> Iterator[Dict[str, Any]]:
    """Of these jobs, named as 7 or 120_7, as far as the daemon still knows them, as lists have them."""
    wanted = sorted(set(names))
    for first in range(0, len(wanted), MOST_IDS):
        yield from daemon.get_patiently(f"/v1/jobs?state=all&ids={','.join(wanted[first : first + MOST_IDS])}")["jobs"]


def states(ids: Iterable[int]) -> Dict[int, str]:
    """Of these jobs as far as the daemon still knows them."""
    return {int(entry["id"]): str(entry["state"]) for entry in entries(map(str, ids))}


def has_ended(job: Job, found: Dict[int, str]) -> bool:
    """By an answer of states(). Of an array all jobs; one that was forgotten has ended."""
    parts = job.jobs if isinstance(job, Array) else [job]
    return all(found.get(part.id, "COMPLETED") in ENDED for part in parts)


def ids_of(job: Job) -> List[int]:
    return [part.id for part in job.jobs] if isinstance(job, Array) else [job.id]


def as_completed(jobs: Iterable[J], timeout: Optional[float] = None) -> Iterator[J]:
    """Yields each job once it has ended, in the order of their ends, those that end together in the order given. TimeoutError
    after `timeout` seconds of wall time in all; the jobs go on."""
    waiting = list(dict.fromkeys(jobs))
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = FIRST_PAUSE_S
    while waiting:
        found = states(job_id for job in waiting for job_id in ids_of(job))
        ended = [job for job in waiting if has_ended(job, found)]
        waiting = [job for job in waiting if job not in ended]
        yield from ended
        if not waiting:
            return
        left = pause if deadline is None else deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{len(waiting)} of the jobs have not ended after {timeout} s, the first of them: {waiting[0].id}")
        time.sleep(min(pause, left))
        pause = FIRST_PAUSE_S if ended else min(pause * 1.25, LAST_PAUSE_S)
