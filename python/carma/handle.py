"""A job of the daemon's, and why it waits."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Any, Dict, Generator, Iterator, List, Literal, Optional, Type, TypeVar, Union, overload

from carma import daemon, output, text, units
from carma.errors import CarmaError, Conflict, NotStarted

ENDED = {"COMPLETED": "has completed", "FAILED": "has failed", "GPU_OOM": "ran out of GPU memory",
         "CANCELLED": "was cancelled", "LOST": "was lost", "REFUSED": "can never run here", "TIMEOUT": "timed out",
         "RETURNED": "was given back", "EXPIRED": "has expired"}
FOLLOW_S = 0.25

Self = TypeVar("Self", bound="Job")


class Explanation:
    """Why a job is where it is: print() it, or take its parts. `gpus` has the verdict on each GPU; `data` is all of the
    daemon's answer (docs/formats/http.md)."""

    def __init__(self, data: Dict[str, Any]) -> None:
        self.data = data
        self.text: str = data.get("text") or ""
        self.code: Optional[str] = (data.get("reason") or {}).get("code")
        self.gpus: List[Dict[str, Any]] = data.get("gpus") or []

    def _rows(self) -> List[List[object]]:
        return [[gpu.get("index"), units.bytes_text(gpu.get("free_bytes")), gpu.get("verdict") or ""] for gpu in self.gpus]

    def _sentences(self) -> List[str]:
        place = f"is {self.data.get('state')}: " if self.code else ""  # else it does not wait, and the text is a sentence
        head = f"job {self.data.get('id')} {place}{self.text}"
        parts = [(name, self.data.get(name)) for name in ("turn", "kept", "start")]
        turn = [f"{name}: {part['text']}" for name, part in parts if part and part.get("text")]
        return [head] + turn + [str(self.data[name]) for name in ("last_end", "memory") if self.data.get(name)]

    def __str__(self) -> str:
        said = "\n".join(text.printable(sentence) for sentence in self._sentences())
        return said + ("\n\n" + text.columns(("GPU", "FREE", "VERDICT"), self._rows()) if self.gpus else "")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        said = "<br>".join(text.escape(sentence) for sentence in self._sentences())
        return f"<p>{said}</p>" + (text.table(("GPU", "free", "verdict"), self._rows()) if self.gpus else "")


class Job:
    """A handle on the job with this id. Each question asks the daemon; final answers are remembered.

    `with` a job waits for it at the end of the block, and cancels it where the block is left by an exception."""

    def __init__(self, job_id: int) -> None:
        if isinstance(job_id, bool) or not isinstance(job_id, int) or job_id < 1:
            raise ValueError(f"{job_id!r} is not a job's id: a whole number from 1 on")
        self.id = job_id
        self._last: Optional[Dict[str, Any]] = None

    @property
    def _path(self) -> str:
        return f"/v1/jobs/{self.id}"

    @property
    def info(self) -> Dict[str, Any]:
        """All that the daemon tells of it now (docs/formats/http.md, job)."""
        if self._last is None or self._last["state"] not in ENDED:
            answer = daemon.call("GET", self._path)
            self._last = answer
            return dict(answer)
        return dict(self._last)

    @property
    def state(self) -> str:
        return str(self.info["state"])

    @property
    def name(self) -> str:
        return str((self._last or self.info)["name"])

    @property
    def estimate(self) -> Optional[Dict[str, Any]]:
        """Its estimated need; None where nothing was sent to estimate from."""
        found: Optional[Dict[str, Any]] = self.info.get("estimate")
        return found

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def exit_status(self) -> Optional[int]:
        """Of a job that has ended: its own, 128+N where signal N ended it, 124 at its time limit, 127 or 126 where its
        program is not there or may not be executed, 1 where it never ran for another reason; else None."""
        info = self.info
        if info["state"] not in ENDED:
            return None
        if info["state"] == "COMPLETED":
            return 0
        if info["state"] == "TIMEOUT":
            return 124
        status = info.get("exit_status")
        return status if isinstance(status, int) and 0 < status < 256 else 1

    def _ask_patiently(self) -> Dict[str, Any]:
        if self._last is None or self._last["state"] not in ENDED:
            self._last = daemon.get_patiently(self._path)
        return self._last or {}

    def wait(self, timeout: Optional[float] = None) -> int:
        """Until it has ended: its exit_status. A daemon that is restarted meanwhile is waited for. TimeoutError after
        `timeout` seconds of wall time; the job goes on, as it does after an interrupt (Ctrl-C)."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = 0.05
        while self._ask_patiently()["state"] not in ENDED:
            left = pause if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"job {self.id} is still {(self._last or {}).get('state')} after {timeout} s")
            time.sleep(min(pause, left))
            pause = min(pause * 1.25, 1.0)
        status = self.exit_status
        return 1 if status is None else status

    def __await__(self) -> Generator[Any, None, Any]:
        """`await job` waits for its end without holding up the event loop: its exit_status, or a function's result."""
        return asyncio.get_running_loop().run_in_executor(None, self._awaited).__await__()

    def _awaited(self) -> Any:
        return self.wait()

    @overload
    def logs(self, follow: Literal[False] = False, *, error: bool = False) -> str: ...

    @overload
    def logs(self, follow: Literal[True], *, error: bool = False) -> Iterator[str]: ...

    def logs(self, follow: bool = False, *, error: bool = False) -> Union[str, Iterator[str]]:
        """Its output so far, or, with `error`, its standard error where that is another file. With
        `follow` an iterator of lines (without their ends) that goes on until the job has ended."""
        info = self._ask_patiently()
        path = (info.get("error") if error else None) or info.get("output")
        if not path:
            raise CarmaError(f"permission denied: job {self.id} belongs to {info.get('user')}")
        if follow:
            return output.follow(
                self.id, path, lambda: self._ask_patiently()["state"] in ENDED, lambda: time.sleep(FOLLOW_S), info["uid"]
            )
        try:
            with output.open_file(self.id, path, info["uid"]) as file:
                return file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            if not info.get("started_ns") and info["state"] not in ENDED:
                raise NotStarted(
                    f"job {self.id} has not been started: it has written nothing (see: its explain())"
                ) from None
            raise CarmaError(f"job {self.id}: {path}: No such file or directory") from None

    def explain(self) -> Explanation:
        return Explanation(daemon.call("GET", self._path + "/explain"))

    def _do(self, verb: str, body: Optional[Dict[str, Any]] = None) -> str:
        return str(daemon.call("POST", f"{self._path}/{verb}", body)["state"])

    def cancel(self) -> str:
        """Ends it, or takes it out of the queue; its state then. Conflict where it has ended already."""
        return self._do("cancel")

    def hold(self) -> str:
        return self._do("hold")

    def release(self) -> str:
        return self._do("release")

    def checkpoint(self) -> str:
        """Has it save its state now: it gets the signal of its `signal`. Conflict where it does not run, or has none."""
        return self._do("checkpoint")

    def signal(self, signal: Union[str, int]) -> str:
        """Sends its processes a signal, such as "USR1" or signal.SIGUSR1. Conflict where it does not run."""
        return self._do("signal", {"signal": str(int(signal)) if isinstance(signal, int) else signal})

    def suspend(self) -> str:
        """Lets it stand still: it keeps its GPUs and their memory, and its time limit stands still, too."""
        return self._do("suspend")

    def resume(self) -> str:
        return self._do("resume")

    def requeue(self) -> str:
        """Stops it, and lets it wait again in its place: it begins anew. Conflict where it does not run."""
        return self._do("requeue")

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if kind is None:
            self.wait()
            return
        try:
            self.cancel()
        except Conflict:
            pass  # it has ended meanwhile
        except CarmaError as trouble:
            # The block's own error is raised: this one must not take its place.
            daemon.log.warning("job %d was not cancelled: %s", self.id, trouble)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.id == self.id

    def __hash__(self) -> int:
        return hash(("carma.Job", self.id))

    def _shown(self) -> Dict[str, Any]:
        """As it is, or was when it was last asked for: showing it never fails."""
        try:
            return self.info
        except CarmaError:
            return self._last or {}

    def __repr__(self) -> str:
        info = self._shown()
        if not info:
            return f"<carma job {self.id}>"
        return f"<carma job {self.id} ({text.printable(info.get('name', '?'))}): {info.get('state')}>"

    def _repr_html_(self) -> str:
        info = self._shown()
        return text.table(HEADS, [row(info)]) if info else text.escape(repr(self))


class Array(Job):
    """A handle on all jobs of an array, and on the first of them where one job is asked about."""

    def __init__(self, job_id: int, count: int) -> None:
        super().__init__(job_id)
        self.jobs = [Job(job_id + position) for position in range(count)]

    @property
    def ended(self) -> bool:
        return all(job.ended for job in self.jobs)

    @property
    def exit_status(self) -> Optional[int]:
        """The first that is not 0, in their order; None before all have ended."""
        statuses = [job.exit_status for job in self.jobs]
        return None if None in statuses else next((status for status in statuses if status), 0)

    def wait(self, timeout: Optional[float] = None) -> int:
        """Until all have ended: their exit_status. TimeoutError after `timeout` seconds of wall time in all."""
        deadline = None if timeout is None else time.monotonic() + timeout
        statuses = [job.wait(None if deadline is None else max(deadline - time.monotonic(), 0)) for job in self.jobs]
        return next((status for status in statuses if status), 0)

    def _do(self, verb: str, body: Optional[Dict[str, Any]] = None) -> str:
        """Of those that have not ended: the state of one of them then. Conflict where none could be changed."""
        answer = daemon.call("POST", f"/v1/jobs/{verb}?ids={self.id}", body)
        if not answer["jobs"]:
            raise Conflict(answer["refused"][0]["error"])
        return str(answer["jobs"][0]["state"])


HEADS = ("job", "name", "user", "state", "GPUs", "memory", "where, or why not")


def _where(info: Dict[str, Any]) -> str:
    if info.get("state") in ENDED:
        return str(info.get("message") or info.get("last_end") or "")
    if info.get("state") in ("PLACED", "RUNNING", "SUSPENDED", "STOPPING", "REQUEUING"):
        return "GPU " + ",".join(str(placement.get("index")) for placement in info.get("placements") or [])
    return str((info.get("reason") or {}).get("text") or "")


def _number(info: Dict[str, Any]) -> object:
    """As calls take it; of an array's job also as messages name it."""
    array = info.get("array")
    return f"{info.get('id')} ({array['id']}_{array['index']})" if array else info.get("id")


def row(info: Dict[str, Any]) -> List[object]:
    return [_number(info), info.get("name"), info.get("user"), info.get("state"), info.get("gpus"),
            units.bytes_text(info.get("reserved_bytes")), _where(info)]  # fmt: skip


class Jobs(List[Job]):
    """Jobs as they were when they were asked for, in the order of ids; `left_out` were more than the limit."""

    def __init__(self, entries: List[Dict[str, Any]], left_out: int = 0) -> None:
        super().__init__(_seen(entry) for entry in entries)
        self.left_out = left_out
        self._entries = entries

    def _rows(self) -> List[List[object]]:
        return [row(entry) for entry in self._entries]

    def _caption(self) -> str:
        return f"{self.left_out} more" if self.left_out else ""

    def __repr__(self) -> str:
        return text.columns([head.upper() for head in HEADS], self._rows()) + (f"\n{self._caption()}" if self.left_out else "")

    def _repr_html_(self) -> str:
        return text.table(HEADS, self._rows(), self._caption())


def _seen(entry: Dict[str, Any]) -> Job:
    return remember(Job(int(entry["id"])), entry)


def remember(job: Self, entry: Dict[str, Any]) -> Self:
    """An entry of a list lacks the fields that only GET /v1/jobs/ID has. It is shown, but does not replace the whole
    where the job has ended."""
    if entry.get("state") not in ENDED:
        job._last = entry
    return job
