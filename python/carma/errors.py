"""Errors that carma raises: each is one line that names the thing, the value, and the remedy; the daemon's lines are
its own."""

from __future__ import annotations

from typing import Dict, Type


class CarmaError(Exception):
    """All of them."""


class CaptureError(CarmaError):
    """A training step cannot be recorded faithfully, or at all."""


class NoDaemon(CarmaError):
    """Nobody listens there, or may be asked: nothing was done."""


class NoAnswer(CarmaError):
    """The daemon did not answer, or not as carmad does: whether a request was carried out is not known."""


class JobFailed(CarmaError):
    """A job has ended otherwise than COMPLETED, so it has no result."""


class NotStarted(CarmaError):
    """A job has written nothing, as it has not been started."""


class Refused(CarmaError):
    """The daemon refused the request; `status` is HTTP's."""

    status = 0


class Invalid(Refused):
    """400, 405, 413: the request is wrong, or too large."""


class NotAllowed(Refused):
    """401, 403: not yours, or without the token."""


class NotFound(Refused):
    """404: no such job."""


class Conflict(Refused):
    """409: the job's state forbids it."""


class Impossible(Refused):
    """422: it can never run here."""


class Unavailable(Refused):
    """503: nothing can be stored now; later perhaps."""


class Busy(Unavailable):
    """503: others of the same user are under way, and nothing of the request was looked at."""

    status = 503


_KINDS: Dict[int, Type[Refused]] = {
    400: Invalid, 401: NotAllowed, 403: NotAllowed, 404: NotFound, 405: Invalid, 409: Conflict, 413: Invalid,
    422: Impossible, 503: Unavailable,
}  # fmt: skip


def refused(status: int, text: str) -> Refused:
    error = _KINDS.get(status, Refused)(text)
    error.status = status
    return error
