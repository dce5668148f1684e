"""For tests of carma-sandbox: runs commands in it as a user, and looks for their changes outside.

Where the test runs as root, each test is done by root for another user, and by that user alone. A user's test is done
by himself."""

import copy
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
NOBODY = 65534
MODES = []


class Mode:
    """Who runs carma-sandbox: root for a user, or the user."""

    program = None  # main's copy of it

    def __init__(self, name, uid, drop):
        self.name, self.uid, self.drop = name, uid, drop
        self.enters = drop or os.geteuid() != 0  # whether a process of the user outside gets at those inside

    def as_user(self, *command, **options):
        """A process of the user outside the sandbox."""
        extra = {"user": self.uid, "group": self.uid, "extra_groups": []} if os.geteuid() == 0 and self.uid else {}
        return subprocess.Popen(command, **extra, **options)

    def as_who_enters(self, *command, **options):
        return self.as_user(*command, **options) if self.enters else subprocess.Popen(command, **options)

    def sandbox(self, *arguments, **options):
        extra = {"user": self.uid, "group": self.uid, "extra_groups": []} if self.drop else {}
        return subprocess.Popen([self.program, *arguments], **extra, **options)


class Case(unittest.TestCase):
    """Each test runs in every mode. self.top is a directory of the user, with a home and a working directory in it."""

    def run(self, result=None):
        for mode in MODES:
            one = copy.copy(self)
            one.mode = mode
            super(Case, one).run(result)
        return result

    def __str__(self):
        return f"{self.id()} [{self.mode.name}]" if hasattr(self, "mode") else self.id()

    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="carma-sandbox-"))
        self.home, self.work = self.top / "home", self.top / "work"
        for directory in (self.top, self.home, self.work):
            directory.mkdir(exist_ok=True)
            if os.geteuid() == 0:
                os.chown(directory, self.mode.uid, self.mode.uid)
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)

    def request(self, *command, environment=(), **changes):
        return {"uid": self.mode.uid, "gid": self.mode.uid if os.geteuid() == 0 else os.getegid(), "user": None,
                "directory": str(self.work),
                "environment": [f"HOME={self.home}", "PATH=/usr/local/bin:/usr/bin:/bin", *environment],
                "command": list(command), "time_s": 60, "memory_bytes": 1 << 30, "cores": 1,
                "result_bytes_max": 1 << 20} | changes

    def start(self, request):
        process = self.mode.sandbox(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        process.stdin = None
        return process

    def done(self, *command, **changes):
        """Runs it to its end: status, result, message."""
        process = self.start(self.request(*command, **changes))
        result, message = process.communicate()
        return process.returncode, result, message

    def inside(self, script, **changes):
        """The result of a Python script that must end well; it has say(TEXT)."""
        status, result, message = self.done("/usr/bin/python3", "-c", PREAMBLE + script, **changes)
        self.assertEqual((status, message), (0, ""), script)
        return result

    def fails(self, script, **changes):
        """The message of a script that must not."""
        status, result, message = self.done("/usr/bin/python3", "-c", PREAMBLE + script, **changes)
        self.assertEqual((status, result), (1, ""), message)
        self.assertEqual(message.count("\n"), 1, message)
        return message.strip()


PREAMBLE = """
import os, sys, socket, signal, subprocess, time
def say(*words):
    os.write(3, (" ".join(map(str, words)) + "\\n").encode())
def attempt(what):
    try:
        what()
        return "done"
    except Exception as error:
        return type(error).__name__
"""


def main(program):
    libc = ctypes.CDLL(None)
    if libc.unshare(0x20000) == 0:  # CLONE_NEWNS: what is mounted here goes with the test, also where that is killed
        libc.mount(b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
    private = tempfile.mkdtemp(prefix="carma-sandbox-program-")
    os.chmod(private, 0o755)
    Mode.program = shutil.copy(program, private)  # the tree may lie where the user cannot go
    try:
        wanted = [Mode("root for a user", NOBODY, False), Mode("the user", NOBODY, True)] if os.geteuid() == 0 \
            else [Mode("the user", os.geteuid(), False)]
        for mode in wanted:
            process = mode.sandbox("--check", stderr=subprocess.PIPE, text=True)
            message = process.communicate()[1].strip()
            if process.returncode == 2:
                print(f"not tested, {mode.name}: {message}")
            else:
                MODES.append(mode)
        if not MODES:
            sys.exit(SKIPPED)
        unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[2:]], failfast="FAIL_FAST" in os.environ)
    finally:
        shutil.rmtree(private)
