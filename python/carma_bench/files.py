"""Files that a reader sees with the old content or the new one, whole."""

import contextlib
import os

from show import Failure


def write(path, content):
    """By way of a file beside it."""
    beside = f"{path}.{os.getpid()}.tmp"
    with contextlib.suppress(OSError):  # of a process that was killed
        os.unlink(beside)
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise Failure(f"cannot write '{path}': {error.strerror}") from None
