"""Usage: service_manager.py LOG [--unix PATH] [--tcp HOST:PORT] [--notify PATH|@NAME] [--watchdog-us N] -- COMMAND...

The part of systemd for a service of Type=notify with a socket unit. It listens on the sockets (a Unix one with mode
0666, a user's with 0600). It starts the command with them, with NOTIFY_SOCKET (default: LOG.notify) and perhaps a
watchdog. It writes the notices to LOG, one assignment a line, with the sender's pid before it. SIGHUP stops the
command, the command alone, and writes the line "ended STATUS"; the next SIGHUP starts it again with the same sockets.
SIGTERM stops it, and ends with its status."""

import argparse
import os
import pathlib
import selectors
import signal
import socket
import struct
import sys

FIRST_SOCKET = 3


def listen(arguments):
    sockets = []
    if arguments.unix:
        made = socket.socket(socket.AF_UNIX)
        pathlib.Path(arguments.unix).unlink(missing_ok=True)
        made.bind(arguments.unix)
        os.chmod(arguments.unix, 0o666 if os.geteuid() == 0 else 0o600)  # as the units have it
        sockets.append(made)
    if arguments.tcp:
        host, _, port = arguments.tcp.rpartition(":")
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, int(port)))
        sockets.append(made)
    for made in sockets:
        made.listen(64)
    return sockets


def start(arguments, sockets):
    pid = os.fork()
    if pid:
        return pid
    high = [os.dup2(made.fileno(), 100 + number) for number, made in enumerate(sockets)]
    for number, fd in enumerate(high):
        os.dup2(fd, FIRST_SOCKET + number, inheritable=True)
    os.closerange(FIRST_SOCKET + len(sockets), 256)
    own = str(os.getpid())
    os.environ["NOTIFY_SOCKET"] = arguments.notify
    if sockets:
        os.environ.update(LISTEN_FDS=str(len(sockets)), LISTEN_PID=own, LISTEN_FDNAMES=":".join(["carmad.socket"] * len(sockets)))
    if arguments.watchdog_us:
        os.environ.update(WATCHDOG_USEC=str(arguments.watchdog_us), WATCHDOG_PID=own)
    return os.execvp(arguments.command[0], arguments.command)


def note(log, manager):
    text, control, _, _ = manager.recvmsg(65536, socket.CMSG_SPACE(12))
    pid = next((struct.unpack("iII", data)[0] for _, kind, data in control if kind == socket.SCM_CREDENTIALS), 0)
    for line in text.decode().split("\n"):
        log.write(f"{pid} {line}\n")
    log.flush()


def note_rest(log, manager):
    manager.setblocking(False)
    try:
        while True:
            note(log, manager)
    except BlockingIOError:
        manager.setblocking(True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("log")
    parser.add_argument("--unix")
    parser.add_argument("--tcp")
    parser.add_argument("--notify")
    parser.add_argument("--watchdog-us", type=int)
    end = sys.argv.index("--")
    arguments = parser.parse_args(sys.argv[1:end])
    arguments.command = sys.argv[end + 1:]
    arguments.notify = arguments.notify or arguments.log + ".notify"

    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    manager.bind("\0" + arguments.notify[1:] if arguments.notify.startswith("@") else arguments.notify)
    sockets = listen(arguments)
    wakeup = socket.socketpair()
    for end in wakeup:
        end.setblocking(False)
    signal.set_wakeup_fd(wakeup[1].fileno())
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    ending = False
    with open(arguments.log, "a", encoding="utf-8") as log, selectors.DefaultSelector() as ready:
        ready.register(manager, selectors.EVENT_READ)
        ready.register(wakeup[0], selectors.EVENT_READ)
        pid = start(arguments, sockets)
        while True:
            for key, _ in ready.select():
                if key.fileobj is manager:
                    note(log, manager)
                    continue
                numbers = wakeup[0].recv(64)
                ending = ending or signal.SIGTERM in numbers
                if pid is None and signal.SIGHUP in numbers:
                    pid = start(arguments, sockets)
                elif pid and (signal.SIGTERM in numbers or signal.SIGHUP in numbers):
                    os.kill(pid, signal.SIGTERM)
                ended, status = os.waitpid(pid, os.WNOHANG) if pid else (0, 0)
                if not ended:
                    if ending and not pid:
                        return 0
                    continue
                note_rest(log, manager)
                status = os.waitstatus_to_exitcode(status)
                pid = None
                log.write(f"ended {status}\n")
                log.flush()
                if ending or status != 0:
                    return status % 256


sys.exit(main())
