"""Questions about the daemon as a whole."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Tuple

from carma import daemon, submission, text, units
from carma.errors import CarmaError
from carma.handle import Array, Job, Jobs
from carma.submission import Command, Options

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Gpu(Dict[str, Any]):
    """A GPU as in docs/formats/http.md."""

    def _cells(self) -> List[object]:
        metrics = self.get("metrics") or {}
        activity = self.get("sm_activity_permille")
        coarse = "~" if (metrics.get("sm_activity") or {}).get("source") == "utilization" else ""
        power = self.get("power_mw")
        return ["-" if self.get("index") is None else self["index"], self.get("name") or "-",
                units.bytes_text(self.get("used_bytes")), units.bytes_text(self.get("total_bytes")),
                units.bytes_text(self.get("free_bytes")),
                f"{coarse}{(activity + 5) // 10}%" if isinstance(activity, int) else "-",
                f"{(power + 500) // 1000} W" if isinstance(power, int) else "-",
                "lost" if self.get("lost") else ", ".join(str(job) for job in self.get("job_names") or self.get("jobs") or [])]  # fmt: skip


class Gpus(List[Gpu]):
    """The GPUs as they were when they were asked for. `limits`: the values that cannot be measured, and why, or
    None."""

    HEADS = ("GPU", "name", "in use", "of", "free", "SM activity", "power", "jobs")

    def __init__(self, answer: Dict[str, Any]) -> None:
        super().__init__(Gpu(entry) for entry in answer["gpus"])
        self.limits = answer.get("limits")
        self.now_ns = answer.get("now_ns")

    def _rows(self) -> List[List[object]]:
        return [gpu._cells() for gpu in self]

    def __repr__(self) -> str:
        said = text.columns([head.upper() for head in self.HEADS], self._rows())
        return said + (f"\n{text.printable(self.limits)}" if self.limits else "")

    def _repr_html_(self) -> str:
        return text.table(self.HEADS, self._rows(), self.limits or "")


def submit(command: Command, **options: Unpack[Options]) -> Job:
    """Submits a job: `command` is a list of words, or a text for the shell. The options are those of `carma submit`
    (carma.fields.JobFields), as gpus=1, gpu_memory="12G", time="12:00:00", signal="USR1@120", hold=True; and environment, a dict
    in place of this process's."""
    return submit_all([(command, options)])[0]


def submit_all(jobs: Iterable[Tuple[Command, Options]]) -> List[Job]:
    """Several jobs, pairs of a command and a dict of options: all of them are accepted, or none is. More than 1000 are
    submitted a thousand at a time."""
    specifications = [submission.specification(command, options) for command, options in jobs]
    return submit_specifications(specifications)


def submit_specifications(specifications: List[Dict[str, Any]]) -> List[Job]:
    entries: List[Dict[str, Any]] = []
    for part in daemon.requests(specifications):
        try:
            entries += daemon.submit(part)["jobs"]
        except CarmaError as error:
            if entries:
                error.args = (f"the first {len(entries)} of {len(specifications)} jobs were submitted, the others were "
                              f"not: {error}",)  # fmt: skip
            raise
    for entry, specification in zip(entries, specifications):
        for warning in [*entry.get("warnings", []), *((entry.get("estimate") or {}).get("warnings") or [])]:
            daemon.log.warning("%s: %s", text.printable(specification["name"]), text.printable(warning))
    return [_handle(entry) for entry in entries]


def _handle(entry: Dict[str, Any]) -> Job:
    array = entry.get("array")
    return Array(int(entry["id"]), int(array["jobs"])) if array else Job(int(entry["id"]))


def jobs(state: str = "", limit: int = 0) -> Jobs:
    """Those that have not ended, or, by `state`, all, running, waiting or ended ones; at most `limit` of them."""
    most = int(limit)
    asked = [f"state={urllib.parse.quote(state, safe='')}"] if state else []
    if most:
        asked.append(f"limit={most}")
    answer = daemon.call("GET", "/v1/jobs" + ("?" + "&".join(asked) if asked else ""))
    found: List[Dict[str, Any]] = answer["jobs"]
    while not most and answer["jobs"] and answer.get("left_out"):  # an answer has at most this many
        answer = daemon.call("GET", "/v1/jobs?" + "&".join([*asked, f"after={found[-1]['id']}"]))
        found += answer["jobs"]
    return Jobs(found, int(answer.get("left_out") or 0))


def gpus() -> Gpus:
    return Gpus(daemon.call("GET", "/v1/gpus"))


def status() -> Dict[str, Any]:
    """The daemon itself: version, policy, counts of jobs by state (docs/formats/http.md, GET /v1/status)."""
    answer: Dict[str, Any] = daemon.call("GET", "/v1/status")
    return answer
