"""A process in a session of its own, with its output in files; and what processes take of the host."""

import os
import signal
import subprocess
import time

from show import Failure

END_S, LOOK_S = 1, 0.01
_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGESIZE")


class Child:
    def __init__(self, words, out, errors=None, environment=None):
        """`errors`: None: with the output."""
        self.status, self.cpu_s = None, 0  # the latter of it and the children that it has waited for
        try:
            with open(out, "wb") as output, open(errors or os.devnull, "wb") as more:
                self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, env=environment,
                                                stderr=more if errors else subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            raise Failure(f"cannot start {words[0]}: {error.strerror}") from None
        self.pid = self.process.pid

    def ended(self):
        if self.status is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.status = self.process.returncode = os.WEXITSTATUS(status) or -(status & 0x7F)
                self.cpu_s = usage.ru_utime + usage.ru_stime
        return self.status is not None

    def end(self):
        """The whole session, by SIGTERM, then by SIGKILL: of its leader, and of what is left behind it."""
        if self.ended():
            return
        os.killpg(self.pid, signal.SIGTERM)
        until = time.monotonic() + END_S
        while time.monotonic() < until and not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            time.sleep(LOOK_S)
        os.killpg(self.pid, signal.SIGKILL)  # until the leader is waited for, its number is the session's
        while not self.ended():
            time.sleep(LOOK_S)


class Usage:
    """Of all processes of a session, or of this command name, of any user."""

    def __init__(self, session=None, name=None):
        self.session, self.name = session, name
        self.cpu_s = self.memory_bytes = self.peak_bytes = 0  # since the first look; at the latest one; the most
        self.ticks = {}  # of those found so far: at first, and at last

    def _add(self, key, session, ticks, pages):
        # A session's process worked for us; one found by its name may be as old as the machine.
        first = self.ticks.get(key, (0 if session == self.session else ticks,))[0]
        self.ticks[key] = (first, ticks)
        self.memory_bytes += pages * _PAGE


def look(usages):
    """One pass over /proc for all of them."""
    for usage in usages:
        usage.memory_bytes = 0
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                name, _, rest = file.read().partition(b"(")[2].rpartition(b")")
        except OSError:
            continue
        fields = rest.split()
        session = int(fields[3])
        for usage in usages:
            if session == usage.session or (usage.name and name.decode("ascii", "replace") == usage.name):
                usage._add((pid, fields[19]), session, int(fields[11]) + int(fields[12]), int(fields[21]))
    for usage in usages:
        usage.cpu_s = sum(last - first for first, last in usage.ticks.values()) / _TICKS
        usage.peak_bytes = max(usage.peak_bytes, usage.memory_bytes)
