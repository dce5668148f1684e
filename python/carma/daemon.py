"""Asking the daemon: one connection for each request, so that nothing is shared by threads or inherited by a fork."""

from __future__ import annotations

import errno
import http.client
import ipaddress
import json
import logging
import os
import random
import secrets
import socket
import struct
import time
from typing import Any, Iterator, List, Optional, Tuple, Type, Union

from carma import place
from carma.errors import Busy, CarmaError, NoAnswer, NoDaemon, Unavailable, refused

TIMEOUT_S = 60.0  # in which something of an answer has to come
REPLY_LIMIT_BYTES = 256 << 20
REQUEST_JOBS, REQUEST_BYTES = 1000, (16 << 20) - 128  # of one submission
PATIENCE_S = 30.0  # for which a daemon that is being restarted is waited for
RETRY_S = 0.25
CONNECT_STEP_S = 0.01

_End = Tuple[Union[ipaddress.IPv4Address, ipaddress.IPv6Address], int]  # of a connection: address and port

log = logging.getLogger("carma")

# Set while a job loads its function's script or module: unguarded code there must not submit again.
loading = False


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("carma", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connected.settimeout(TIMEOUT_S)
        try:
            while True:
                try:
                    connected.connect(self._path)
                    break
                except BlockingIOError:  # the daemon has not accepted those before us yet
                    if time.monotonic() >= deadline:
                        raise
                    time.sleep(CONNECT_STEP_S)
            self._check_listener(connected)
        except BaseException:
            connected.close()
            raise
        self.sock = connected

    def _check_listener(self, connected: socket.socket) -> None:
        credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _check_uid(self._path, struct.unpack("3i", credentials)[1])


class _TcpConnection(http.client.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        peer, own = (_unmapped(end) for end in (self.sock.getpeername(), self.sock.getsockname()))
        if peer[0].is_loopback or peer[0] == own[0]:  # by any address of this machine
            try:
                self._check_acceptor(peer, own)
            except BaseException:
                self.close()
                raise

    def _check_acceptor(self, peer: _End, own: _End) -> None:
        """Once it has been accepted: before that it is nobody's, and the one who listens need not be who accepts."""
        deadline = time.monotonic() + TIMEOUT_S
        table = "/proc/self/net/tcp" + ("6" if peer[0].version == 6 else "")
        ends = [_table_form(end) for end in (peer, own)]
        while not (found := _row(table, ends)) or found[9] == "0":  # the inode: of no process, of root as it seems
            if time.monotonic() >= deadline:
                raise NoAnswer(f"{place.TCP}{self.host}:{self.port}: nobody accepts a connection")
            time.sleep(CONNECT_STEP_S)
        _check_uid(f"{place.TCP}{self.host}:{self.port}", int(found[7]))


def _row(table: str, ends: List[str]) -> List[str]:
    with open(table, encoding="ascii") as lines:
        return next((words for words in map(str.split, lines) if words[1:3] == ends), [])


def _unmapped(end: Any) -> _End:
    address = ipaddress.ip_address(end[0])
    return getattr(address, "ipv4_mapped", None) or address, end[1]


def _table_form(end: _End) -> str:
    """An end of a connection as the kernel's tables write it: words as the processor reads them."""
    packed = end[0].packed
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed)) + f":{end[1]:04X}"


def _check_uid(where: str, uid: int) -> None:
    """Whoever may write the socket's directory could listen there, as any user can at a port of this machine. He would
    be sent the environments of jobs, and the token."""
    if uid not in (0, os.geteuid()):
        raise NoDaemon(
            f"{where}: uid {uid} listens there, which is neither root nor you: name another socket in CARMA_SOCKET"
        )


def _connection(where: str) -> Tuple[http.client.HTTPConnection, str]:
    """With the value of the header Host."""
    if not where.startswith(place.TCP):
        return _UnixConnection(where), "carma"
    host, colon, port = where[len(place.TCP) :].rpartition(":")
    if not (colon and port.isascii() and port.isdigit() and 0 < int(port) < 65536 and _is_address(host)):
        raise NoDaemon(f"{where}: write an IP address and a port, as tcp://127.0.0.1:8471")
    return _TcpConnection(host.strip("[]"), int(port), timeout=TIMEOUT_S), where[len(place.TCP) :]


def _is_address(host: str) -> bool:
    family = socket.AF_INET
    if host.startswith("[") and host.endswith("]"):
        family, host = socket.AF_INET6, host[1:-1]
    try:
        socket.inet_pton(family, host)
    except (OSError, ValueError):
        return False
    return True


def _connect(where: str, connection: http.client.HTTPConnection) -> None:
    try:
        connection.connect()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR):
            remedy = "start it with `carmad`, or name its socket in CARMA_SOCKET"
            if os.geteuid() != 0 and where == place.SYSTEM_SOCKET:
                remedy = "ask this machine's administrator (systemctl start carmad)"
            raise NoDaemon(f"{where}: no daemon listens there: {remedy}") from None
        raise NoDaemon(f"{where}: cannot connect: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the path
        raise NoDaemon(f"{where!r}: cannot connect: {error}") from None


def _no_answer(where: str, harmless: bool, error: Exception) -> NoAnswer:
    known = "" if harmless else "; whether the request was carried out is not known, look before trying again"
    if isinstance(error, socket.timeout):  # TimeoutError only from Python 3.10 on
        return NoAnswer(
            f"{where}: the daemon has not answered for {TIMEOUT_S:.0f} s: is carmad stopped or very busy?{known}"
        )
    if isinstance(error, (http.client.BadStatusLine, http.client.LineTooLong)) and not isinstance(
        error, http.client.RemoteDisconnected
    ):
        return NoAnswer(f"{where}: the answer is not HTTP: does something else than carmad listen there?")
    return NoAnswer(f"{where}: the daemon closed the connection without an answer{known}")


def repeatable(body: Optional[Any]) -> bool:
    """A submission with an id is done once, however often it is sent."""
    return isinstance(body, dict) and "request_id" in body


def call(method: str, path: str, body: Optional[Any] = None) -> Any:
    """The answer's JSON. Raises NoDaemon, NoAnswer, or the kind of Refused that its status says. Where others of the same
    user have all the connections that he may have, it waits for a turn for up to PATIENCE_S."""
    begun = time.monotonic()
    while True:
        try:
            return _call_once(method, path, body)
        except Busy:
            if time.monotonic() - begun > PATIENCE_S:
                raise
            time.sleep(random.uniform(0.05, 1))


def _call_once(method: str, path: str, body: Optional[Any] = None) -> Any:
    if loading and method != "GET":
        raise CarmaError(
            "a job loads the script that its function is of, and this submits or changes jobs as it is loaded: put that "
            "under `if __name__ == \"__main__\":`"
        )
    where = place.find()
    connection, host = _connection(where)
    headers = {"Host": host, "Connection": "close"}
    if where.startswith(place.TCP):
        headers["Authorization"] = f"Bearer {place.token(where)}"
    data = None if body is None else _text_of(body)
    if data is not None:
        headers["Content-Type"] = "application/json"
    try:
        _connect(where, connection)
        try:
            connection.request(method, path, data, headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it may have said why before it closed
        reply = connection.getresponse()
        text = reply.read(REPLY_LIMIT_BYTES + 1)
        if len(text) <= REPLY_LIMIT_BYTES and reply.length:
            raise http.client.IncompleteRead(text, reply.length)
    except (OSError, http.client.HTTPException) as error:
        raise _no_answer(where, method == "GET" or repeatable(body), error) from None
    finally:
        connection.close()
    if len(text) > REPLY_LIMIT_BYTES:
        raise NoAnswer(f"{where}: the answer has more than {REPLY_LIMIT_BYTES} bytes")
    return _answer(where, reply.status, text)


def _answer(where: str, status: int, text: bytes) -> Any:
    try:
        answer = json.loads(text)
    except ValueError:
        if status < 300:
            raise NoAnswer(
                f"{where}: the answer is not JSON: does something else than carmad listen there?"
            ) from None
        answer = None
    if 200 <= status < 300:
        return answer
    said = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(answer, dict) and answer.get("stopping"):
        raise NoDaemon(str(said))
    if isinstance(answer, dict) and answer.get("busy"):
        raise Busy(str(said))
    raise refused(
        status, said if isinstance(said, str) else f"the daemon answered with HTTP status {status} and no explanation"
    )


def get_patiently(path: str) -> Any:
    """As call("GET", path); a daemon that is away, as while it is restarted, is waited for up to PATIENCE_S, and a turn
    without end."""
    while True:
        try:
            return _patiently("GET", path, None, (NoDaemon, NoAnswer, Unavailable))
        except Busy:
            pass


def requests(specifications: List[Any]) -> Iterator[List[Any]]:
    """Them, in lists that a request may have."""
    part: List[Any] = []
    size = 0
    for specification in specifications:
        length = len(_text_of(specification)) + 1
        if part and (len(part) == REQUEST_JOBS or size + length > REQUEST_BYTES):
            yield part
            part, size = [], 0
        part.append(specification)
        size += length
    yield part


def _text_of(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")


def submit(specifications: List[Any]) -> Any:
    """The answer to POST /v1/jobs: repeated for up to PATIENCE_S without a daemon, or without its answer, and done
    once."""
    body = {"jobs": specifications, "request_id": secrets.token_hex(16)}
    return _patiently("POST", "/v1/jobs", body, (NoDaemon, NoAnswer))


def _patiently(method: str, path: str, body: Optional[Any], passing: Tuple[Type[CarmaError], ...]) -> Any:
    begun = time.monotonic()
    told = False
    while True:
        try:
            return call(method, path, body)
        except passing as error:
            if time.monotonic() - begun > PATIENCE_S:
                raise
            if not told:
                log.warning("%s; waiting up to %.0f s for it", error, PATIENCE_S)
            told = True
        time.sleep(RETRY_S)
