"""carma dashboard between a browser and a daemon, both played here. Usage: dashboard.py CARMA DIRECTORY

The daemon shows the bytes that reached it, and answers as each check wants it."""

import contextlib
import json
import os
import pathlib
import pty
import queue
import re
import select
import socket
import subprocess
import sys
import threading
import time

PATIENCE_S = float(os.environ.get("PATIENCE_S", "90"))
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
STATUS = b"GET /v1/status HTTP/1.1\r\n"


class Daemon:
    """Each connection with a request is put into `calls`, once its request is complete, with its result."""

    def __init__(self, where):
        self.listener = socket.socket(socket.AF_INET if isinstance(where, tuple) else socket.AF_UNIX)
        self.listener.bind(where)
        self.listener.listen(128)
        self.calls = queue.Queue()
        self.slow = threading.Event()  # it does not read a request for /slow before
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                stream = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.take, args=(stream,), daemon=True).start()

    def take(self, stream):
        text, wanted = bytearray(), None
        while wanted is None or len(text) < wanted:
            if text.startswith(b"POST /slow "):
                self.slow.wait(PATIENCE_S)
            block = stream.recv(65536)
            if not block:
                break
            text += block
            end = text.find(b"\r\n\r\n") if wanted is None else -1
            if end >= 0:
                length = re.search(rb"\r\nContent-Length: (\d+)", text[:end])
                wanted = end + 4 + int(length[1] if length else 0)
        if text:
            self.calls.put((bytes(text), stream))
        else:
            stream.close()

    def call(self):
        text, stream = self.calls.get(timeout=PATIENCE_S)
        stream.settimeout(PATIENCE_S)
        return text, stream

    def answer(self, bytes_=PLAIN):
        text, stream = self.call()
        stream.sendall(bytes_)
        stream.close()
        return text

    def was_left_alone(self):
        assert self.calls.empty(), self.calls.get()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Browser:
    def __init__(self, carma, place, *arguments, **environment):
        self.process = subprocess.Popen([carma, "dashboard", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        stdin=subprocess.DEVNULL,
                                        env={**os.environ, "CARMA_SOCKET": place, **environment}, text=True)
        self.address = self.process.stdout.readline().strip()
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{64})", self.address)
        assert match, (self.address, self.process.stderr.read())
        self.port, self.token = int(match[1]), match[2]
        self.own = b"Host: 127.0.0.1:%d\r\n" % self.port
        self.cookie = b""

    def connect(self):
        stream = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        stream.settimeout(PATIENCE_S)
        return stream

    def raw(self, text):
        """All that comes back for these bytes."""
        with self.connect() as stream:
            answer = b""
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                stream.sendall(text)
                while block := stream.recv(65536):
                    answer += block
            return answer

    def head(self, line=STATUS, more=b"", host=None):
        return line + (host if host is not None else self.own) + self.cookie + more + b"\r\n"

    def enter(self, to=b"/"):
        answer = self.raw(self.head(b"GET /?token=%s HTTP/1.1\r\n" % self.token.encode()))
        self.cookie = b"Cookie: %s\r\n" % re.search(rb"Set-Cookie: ([^;]+); Path=/; HttpOnly; SameSite=Strict\r\n", answer)[1]
        assert status(answer) == 303 and b"\r\nLocation: %s\r\n" % to in answer, answer

    def end(self, number=2):
        self.process.send_signal(number)
        assert self.process.wait(PATIENCE_S) == 0, self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()


def whole(stream):
    answer = b""
    while block := stream.recv(65536):
        answer += block
    return answer


def status(answer):
    assert answer.startswith(b"HTTP/1.1 "), answer[:300]
    return int(answer[9:12])


def check_token(browser, daemon):
    """Good once, for one browser."""
    ask = b"GET /?token=%s HTTP/1.1\r\n"
    assert status(browser.raw(browser.head())) == 401
    assert status(browser.raw(browser.head(ask % (b"0" * 64)))) == 403
    assert status(browser.raw(browser.head(ask % browser.token[:-1].encode()))) == 403
    token = ask % browser.token.encode()
    assert status(browser.raw(browser.head(token, host=b"Host: evil.example:%d\r\n" % browser.port))) == 403
    assert status(browser.raw(browser.head(token.replace(b"GET", b"HEAD")))) == 401  # looks, and does not use it up
    browser.enter()
    with_cookie, browser.cookie = browser.cookie, b""
    answer = browser.raw(browser.head(token, b"Accept: text/html\r\n"))
    assert status(answer) == 403 and b"run 'carma dashboard' again" in answer and b"Set-Cookie" not in answer, answer
    for wrong in [b"", with_cookie[:-3] + b"\r\n", with_cookie.replace(b"=", b"=0"),
                  b"Cookie: carma-%d=%s\r\n" % (browser.port, browser.token.encode()),
                  with_cookie.replace(b"carma-%d" % browser.port, b"carma-1")]:
        assert status(browser.raw(browser.head(more=wrong))) == 401, wrong
    daemon.was_left_alone()
    browser.cookie = with_cookie
    assert status(browser.raw(browser.head(token))) == 303  # the same browser, once more
    for fine in [with_cookie, with_cookie.replace(b": ", b": a=b; carma-%d=0; " % browser.port).replace(b"\r\n", b"; c=d\r\n")]:
        browser.cookie = fine
        passes(browser, daemon)
    browser.cookie = with_cookie
    # Followed from another site's page (the link in a mail): the browser then keeps a strict cookie back from a redirection.
    answer = browser.raw(browser.head(token, b"Sec-Fetch-Site: cross-site\r\n"))
    assert status(answer) == 200 and b"url=/" in answer, answer


def passes(browser, daemon, head=None, answer=PLAIN, wanted=200):
    """The daemon gets the request, which it answers so; (what it got, what the browser has of that)."""
    with browser.connect() as stream:
        stream.sendall(head or browser.head())
        asked = daemon.answer(answer)
        got = whole(stream)
    assert status(got) == wanted, got
    return asked, got


def check_head(browser, daemon):
    """The daemon gets only the needed part of the browser's request; and the browser's answer."""
    asked, answer = passes(browser, daemon, browser.head(
        b"GET /v1/jobs?state=all&x=%41 HTTP/1.1\r\n",
        b"User-Agent: x\r\nAccept: a/b\r\nSec-Fetch-Site: same-origin\r\nConnection: keep-alive\r\n"
        b"Origin: http://127.0.0.1:%d\r\nAuthorization: Bearer x\r\nX-Forwarded-For: y\r\n"
        b"Upgrade: websocket\r\nif-none-match: \"1\"\r\n" % browser.port))
    assert asked == (b"GET /v1/jobs?state=all&x=%41 HTTP/1.1\r\nHost: carma\r\nConnection: close\r\n"
                     b"Accept: a/b\r\nIf-None-Match: \"1\"\r\n\r\n")
    for line in [b"Content-Security-Policy: default-src 'self'; ", b"frame-ancestors 'none'", b"X-Content-Type-Options: nosniff",
                 b"Referrer-Policy: no-referrer", b"Cache-Control: no-store", b"Content-Type: application/json"]:
        assert line in answer, (line, answer)
    assert answer.endswith(b"\r\n\r\n{}") and answer.count(b"Connection: close") == 1, answer
    # The daemon's own answer stays as it is.
    own = b"HTTP/1.1 304 Not Modified\r\ncache-control: max-age=9\r\nCONTENT-SECURITY-POLICY: x\r\nETag: \"1\"\r\n\r\n"
    answer = passes(browser, daemon, answer=own, wanted=304)[1]
    assert all(line in answer for line in own.split(b"\r\n")[1:]), answer
    assert b"no-store" not in answer and b"default-src" not in answer, answer


def check_sites(browser, daemon):
    """Other sites' pages, and names that others have pointed here, reach nothing."""
    port = browser.port
    for host in [b"Host: 127.0.0.1\r\n", b"Host: 127.0.0.1:%d0\r\n" % port, b"Host: evil.example:%d\r\n" % port,
                 b"Host: 127.0.0.1.evil.example:%d\r\n" % port, b"Host: [::1]:%d\r\n" % port, b"Host: carma\r\n"]:
        assert status(browser.raw(browser.head(host=host))) == 403, host
    for more in [b"Origin: http://evil.example\r\n", b"Origin: null\r\n", b"Origin: http://127.0.0.1:1\r\n",
                 b"Origin: https://127.0.0.1:%d\r\n" % port, b"Origin: http://localhost:%d\r\n" % port, b"Origin: \r\n",
                 b"Sec-Fetch-Site: cross-site\r\n", b"Sec-Fetch-Site: same-site\r\n", b"Sec-Fetch-Site: \r\n",
                 b"Origin: null\r\nSec-Fetch-Site: same-site\r\n",
                 b"Origin: http://evil.example\r\nSec-Fetch-Site: same-origin\r\n"]:
        assert status(browser.raw(browser.head(more=more))) == 403, more
    # A changing request names its page.
    post = b"POST /v1/jobs/1/cancel HTTP/1.1\r\n"
    assert status(browser.raw(browser.head(post, b"Content-Length: 0\r\n"))) == 403
    daemon.was_left_alone()
    for more in [b"Origin: http://127.0.0.1:%d\r\n" % port, b"Sec-Fetch-Site: same-origin\r\n",
                 b"Origin: null\r\nSec-Fetch-Site: same-origin\r\n"]:
        asked = passes(browser, daemon, browser.head(post, more + b"Content-Length: 0\r\n"))[0]
        assert asked == post + b"Host: carma\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    passes(browser, daemon, browser.head(host=b"Host: LocalHost:%d\r\n" % port, more=b"Origin: http://localhost:%d\r\n" % port))


def check_odd_heads(browser, daemon):
    """A head that could be read in two ways is refused here; bytes after a body are never sent on."""
    own = browser.own + browser.cookie
    odd = [(b"GET /v1/status\r\n" + own + b"\r\n", 400), (b"GET  /v1/status HTTP/1.1\r\n" + own + b"\r\n", 400),
           (b"GET /v1/status HTTP/1.0\r\n" + own + b"\r\n", 505), (b"GET /v1/status HTTP/1.1\n" + own + b"\r\n", 400),
           (b"GET http://127.0.0.1/v1/status HTTP/1.1\r\n" + own + b"\r\n", 400), (b"GET * HTTP/1.1\r\n" + own + b"\r\n", 400),
           (b"GET /a\tb HTTP/1.1\r\n" + own + b"\r\n", 400), (b"GET /a#b HTTP/1.1\r\n" + own + b"\r\n", 400),
           (b"GET /\xc3\xa4 HTTP/1.1\r\n" + own + b"\r\n", 400), (b"GET /%s HTTP/1.1\r\n" % (b"a" * 9000) + own + b"\r\n", 414),
           (b"DELETE /v1/jobs/1 HTTP/1.1\r\n" + own + b"\r\n", 405), (b"CONNECT /x HTTP/1.1\r\n" + own + b"\r\n", 405),
           (STATUS + own + browser.own + b"\r\n", 400), (STATUS + browser.cookie + b"\r\n", 400),
           (STATUS + own + browser.cookie + b"\r\n", 400), (STATUS + own + b"X: a\r\n b\r\n\r\n", 400),
           (STATUS + own + b"X: a\0b\r\n\r\n", 400), (STATUS + own + b"X: a\nY: b\r\n\r\n", 400),
           (STATUS + own + b"X: a\rY: b\r\n\r\n", 400), (STATUS + own + b"X : a\r\n\r\n", 400),
           (STATUS + own + b": a\r\n\r\n", 400), (STATUS + own + b"X\r\n\r\n", 400),
           (STATUS + own + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n", 400),
           (STATUS + own + b"Content-Length: +1\r\n\r\n", 400), (STATUS + own + b"Content-Length: 1,1\r\n\r\n", 400),
           (STATUS + own + b"Content-Length: \r\n\r\n", 400), (STATUS + own + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
           (STATUS + own + b"transfer-encoding: identity\r\nContent-Length: 0\r\n\r\n", 411),
           (STATUS + own + b"Content-Length: %d\r\n\r\n" % ((16 << 20) + 1), 413),
           (STATUS + own + b"Content-Length: 99999999999999999999999\r\n\r\n", 413),
           (STATUS + own + b"X: %s\r\n\r\n" % (b"a" * 70000), 431), (STATUS + own + b"X: a\r\n" * 12000, 431)]
    for text, wanted in odd:
        answer = browser.raw(text)
        by_library = b'{"error":' not in answer  # which words its own refusals of malformed requests
        assert status(answer) == wanted and (by_library or b"Content-Security-Policy: " in answer), (text[:200], wanted, answer)
    daemon.was_left_alone()
    behind = b"POST /v1/jobs/1/cancel HTTP/1.1\r\nHost: carma\r\nContent-Length: 0\r\n\r\n"
    origin = b"Origin: http://127.0.0.1:%d\r\n" % browser.port
    with browser.connect() as stream:
        stream.sendall(browser.head(b"POST /v1/jobs HTTP/1.1\r\n", origin + b"Content-Length: 2\r\n") + b"{}" + behind)
        text, call = daemon.call()
        stream.sendall(behind)
        call.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            text += call.recv(4096)
        assert text.endswith(b"\r\n\r\n{}") and b"cancel" not in text, text
        call.close()
    daemon.was_left_alone()


def check_streams(browser, daemon):
    """Events come when they are sent; a browser that leaves is noticed."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    with browser.connect() as stream:
        stream.sendall(browser.head(b"GET /v1/events HTTP/1.1\r\n"))
        _, call = daemon.call()
        for part in [head[:20], head[20:-1], head[-1:] + b"event: a\n"]:
            call.sendall(part)
            time.sleep(0.05)
        seen = b""
        while b"event: a\n" not in seen:
            seen += stream.recv(4096)
        for number in range(20):
            event = b"data: %d\n\n" % number
            call.sendall(event)
            assert stream.recv(4096) == event
    assert call.recv(1) == b""  # the browser's end is passed on
    call.close()
    # The daemon's as well.
    with browser.connect() as stream:
        stream.sendall(browser.head(b"GET /v1/events HTTP/1.1\r\n"))
        _, call = daemon.call()
        call.sendall(head + b"data: 1\n\n")
        call.close()
        while block := stream.recv(4096):
            seen = block
        assert seen.endswith(b"data: 1\n\n"), seen


def check_bodies(browser, daemon):
    """Large data passes whole, both ways, and slowly; a daemon that refuses without reading is heard."""
    origin = b"Origin: http://127.0.0.1:%d\r\n" % browser.port
    body = os.urandom(1 << 20) * 9
    post = browser.head(b"POST /v1/jobs HTTP/1.1\r\n", origin + b"Content-Length: %d\r\n" % len(body))
    with browser.connect() as stream:
        sender = threading.Thread(target=stream.sendall, args=(post + body,))
        sender.start()
        text, call = daemon.call()
        sender.join()
        assert text.endswith(b"\r\n\r\n" + body), len(text)
        answering = threading.Thread(target=call.sendall, args=(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body,))
        answering.start()
        answer = b""
        while len(answer) < len(body):
            answer += stream.recv(1 << 20)
        answering.join()
        call.close()
        assert answer.endswith(body) and stream.recv(1) == b""
    with browser.connect() as stream:
        stream.sendall(browser.head(b"POST /v1/jobs HTTP/1.1\r\n", origin + b"Content-Length: 1000\r\n") + b"{")
        time.sleep(0.1)
        stream.sendall(b"x" * 999)
        text, call = daemon.call()
        assert text.endswith(b"\r\n\r\n{" + b"x" * 999)
        call.sendall(PLAIN.replace(b"200 OK", b"413 Large"))
        call.close()
        assert status(stream.recv(4096)) == 413


def fill(stream, block, most):
    """Sends until nobody takes more for a moment, or it is too much; says how much it was."""
    sent = 0
    while sent < most and select.select([], [stream], [], 1)[1]:
        sent += stream.send(block[:most - sent], socket.MSG_DONTWAIT)
    return sent


def check_slow_sides(browser, daemon):
    """A slow reader is waited for: little data is on its way, and none of it is lost."""
    block, most = os.urandom(1 << 16), 30 << 20
    enough = most * 3 // 4  # the sockets' own room is less
    with browser.connect() as stream:
        stream.sendall(browser.head())
        _, call = daemon.call()
        call.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        sent = fill(call, block, most)
        assert sent < enough, sent
        threading.Thread(target=call.close).start()
        got = 0
        while chunk := stream.recv(1 << 20):
            got += len(chunk)
        assert got > sent and got - sent < 2000, (got, sent)  # and the head
    most = 15 << 20
    with browser.connect() as stream:
        stream.sendall(browser.head(b"POST /slow HTTP/1.1\r\n", b"Sec-Fetch-Site: same-origin\r\nContent-Length: %d\r\n" % most))
        sent = fill(stream, block, most)
        assert sent < most, sent
        daemon.slow.set()
        sender = threading.Thread(target=lambda: [stream.sendall(block[:min(1 << 16, most - at)])
                                                  for at in range(sent, most, 1 << 16)])
        sender.start()
        text, call = daemon.call()
        sender.join()
        assert len(text.partition(b"\r\n\r\n")[2]) == most
        call.close()


def check_odd_answers(browser, daemon):
    """An answer that is not a daemon's is not passed on."""
    for odd in [b"", b"220 mail.example ready\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: y",
                b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70000, b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n"]:
        answer = passes(browser, daemon, answer=odd, wanted=502)[1]
        assert b'{"error":' in answer, (odd[:100], answer)
    # An interim answer does not end the exchange.
    answer = passes(browser, daemon, answer=b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n" + PLAIN)[1]
    assert b"X: y" not in answer and answer.endswith(b"\r\n\r\n{}"), answer
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n"
    # How the daemon cuts its answer into pieces is its own affair.
    answer = passes(browser, daemon, answer=head + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")[1]
    assert answer.endswith(b"\r\n\r\nabc") and b"chunked" not in answer and b"keep-alive" not in answer, answer
    answer = passes(browser, daemon, browser.head(b"HEAD /v1/status HTTP/1.1\r\n"), PLAIN[:-2])[1]
    assert b"Content-Length: 2\r\n" in answer and answer.endswith(b"\r\n\r\n"), answer


def check_connections(browser, daemon):
    """This many at once, and no more; then there is room again."""
    held = [browser.connect() for _ in range(64)]
    end = time.monotonic() + PATIENCE_S
    while status(browser.raw(browser.head(b"GET /local/whoami HTTP/1.1\r\n"))) != 503:
        assert time.monotonic() < end
    for stream in held:
        stream.close()
    while status(browser.raw(browser.head(b"GET /local/whoami HTTP/1.1\r\n"))) != 200:
        assert time.monotonic() < end
    daemon.was_left_alone()


def check_no_daemon(browser, daemon, path):
    """While there is none, that is said; with the next it goes on."""
    daemon.close()
    os.unlink(path)
    answer = browser.raw(browser.head())
    assert status(answer) == 502 and b'{"error":"%s: the daemon cannot be reached' % path.encode() in answer, answer
    answer = browser.raw(browser.head(b"GET / HTTP/1.1\r\n", b"Accept: text/html,*/*\r\n"))
    assert status(answer) == 502 and b"<p>%s: the daemon cannot" % path.encode() in answer and b"refresh" in answer, answer
    answer = browser.raw(browser.head(b"GET /local/jobs/1/log HTTP/1.1\r\n"))
    assert status(answer) == 502 and b"no daemon listens there" in answer, answer
    daemon = Daemon(path)
    passes(browser, daemon)
    return daemon


def check_local(browser, daemon, directory):
    """Answers without the daemon, and the parts of a job's output that are read."""
    answer = browser.raw(browser.head(b"GET /local/whoami HTTP/1.1\r\n"))
    assert status(answer) == 200 and b'"uid":%d,' % os.getuid() in answer, answer
    for target in [b"/local/", b"/local/x", b"/local/cluster", b"/local/clusters", b"/local/jobs/1", b"/local/jobs/x/log", b"/local/jobs/1/log/x", b"/local/jobs/-1/log",
                   b"/local/jobs/1/log?bytes=", b"/local/jobs/1/log?bytes=-1", b"/local/jobs/1/log?path=/etc/passwd",
                   b"/local/jobs/1/log?bytes=1&bytes=2", b"/local/../v1/status", b"/local/jobs/9999999999999999999/log"]:
        assert status(browser.raw(browser.head(b"GET " + target + b" HTTP/1.1\r\n"))) == 404, target
    assert status(browser.raw(browser.head(b"POST /local/whoami HTTP/1.1\r\n", b"Sec-Fetch-Site: same-origin\r\n"))) == 405
    for body in [b"[]", b'{"directory": ".", "arguments": []}', b'{"directory": "/", "arguments": [1]}', b'{"directory": "/", "arguments": ["x"], "script": 7}']:
        more = b"Sec-Fetch-Site: same-origin\r\nConnection: close\r\nContent-Length: %d\r\n" % len(body)
        assert status(browser.raw(browser.head(b"POST /local/submit HTTP/1.1\r\n", more) + body)) == 400, body
    daemon.was_left_alone()
    os.mkfifo(directory / "fifo")
    (directory / "out-7").write_bytes(b"0123456789" * 7000)

    def log(output, query=b""):
        with browser.connect() as stream:
            stream.sendall(browser.head(b"GET /local/jobs/7/log%s HTTP/1.1\r\n" % query))
            job = b'{"id": 7, "uid": %d, "state": "RUNNING", "started_ns": 1%s}' % (os.getuid(), output)
            asked = daemon.answer(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(job) + job)
            assert asked.startswith(b"GET /v1/jobs/7 HTTP/1.1\r\n"), asked
            return whole(stream)

    where = b', "output": "%s/' % bytes(directory)
    answer = log(where + b'out-%j"', b"?bytes=13")
    assert status(answer) == 200 and answer.endswith(b"\r\n\r\n7890123456789") and b"text/plain" in answer, answer
    assert len(log(where + b'out-%j"').partition(b"\r\n\r\n")[2]) == 16 << 10
    assert len(log(where + b'out-%j"', b"?bytes=10000000").partition(b"\r\n\r\n")[2]) == 64 << 10
    assert status(log(where + b'none"')) == 404
    answer = log(where + b'fifo"')
    assert status(answer) == 422 and b"is not a regular file" in answer, answer
    assert status(log(b', "output": "/dev/zero"')) == 422
    answer = log(b', "output": null')
    assert status(answer) == 403 and b"it is not yours" in answer, answer


def check_tcp(carma, directory):
    """By TCP it shows the token that CARMA_TOKEN_FILE holds."""
    (directory / "token").touch(0o600)
    (directory / "token").write_text("t" * 32)
    daemon = Daemon(("127.0.0.1", 0))
    place = "127.0.0.1:%d" % daemon.listener.getsockname()[1]
    browser = Browser(carma, "tcp://" + place, CARMA_TOKEN_FILE=str(directory / "token"))
    browser.enter()
    asked = passes(browser, daemon, browser.head(more=b"Authorization: Bearer mine\r\n"))[0]
    assert asked == STATUS + b"Host: %s\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n" % (place.encode(), b"t" * 32)
    browser.end(15)


def check_cluster(carma, directory):
    """Nodes are asked where the user wants that, and the page of them comes first."""
    programs = directory / "nodes"
    programs.mkdir()
    for name, text in [("ssh", """case $* in *n1*) echo '{"gpus": [], "jobs": []}' ;; *) echo "$*" >&2; exit 255 ;; esac"""),
                       ("squeue", "echo '7|1|0|ada|gres|Priority|name'")]:
        (programs / name).write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    browser = Browser(carma, str(directory / "daemon.sock"), "--nodes", "n1,n2", "--node-timeout", "60", PATH=path)
    browser.enter(b"/#/cluster")
    head, _, body = browser.raw(browser.head(b"GET /local/cluster HTTP/1.1\r\n")).partition(b"\r\n\r\n")
    answer = json.loads(body)
    assert status(head) == 200 and answer["nodes"][0] == {"name": "n1", "gpus": [], "jobs": []}, answer
    assert "-- n2 carma" in answer["nodes"][1]["error"] and answer["slurm"]["waiting"][0]["job"] == "7", answer
    browser.end()


def check_terminal(carma, directory):
    """At a desktop a browser is started, once, and has the signals that it expects; a user that came by ssh is told how
    to come here."""
    path = str(directory / "daemon.sock")
    programs = directory / "bin"
    programs.mkdir()
    opener = programs / "xdg-open"
    opener.write_text(f"#!/bin/sh\ngrep SigIgn /proc/$$/status >'{directory}/ignored'\necho \"$1\" >>'{directory}/new'\n"
                      f"mv '{directory}/new' '{directory}/opened'\n", encoding="ascii")
    opener.chmod(0o755)
    desktop = {**os.environ, "CARMA_SOCKET": path, "DISPLAY": ":0", "PATH": f"{programs}:{os.environ['PATH']}"}
    by_ssh = {"SSH_CONNECTION": "10.0.0.9 50000 10.0.0.1 2222"}
    for arguments, more, opens in [([], {}, True), (["--no-open"], {}, False), ([], by_ssh, False), ([], {"DISPLAY": ""}, False)]:
        terminal, inside = pty.openpty()
        process = subprocess.Popen([carma, "dashboard", *arguments], stdin=subprocess.DEVNULL, stdout=inside,
                                   stderr=subprocess.PIPE, env={**desktop, **more}, text=True)
        os.close(inside)
        address = os.read(terminal, 4096).decode().strip()
        assert "/?token=" in address, address
        end = time.monotonic() + PATIENCE_S
        while opens and not (directory / "opened").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(2)
        message = process.stderr.read()
        assert process.wait(PATIENCE_S) == 0
        os.close(terminal)
        port = address.partition("127.0.0.1:")[2].partition("/")[0]
        assert (f"ssh -N -L {port}:127.0.0.1:{port} -p 2222 " in message and "10.0.0.1" in message) == (more == by_ssh), message
        assert (directory / "opened").exists() == opens
        if opens:
            assert (directory / "opened").read_text(encoding="ascii").strip() == address
            ignored = int((directory / "ignored").read_text(encoding="ascii").split()[1], 16)
            assert not ignored & (1 << 12 | 1 << 16), ignored  # SIGPIPE, SIGCHLD
            (directory / "opened").unlink()


def main():
    carma, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    path = str(directory / "daemon.sock")
    for name in "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION":
        os.environ.pop(name, None)
    daemon = Daemon(path)
    browser = Browser(carma, path, "--no-open")
    hesitant = browser.connect()
    hesitant.sendall(b"GET / HT")
    hesitant_since = time.monotonic()
    check_token(browser, daemon)
    check_head(browser, daemon)
    check_sites(browser, daemon)
    check_odd_heads(browser, daemon)
    check_streams(browser, daemon)
    check_bodies(browser, daemon)
    check_slow_sides(browser, daemon)
    check_odd_answers(browser, daemon)
    check_local(browser, daemon, directory)
    check_connections(browser, daemon)
    daemon = check_no_daemon(browser, daemon, path)
    assert hesitant.recv(1) == b"" and time.monotonic() - hesitant_since > 14  # its time for a whole head
    browser.end()
    check_terminal(carma, directory)
    check_cluster(carma, directory)
    check_tcp(carma, directory)


main()
