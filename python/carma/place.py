"""The daemon's address, and the proof of the caller's user: by the same rules as the program `carma`
(docs/formats/http.md)."""

from __future__ import annotations

import os
import pwd
import stat
from typing import Optional

from carma.errors import NoDaemon

SYSTEM_SOCKET = "/run/carma/carma.sock"
SYSTEM_STATE = "/var/lib/carma"
TCP = "tcp://"
TOKEN_LENGTHS = (32, 512)


def find() -> str:
    """A socket's path or tcp://ADDRESS:PORT: $CARMA_SOCKET, else the user's own carmad's, else, where there is only that
    or its state, the system's."""
    chosen = os.environ.get("CARMA_SOCKET")
    if chosen:
        return chosen
    path = _default_socket()
    if not os.path.exists(path) and (os.path.exists(SYSTEM_SOCKET) or os.path.exists(SYSTEM_STATE)):
        return SYSTEM_SOCKET
    return path


def _absolute(name: str) -> Optional[str]:
    value = os.environ.get(name)
    return value if value and value.startswith("/") else None


def _home() -> str:
    value = _absolute("HOME")
    if value is None:
        try:
            value = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            value = ""
    return value if value.startswith("/") else "/"


def _default_socket() -> str:
    if os.geteuid() == 0:
        return SYSTEM_SOCKET
    base = _absolute("XDG_RUNTIME_DIR")
    if base is not None:
        return f"{base}/carma/carma.sock"
    runtime = f"/run/user/{os.geteuid()}"
    try:
        found = os.stat(runtime)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
            return f"{runtime}/carma/carma.sock"
    except OSError:
        pass
    return f"{_absolute('XDG_STATE_HOME') or _home() + '/.local/state'}/carma/carma.sock"


def token(place: str) -> str:
    """The proof in a request by TCP: the one line of the file $CARMA_TOKEN_FILE, which nobody else may be able to
    read."""
    path = os.environ.get("CARMA_TOKEN_FILE")
    if not path:
        raise NoDaemon(f"{place}: needs a token: name the file that holds it in CARMA_TOKEN_FILE")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise NoDaemon(f"{path}: the token cannot be read: {error.strerror}") from None
    with os.fdopen(fd, "rb") as file:
        _check_file(path, os.fstat(fd))
        text = file.read(TOKEN_LENGTHS[1] + 2)
    line, newline, rest = text.partition(b"\n")
    if any(not 0x21 <= byte <= 0x7E for byte in line):
        raise NoDaemon(f"{path}: holds other than visible characters: a token has no others")
    if rest:
        raise NoDaemon(f"{path}: holds more than one line: a token is one")
    if not TOKEN_LENGTHS[0] <= len(line) <= TOKEN_LENGTHS[1]:
        raise NoDaemon(
            f"{path}: a token has {TOKEN_LENGTHS[0]} to {TOKEN_LENGTHS[1]} characters: write a random one, as of "
            f"`openssl rand -hex 32`"
        )
    return line.decode("ascii")


def _check_file(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise NoDaemon(f"{path}: is not a regular file: a token is read from one")
    if found.st_mode & 0o077:
        raise NoDaemon(
            f"{path}: its mode is {found.st_mode & 0o7777:04o}, so that others could use the token: chmod 600 it"
        )
    if os.geteuid() != 0 and found.st_uid not in (0, os.geteuid()):
        raise NoDaemon(f"{path}: belongs to uid {found.st_uid}: take a token of your own")
