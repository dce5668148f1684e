"""An MPS daemon for one run, in a folder of its own. So a machine's own daemon is neither used nor disturbed, and one
run's faults do not reach the next. The control program's words are those of src/gpu/mps/protocol.c."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

START_S, CALL_S, QUIT_S = 60, 5, 3
LOOK_S, STAYS_S = 0.02, 0.25  # a server whose state is not told is up when it was listed for that long
_OWN = ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_PROTOCOL_VERSION")


class CannotStart(Exception):
    pass


class Mps:
    def __init__(self, program, gpu, stop):
        self.program, self.stop = program, stop
        self.folder = tempfile.mkdtemp(prefix="carma-mps-")
        self.pipe, log = f"{self.folder}/pipe", f"{self.folder}/log"
        os.mkdir(self.pipe)
        os.mkdir(log)
        self.log = f"{log}/start.log"
        self.environment = {name: value for name, value in os.environ.items() if name not in _OWN}
        self.environment.update(CUDA_MPS_PIPE_DIRECTORY=self.pipe, CUDA_MPS_LOG_DIRECTORY=log, CUDA_VISIBLE_DEVICES=gpu)

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self.pipe

    def _start(self):
        """Until a server serves us."""
        with open(self.log, "wb") as log:
            try:
                done = subprocess.run([self.program, "-d"], check=False, env=self.environment, stdout=log, stderr=log,
                                      stdin=subprocess.DEVNULL, timeout=CALL_S, start_new_session=True)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise CannotStart(f"cannot run {self.program}: {error}") from None
        if done.returncode and not self._daemon():
            raise CannotStart(f"{self.program} -d ended with status {done.returncode}")
        until, asked, listed = time.monotonic() + START_S, False, None
        while time.monotonic() < until and not self.stop.number:
            servers = self._ask("get_server_list")
            pids = (servers or "").split()
            if servers is not None and not pids and not asked:
                asked = self._ask(f"start_server -uid {os.getuid()}") is not None
            elif pids and pids[0].isdecimal():
                listed = listed or time.monotonic()
                status = self._ask(f"get_server_status {pids[0]}") or ""
                if status.strip() == "ACTIVE" or ("Unknown command" in status and time.monotonic() - listed > STAYS_S):
                    return
            time.sleep(LOOK_S)
        raise CannotStart(f"{self.program}: no MPS server within {START_S} s")

    def _ask(self, words):
        """The daemon's answer; None: it gives none."""
        try:
            done = subprocess.run([self.program], check=False, env=self.environment, input=f"{words}\n".encode(),
                                  timeout=CALL_S, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired):
            return None
        # NVIDIA's ends with 1 at times after a start: the list tells the result
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 or words[:5] == "start" else None

    def _daemon(self):
        """The process that listens at its socket; None: none does."""
        for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
            with socket.socket(socket.AF_UNIX, kind) as control:
                control.settimeout(1)
                try:
                    control.connect(f"{self.pipe}/control")
                    return struct.unpack("3i", control.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
                except OSError:
                    continue
        return None

    def __exit__(self, *_):
        """Has it quit; then ends it, its servers first: it would not take them with it."""
        daemon = self._daemon()
        if daemon:
            self._ask("quit")
            for number in (None, signal.SIGTERM, signal.SIGKILL):
                until = time.monotonic() + QUIT_S
                if number:
                    for pid in _children(daemon) + [daemon]:
                        _signal(pid, number)
                while time.monotonic() < until and _runs(daemon):
                    time.sleep(LOOK_S)
        shutil.rmtree(self.folder, ignore_errors=True)


def _stat(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _runs(pid):
    try:
        return _stat(pid)[0] not in "ZX"
    except OSError:
        return False


def _children(parent):
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if _stat(pid)[1] == str(parent):
                found.append(int(pid))
        except OSError:
            continue
    return found


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
