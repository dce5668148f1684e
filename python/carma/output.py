"""A job's output: its files are opened here, as `carma logs` does. With the caller's rights, or, where root reads, with those
of the job's user: a link of his may lead to what he may not read."""

from __future__ import annotations

import codecs
import errno
import os
import pwd
import signal
import socket
import stat
from typing import BinaryIO, Callable, Iterator, List, Optional

from carma.errors import CarmaError

BLOCK_BYTES = 65536
NOBODYS_GROUP = 65534  # stands for the group of a user without an account
OPEN_S = 10.0
LONGEST_LINE = 1 << 20  # characters: a longer one comes in pieces


def open_file(job_id: int, path: str, owner: Optional[int] = None) -> BinaryIO:
    """Without waiting for a writer of a pipe; only a regular file is read. FileNotFoundError where it is not there. `owner` is
    the uid of the job's user."""
    try:
        fd = _open_as(owner, path) if owner and os.geteuid() == 0 else _open(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CarmaError(f"job {job_id}: {path}: {error.strerror or error}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise CarmaError(f"job {job_id}: {path} is not a regular file: it cannot be read")
    return os.fdopen(fd, "rb", buffering=0)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)


def _open_as(uid: int, path: str) -> int:
    """By a child, as rights are of all threads. It answers with an error's number, or with the descriptor."""
    groups: List[int] = []
    gid = NOBODYS_GROUP
    try:
        entry = pwd.getpwuid(uid)
        groups, gid = os.getgrouplist(entry.pw_name, entry.pw_gid), entry.pw_gid
    except KeyError:
        pass
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(OPEN_S)
        child = os.fork()
        if child == 0:
            try:
                os.setgroups(groups)
                os.setresgid(gid, gid, gid)
                os.setresuid(uid, uid, uid)
                socket.send_fds(theirs, [b"0"], [_open(path)])
            except OSError as error:
                theirs.send(str(error.errno).encode())
            finally:
                os._exit(0)
        theirs.close()
        try:
            answer, found, _, _ = socket.recv_fds(ours, 16, 1, socket.MSG_CMSG_CLOEXEC)
        finally:
            os.kill(child, signal.SIGKILL)  # its file system may not answer, and its user may stop it
            os.waitpid(child, 0)
    if found:
        return found[0]
    code = int(answer or errno.EINTR)
    raise OSError(code, os.strerror(code))


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
    """A file that was made anew (the job was started again) is read from its start; one of /proc has no size."""
    size = os.fstat(file.fileno()).st_size
    if size < file.tell() and (size or not os.pread(file.fileno(), 1, 0)):
        file.seek(0)
    while True:
        data = file.read(BLOCK_BYTES)
        if not data:
            return
        yield data


def follow(
    job_id: int, path: str, has_ended: Callable[[], bool], pause: Callable[[], None], owner: Optional[int] = None
) -> Iterator[str]:
    """Lines as they come, until the job has ended and all was read."""
    lines = _Lines()
    file: Optional[BinaryIO] = None
    try:
        while True:
            ended = has_ended()  # before the file is read: nothing comes after that
            if file is None:
                try:
                    file = open_file(job_id, path, owner)
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
