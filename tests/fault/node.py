"""A virtual node with carma's programs on it: they are started, killed and made to fail here."""

import http.client
import json
import mmap
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "cli"))
from unix_http import Connection  # noqa: E402

TIME_SCALE = 600
SLOT = struct.Struct("=IIiiiI24s24s48s")  # struct fail_slot of fail.h
CLOCK = struct.Struct("=q")
SLOTS = 4


class Control:
    """The orders for fail.c; the file is mapped by every program that was started with it."""

    def __init__(self, path):
        self.path = path
        size = CLOCK.size + SLOTS * SLOT.size
        path.write_bytes(bytes(size))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), size)

    def arm(self, program, call, file="", *, after=False, skip=0, times=1, error=0, slot=0):
        """The calls that follow are counted: `skip` pass, `times` are hit."""
        at = CLOCK.size + slot * SLOT.size
        packed = SLOT.pack(0, after, skip, times, error, 0, program.encode(), call.encode(), file.encode())
        self.disarm(slot)
        self.map[at + 4:at + SLOT.size] = packed[4:]
        self.map[at:at + 4] = struct.pack("=I", 1)

    def hits(self, slot=0):
        return SLOT.unpack_from(self.map, CLOCK.size + slot * SLOT.size)[5]

    def disarm(self, slot=0):
        at = CLOCK.size + slot * SLOT.size
        self.map[at:at + 4] = bytes(4)

    def shift_clock(self, seconds):
        self.map[:CLOCK.size] = CLOCK.pack(int(seconds * 1e9))


class Node:
    def __init__(self, source, build, settings=(), scale=TIME_SCALE):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="carma-fault."))
        self.build = build
        self.state = self.top / "state"
        self.books = self.top / "books"
        self.books.mkdir()
        self.log = self.top / "daemon.log"
        self.settings = settings
        self.daemon, self.killed = None, set()
        self.scale = scale
        prefix = self.top / "prefix"
        self.link(prefix / "bin", ["cli/carma", "daemon/carmad", "vnode/carma-train", "vnode/carma-vnode"])
        self.link(prefix / "lib" / "carma", ["cli/carma-tools", "gpu/carma-monitor", "launch/carma-shepherd"])
        self.link(prefix / "lib" / "carma" / "vnode", ["vnode/libnvidia-ml.so.1", "vnode/nvidia-cuda-mps-control"])
        (prefix / "share" / "carma").mkdir(parents=True)
        for name in ("nodes", "workloads.csv", "summaries", "traces"):
            (prefix / "share" / "carma" / name).symlink_to(source / "data" / name)
        self.prefix = prefix
        self.socket = self.top / "socket"
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("CARMA_")}
        self.env |= {"CARMA_PREFIX": str(prefix), "CARMA_VNODE": str(self.top / "node"), "LC_ALL": "C",
                     "CARMA_SOCKET": str(self.socket), "CARMA_TIME_SCALE": str(scale)}
        self.control = Control(self.top / "control")
        self.preload = {"LD_PRELOAD": str(build / "tests" / "fault" / "libcarma-fail.so"),
                        "CARMA_FAULT": str(self.control.path)}
        self.run("carma-vnode", "create", self.env["CARMA_VNODE"], "--profile", "a100x4-40g", check=True)

    def link(self, folder, names):
        folder.mkdir(parents=True)
        for name in names:
            (folder / os.path.basename(name)).symlink_to(self.build / "src" / name)

    def run(self, program, *arguments, check=False):
        return subprocess.run([self.prefix / "bin" / program, *map(str, arguments)], env=self.env, cwd=self.top,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=check)

    def begin(self, program, *arguments):
        return subprocess.Popen([self.prefix / "bin" / program, *map(str, arguments)], env=self.env, cwd=self.top, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    # ---- The daemon

    def start(self):
        command = [self.prefix / "bin" / "carmad", "--config", "/dev/null", "--state", self.state, "--socket", self.socket,
                   "--set", f"nvml_library={self.prefix}/lib/carma/vnode/libnvidia-ml.so.1", "--set", "grace=300ms"]
        for setting in self.settings:
            command += ["--set", setting.format(prefix=self.prefix)]
        with open(self.log, "a", encoding="utf-8") as log:
            self.daemon = subprocess.Popen(command, env=self.env | self.preload, cwd=self.top, stdin=subprocess.DEVNULL,
                                           stdout=log, stderr=log)

    def alive(self):
        return self.daemon is not None and self.daemon.poll() is None

    def kill(self, number=signal.SIGKILL):
        """Returns the status with which it ended."""
        if self.alive():
            self.daemon.send_signal(number)
        return self.daemon.wait() if self.daemon else None

    def restart(self):
        self.kill()
        self.start()

    def get(self, path):
        """None where the daemon does not answer."""
        connection = Connection(self.socket, 5)
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()

    def await_ready(self, seconds=20):
        """Whether it answers and sees its GPUs in time; False as well once it has died."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.alive():
            gpus = self.get("/v1/gpus")
            if gpus and all(gpu["observed_ns"] for gpu in gpus["gpus"]) and gpus["gpus"]:
                return True
            time.sleep(0.01)
        return False

    # ---- Processes

    def processes(self):
        """{pid: name} of all that live on this node, zombies not counted."""
        mark = f"CARMA_VNODE={self.env['CARMA_VNODE']}".encode()
        found = {}
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            try:
                folder = pathlib.Path(entry.path)
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (folder / "comm").read_text(encoding="utf-8").strip()
            except OSError:
                continue
        return found

    def pids_of(self, name):
        return [pid for pid, found in self.processes().items() if found == name[:15]]

    def kill_all(self):
        for pid in self.processes():
            self.killed.add(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.daemon:
            self.daemon.wait()

    def remove(self):
        self.kill_all()
        shutil.rmtree(self.top, ignore_errors=True)
