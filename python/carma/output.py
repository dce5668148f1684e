"""A job's output: its files are opened here, with the caller's rights, as `carma logs` does."""

from __future__ import annotations

import codecs
import os
import stat
from typing import BinaryIO, Callable, Iterator, Optional

from carma.errors import CarmaError

BLOCK_BYTES = 65536
LONGEST_LINE = 1 << 20  # characters: a longer one comes in pieces


def open_file(job_id: int, path: str) -> BinaryIO:
    """Without waiting for a writer of a pipe; only a regular file is read. FileNotFoundError where it is not there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CarmaError(f"job {job_id}: {path}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise CarmaError(f"job {job_id}: {path} is not a regular file: it cannot be read")
    return os.fdopen(fd, "rb", buffering=0)


class _Lines:
    """Makes lines of bytes that come in any pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def take(self, data: bytes) -> Iterator[str]:
        text = self._rest + self._decoder.decode(data)
        *lines, self._rest = text.split("\n")
        yield from lines
        if len(self._rest) > LONGEST_LINE:
            piece, self._rest = self._rest, ""
            yield piece

    def end(self) -> Iterator[str]:
        text = self._rest + self._decoder.decode(b"", final=True)
        if text:
            yield text


def _new_bytes(file: BinaryIO) -> Iterator[bytes]:
    """A file that was made anew (the job was started again) is read from its start."""
    if os.fstat(file.fileno()).st_size < file.tell():
        file.seek(0)
    while True:
        data = file.read(BLOCK_BYTES)
        if not data:
            return
        yield data


def follow(job_id: int, path: str, has_ended: Callable[[], bool], pause: Callable[[], None]) -> Iterator[str]:
    """Lines as they come, until the job has ended and all was read."""
    lines = _Lines()
    file: Optional[BinaryIO] = None
    try:
        while True:
            ended = has_ended()  # before the file is read: nothing comes after that
            if file is None:
                try:
                    file = open_file(job_id, path)
                except FileNotFoundError:
                    if ended:
                        raise CarmaError(f"job {job_id}: {path}: No such file or directory") from None
            if file is not None:
                for data in _new_bytes(file):
                    yield from lines.take(data)
            if ended:
                yield from lines.end()
                return
            pause()
    finally:
        if file is not None:
            file.close()
