"""Raw bytes to a daemon's Unix socket. Usage, as root: wire.py UID SOCKET CHECK [ARGUMENT...]; UID is the peer's.

  requests ID     requests that no honest client sends; ID is another user's job
  hold FILE       holds all connections that it gets, some with half a request, until its input ends; FILE gets how many
"""

import json
import os
import pathlib
import re
import select
import socket
import sys
import time

TRIES, SHARE = 200, 128  # connections
HEAD = b"Host: localhost\r\n"


def connect(path):
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(10)
    stream.connect(path)
    return stream


def exchange(path, text):
    """The answers until the server closes, or no more is expected: each request asks to close, or is refused."""
    stream = connect(path)
    answer = b""
    try:
        stream.sendall(text)
        stream.shutdown(socket.SHUT_WR)
        while block := stream.recv(65536):
            answer += block
    except (ConnectionResetError, BrokenPipeError):
        pass
    return answer


def post(path, body, target=b"/v1/jobs"):
    return exchange(path, b"POST %s HTTP/1.1\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n%s" %
                    (target, HEAD, len(body), body))


def get(path, target):
    return exchange(path, b"GET %s HTTP/1.1\r\n%sConnection: close\r\n\r\n" % (target, HEAD))


def statuses(answer):
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", answer)]


def expect(what, answer, *wanted):
    assert statuses(answer) in [list(w) if isinstance(w, tuple) else [w] for w in wanted], (what, answer[:600])
    assert b"root:" not in answer, (what, answer)


def job(**more):
    return json.dumps({"jobs": [{"name": "a", "command": ["true"], "environment": [], "directory": "/tmp",
                                 "output": "/tmp/carma-test-%j", "gpus": 1, "held": True, **more}]}).encode()


def check_fields(path):
    assert statuses(post(path, job())) == [201], post(path, job())
    # A request cannot name the user of a job.
    for name in "uid", "user", "gid", "owner":
        expect(name, post(path, job(**{name: 0})), 400)
    # NULs, as JSON writes them and as they are; texts that are too long; bytes that are not UTF-8; two of one name.
    expect("NUL", post(path, job(name="a\0b")), 400)
    expect("NUL in a path", post(path, job(output="/tmp/a\0/../../etc/passwd")), 400)
    expect("NUL in an argument", post(path, job(command=["true", "\0"])), 400)
    expect("raw NUL", post(path, job().replace(b'"a"', b'"a\0"')), 400)
    expect("long name", post(path, job(name="x" * 100000)), 400)
    expect("long texts", post(path, job(environment=["A=" + "x" * (9 << 20)])), 400)
    expect("no UTF-8", post(path, job().replace(b'"a"', b'"\xff"')), 400)
    expect("twice", post(path, job()[:-3] + b', "name": "b"}]}'), 400)
    expect("relative directory", post(path, job(directory="../../etc")), 400)
    expect("nested", post(path, b"[" * 100000), 413)
    expect("large", exchange(path, b"POST /v1/jobs HTTP/1.1\r\n%sContent-Length: 99999999\r\n\r\n" % HEAD), 413)


def check_paths(path, other):
    """No files are behind the API: every path names a resource, or nothing."""
    odd = [b"/etc/passwd", b"/v1/../../etc/passwd", b"/v1/%2e%2e/%2e%2e/etc/passwd", b"/v1/jobs/../../../etc/passwd",
           b"//etc/passwd", b"/v1/jobs/%s/../../../../etc/passwd" % other, b"/v1/gpus/%2fetc%2fpasswd", b"/v1/jobs//etc/passwd",
           b"/v1/status%00", b"/v1/status/..", b"/v1/stats/../status", b"/v1/jobs/%s%%00/explain" % other,
           b"/v1/jobs/%s%%2f..%%2f.." % other, b"/v1/jobs/-1", b"/v1/jobs/+1", b"/v1/jobs/%201", b"/v1/jobs/0x1",
           b"/v1/jobs/18446744073709551617", b"/v1/jobs/99999999999999999999999", b"/v1/jobs/", b"/v1", b"/index.html/", b"/../style.css", b"/%2e%2fstyle.css", b"/web/style.css", b"/V1/status",
           b"/v1/jobs/%s/log" % other, b"/v1/jobs/%s/environment" % other]
    for target in odd:
        expect(target, get(path, target), 404)
    expect("long", get(path, b"/v1/jobs/" + b"1" * 100000), 414)
    expect("absolute", get(path, b"file:///etc/passwd"), 400, 404)
    # The dashboard's files lie in a table of names.
    expect("the page", get(path, b"/"), 200)
    expect("a file", get(path, b"/style.css?/../x"), 200)
    expect("in a query", get(path, b"/v1/jobs?state=../../etc/passwd"), 400)
    for verb in b"cancel", b"hold", b"release":
        expect(verb, post(path, b"", b"/v1/jobs/%s/%s" % (other, verb)), 403)
        expect(verb, post(path, b'{"uid": 0}', b"/v1/jobs/%s%%2f%s" % (other, verb)), 403)
        expect(verb, get(path, b"/v1/jobs/%s/%s" % (other, verb)), 405)


def check_rows(path, other):
    """Of several requests on one connection each is judged by itself, as the same peer's."""
    cancel = b"POST /v1/jobs/%s/cancel HTTP/1.1\r\n%sContent-Length: 0\r\n\r\n" % (other, HEAD)
    status = b"GET /v1/status HTTP/1.1\r\n" + HEAD + b"\r\n"
    expect("in a row", exchange(path, status + cancel + status), (200, 403, 200))
    expect("as a body", exchange(path, b"POST /v1/jobs HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s" %
                                 (HEAD, len(cancel), cancel) + status), (400, 200))
    # The peer's user is not in the request either.
    for header in b"X-Forwarded-User: root\r\n", b"X-Remote-Uid: 0\r\n", b"Authorization: Bearer root\r\n":
        expect(header, exchange(path, cancel.replace(HEAD, HEAD + header)), 403)
    # Pages, and names that somebody else's server may have pointed here.
    expect("origin", exchange(path, cancel.replace(HEAD, HEAD + b"Origin: http://localhost\r\n")), 403)
    expect("host", exchange(path, status.replace(b"localhost", b"evil.example")), 403)


def hold(path, file):
    """Half of them without a byte, half with a half request: of a head, and of a body. A daemon that lets more in than it
    should is given time to say otherwise."""
    texts = [b"", b"GET /v1/jo", b"", b"POST /v1/jobs HTTP/1.1\r\n" + HEAD + b"Content-Length: 100\r\n\r\n{"]
    held = []
    for number in range(TRIES):
        held.append(connect(path))
        try:
            held[-1].sendall(texts[number % len(texts)])
        except (ConnectionResetError, BrokenPipeError):
            pass
    end = time.monotonic() + 10
    while len(held) > SHARE and time.monotonic() < end:
        for stream in select.select(held, [], [], 1)[0]:
            try:
                answer = stream.recv(4096)
            except ConnectionResetError:
                answer = b""
            held.remove(stream)
            if b"you connect too often" in answer:  # those that wait are taken up one a millisecond
                time.sleep(0.01)
                held.append(connect(path))
                continue
            assert not answer or b"you have too many connections open" in answer, answer
    pathlib.Path(file).write_text("%d\n" % len(held), encoding="ascii")
    sys.stdin.read()


def main():
    uid, path, check, *arguments = sys.argv[1:]
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    if check == "hold":
        hold(path, arguments[0])
    else:
        other = arguments[0].encode()
        check_fields(path)
        check_paths(path, other)
        check_rows(path, other)


main()
