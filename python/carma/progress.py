"""How far a job has come, told to carma: carma.progress() (docs/python.md)."""

from __future__ import annotations

import os
import time
from typing import Dict, Optional

_PAUSE_S = 1.0  # between two lines; the last step is told in any case

_told: Dict[str, float] = {}  # when the last line was written


def progress(step: int, total: Optional[int] = None) -> None:
    """Tells carma that `step` steps are done, of `total`. To be called at the end of a step.

    Outside a job of carma, and where nobody listens, it does nothing. At most once a second it writes a line; else it
    looks at a clock. It never waits, and a missing listener raises nothing."""
    path = os.environ.get("CARMA_PROGRESS_FILE")
    if not path:
        return
    now = time.monotonic()
    if "at_s" in _told and now - _told["at_s"] < _PAUSE_S and step != total:
        return
    _told["at_s"] = now
    line = f"{step:d}\n" if total is None else f"{step:d}/{total:d}\n"
    try:
        pipe = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(pipe, line.encode("ascii"))
    except OSError:
        pass  # full, or nobody reads it
    finally:
        os.close(pipe)
