#!/usr/bin/env python3
"""Usage: record.py DRIVER PROGRAM [GOLDEN]

Holds a dialogue with an MPS control program (NVIDIA's nvidia-cuda-mps-control, or the virtual node's) as far as it goes
without a GPU, and prints it. With GOLDEN, it says how the dialogue differs from that file. Needs root, as several
users' server does.

A recording is lines: `driver VERSION`; `$ ARGUMENTS`, the program was called with these; `> TEXT`, with that on its standard
input; `as UID`, the next call is another user's; `| TEXT` and `! TEXT`, what it printed and said as an error; `status N`; `files`, what is then in the pipe directory
(name, kind and mode) and the log directory; `kill`, the daemon got SIGKILL. A program's text about its use is
`<usage>`."""
import contextlib
import difflib
import os
import pathlib
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time

KINDS = {stat.S_IFSOCK: "socket", stat.S_IFIFO: "fifo", stat.S_IFREG: "file"}
INPUTS = [
    "get_server_list", "get_server_status", "get_server_status 1", "get_client_list", "get_client_list 1",
    "get_device_client_list", "get_device_client_list 1", "ps",
    "get_default_active_thread_percentage", "set_default_active_thread_percentage 30", "get_default_active_thread_percentage",
    "set_default_active_thread_percentage 0", "set_default_active_thread_percentage 200",
    "set_default_active_thread_percentage x", "set_default_active_thread_percentage",
    "get_default_device_pinned_mem_limit 0", "set_default_device_pinned_mem_limit 0 4G",
    "get_default_device_pinned_mem_limit 0", "get_default_device_pinned_mem_limit",
    "set_default_device_pinned_mem_limit 99 4G", "get_default_device_pinned_mem_limit 99",
    "get_default_client_priority", "set_default_client_priority 1", "get_default_client_priority",
    "start_server", "start_server -uid", "start_server -uid abc", "start_server 5",
    "terminate_client", "terminate_client 1", "terminate_client 1 2",
    "shutdown_server", "shutdown_server 1", "shutdown_server 1 -f",
    "nonsense", "nonsense a b", "server list", "", "get_default_active_thread_percentage\nnonsense\nget_server_list",
]
OTHER = 12002  # neither root nor the server's user
OTHERS = [
    "get_default_active_thread_percentage", "set_default_active_thread_percentage 7", "get_default_active_thread_percentage",
    "set_default_device_pinned_mem_limit 0 1M", "get_default_device_pinned_mem_limit 0",
    "set_default_client_priority 0", "get_default_client_priority", "start_server -uid 12001", "shutdown_server 1", "quit",
]


class Recorder:
    def __init__(self, program, directory):
        directory.chmod(0o711)
        self.program = shutil.copy(program, directory / "control")  # where other users can go
        self.directory, self.lines, self.pid = directory, [], 0
        for name in ("pipe", "log"):
            (directory / name).mkdir()
        self.environment = {"PATH": os.environ["PATH"], "CUDA_MPS_PIPE_DIRECTORY": str(directory / "pipe"),
                            "CUDA_MPS_LOG_DIRECTORY": str(directory / "log"),
                            **{name: value for name, value in os.environ.items() if name.startswith("CARMA_")}}

    def daemon(self):
        """The listener's pid, or 0."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
            try:
                control.connect(str(self.directory / "pipe" / "control"))
            except OSError:
                return 0
            return struct.unpack("3i", control.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def say(self, prefix, text):
        lines = text.splitlines()
        if lines and lines[0].startswith("CUDA MPS Control"):
            lines = ["<usage>"] + [line for line in lines if line.startswith("Only ")]
        self.lines += [f"{prefix} {line}".rstrip() for line in lines]

    def call(self, *arguments, text="", user=0, **variables):
        self.lines += [f"as {user}"] if user else []
        if arguments:
            words = [f"{name}={value}" for name, value in variables.items()] + list(arguments)
            self.lines.append("$ " + " ".join(words))
        self.lines += ["> " + line for line in text.split("\n")] if not arguments else []
        done = subprocess.run([self.program, *arguments], input=text + "\n" if not arguments else "", capture_output=True,
                              text=True, timeout=30, env=self.environment | variables, user=user, check=False)
        self.say("|", done.stdout)
        self.say("!", done.stderr)
        self.lines.append(f"status {done.returncode}")
        self.pid = self.daemon() or self.pid

    def files(self):
        self.lines.append("files")
        for path in sorted((self.directory / "pipe").iterdir()):
            mode = path.lstat().st_mode
            self.lines.append(f"  {path.name} {KINDS[stat.S_IFMT(mode)]} {stat.S_IMODE(mode):04o}")
        self.lines.append("  log/: " + " ".join(sorted(path.name for path in (self.directory / "log").iterdir())))

    def lives(self):
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
        return False

    def end(self, number=0):
        """Waits until the daemon has gone, after `quit` or by a signal."""
        if number and self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
        for _ in range(500):
            if not self.lives():
                self.pid = 0
                return
            time.sleep(0.01)
        raise SystemExit(f"{self.program}: its daemon does not end")

    def dialogue(self):
        self.call(text="get_server_list")
        for arguments in (["-d", "-multiuser-server"], ["-multiuser-server", "-d"]):
            self.call(*arguments)
            if self.daemon():
                self.call(text="quit")
                self.end()
        self.call("-d", "-p", "3")
        self.call("-d")
        self.files()
        self.call("-d")
        for text in INPUTS:
            self.call(text=text)
        for text in OTHERS:
            self.call(text=text, user=OTHER)
        self.call("server", "list")
        self.call("nonsense")
        self.lines.append("kill")
        self.end(signal.SIGKILL)
        self.files()
        self.call(text="get_server_list")
        self.call("-d", CUDA_MPS_PROTOCOL_VERSION="3")  # none of these takes notice of it
        self.call(text="get_default_active_thread_percentage")
        self.call(text="quit")
        self.end()
        self.files()
        return self.lines


def main(driver, program, golden=None):
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as directory:
        recorder = Recorder(program, pathlib.Path(directory))
        try:
            lines = [f"driver {driver}", *recorder.dialogue()]
        finally:
            with contextlib.suppress(SystemExit):
                recorder.end(signal.SIGKILL)
    if golden is None:
        print("\n".join(lines))
        return 0
    wanted = pathlib.Path(golden).read_text().splitlines()
    difference = list(difflib.unified_diff(wanted, lines, golden, program, lineterm="", n=4))
    print("\n".join(difference))
    return 1 if difference else 0


sys.exit(main(*sys.argv[1:]))
