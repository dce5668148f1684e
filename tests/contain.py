"""Usage: contain.py COMMAND [ARGUMENT...]

Runs a test so that all its processes end with it, in any way that it ends. The exit status is the test's, or 1 where
it leaves processes behind: these are named and killed.

Two processes do this, an outer and an inner one. Both adopt orphans (child subreapers, prctl(2)), so a test's daemons
cannot get away by forking twice. The inner one is in a session of its own, where a SIGKILL to the process group (as
meson sends after a timeout) does not reach it. The kernel tells it when the outer one has died. When the inner one is
killed, the outer one adopts the rest."""

import contextlib
import ctypes
import os
import pathlib
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PYTHON_IGNORES = {signal.SIGPIPE, signal.SIGXFSZ}
ENDS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
WAITED_FOR = ENDS | {signal.SIGCHLD}
MOMENT_SECONDS = 5  # for which a process may outlive its test: a busy machine takes its time to end killed processes
LAST_WORDS_SECONDS = 5  # for which a test that is told to end may print its findings
LONGEST_TMPDIR = 30
ASIDE_SECONDS = 2
KILL_SECONDS = 20  # after which a process that SIGKILL does not end is named and left


def prctl(option, value):
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def descendants(top):
    """Pids below the process that have not ended: parents before their children."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text(errors="replace").rpartition(") ")[2].split()
                if fields[0] not in "ZX" or int(fields[17]) > 1:  # of that one only the main thread has ended
                    children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = list(children.get(top, []))
    for pid in found:
        found += children.get(pid, [])
    return found


def read_aside(pid, name):
    """The file of the process; b"?" where the kernel does not answer: somebody may hold the lock of its memory."""
    said = [b"?"]

    def read():
        with contextlib.suppress(OSError):
            said.append(pathlib.Path(f"/proc/{pid}/{name}").read_bytes())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(ASIDE_SECONDS)
    return said[-1]


def command_of(pid):
    return read_aside(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def reap(wanted=0):
    """Reaps the ended processes; the exit status of `wanted` (as a shell gives it) when that has ended, else None."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
            if ended[0] == wanted:
                code = os.waitstatus_to_exitcode(ended[1])
                status = code if code >= 0 else 128 - code
    return status


def remaining(seconds):
    """The descendants that do not end by themselves within `seconds`."""
    end = time.monotonic() + seconds
    while (pids := descendants(os.getpid())) and time.monotonic() < end:
        reap()
        time.sleep(0.02)
    reap()
    return pids


def kill_all():
    """Kills all descendants, also those that they fork meanwhile; those that remain."""
    end = time.monotonic() + KILL_SECONDS
    while (pids := descendants(os.getpid())) and time.monotonic() < end:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        reap()
        time.sleep(0.01)
    reap()
    return pids


def await_end(child, seconds=None):
    """The child's exit status; None when this process is told to end, or when `seconds` are over."""
    end = seconds and time.monotonic() + seconds
    while (status := reap(child)) is None:
        told = signal.sigtimedwait(WAITED_FOR, 1)
        if told and told.si_signo in ENDS or (end and time.monotonic() > end):
            return None
    return status


def fork(body):
    """A child that exits with body()."""
    pid = os.fork()
    if pid == 0:
        os._exit(body())
    return pid


def settle_environment():
    """The same for all who run the tests."""
    os.environ["CONTAIN_PID"] = str(os.getppid())  # of the one that adopts orphans
    os.environ.pop("PYTHONUNBUFFERED", None)
    # A python3 that is a shell script of a version manager starts six times slower, and scripts start hundreds.
    os.environ["PATH"] = os.path.dirname(os.path.realpath(sys.executable)) + ":" + os.environ.get("PATH", "")
    # Tests put sockets some folders below it, and a socket's path has at most 107 bytes.
    if len(os.environ.get("TMPDIR", "")) > LONGEST_TMPDIR:
        os.environ["TMPDIR"] = "/tmp"


def settle_process():
    """The same for all who run the tests: nohup ignores SIGHUP, a shell's `&` SIGINT and SIGQUIT."""
    os.umask(0o022)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    for number in signal.valid_signals() - PYTHON_IGNORES:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def run_test(command):
    settle_process()
    settle_environment()
    try:
        os.execvp(command[0], command)
    except OSError as reason:
        print(f"contain.py: {command[0]}: {reason.strerror}", file=sys.stderr)
        return 127


def inner(outer, command):
    os.setsid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != outer:
        return 1
    test = fork(lambda: run_test(command))
    status = await_end(test)
    if status is None:
        os.kill(test, signal.SIGTERM)
        await_end(test, LAST_WORDS_SECONDS)
        kill_all()
        return 128 + signal.SIGTERM
    left = [f"{pid} {command_of(pid)}" for pid in remaining(MOMENT_SECONDS)]
    if left:
        print("contain.py: the test has left processes behind:", *left, sep="\n  ", file=sys.stderr)
        immortal = kill_all()
        if immortal:
            print("contain.py: SIGKILL does not end them:", *immortal, file=sys.stderr)
        sys.stderr.flush()
    return 1 if left else status


def main(command):
    if not command:
        sys.exit(__doc__.splitlines()[0])
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # the runner was killed
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)
    outer = os.getpid()
    child = fork(lambda: inner(outer, command))
    status = await_end(child)
    if status is None:
        os.kill(child, signal.SIGTERM)
        status = await_end(child, LAST_WORDS_SECONDS + KILL_SECONDS)
    kill_all()
    return 1 if status is None else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
