"""Usage: test_sandbox.py CARMA-SANDBOX [TEST...]: commands in the sandbox that mean harm, and some that do not."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import box
from box import Case

TRUE = "/bin/true"


def listener(path):
    """A listening socket at the path, or an abstract one, and a list that has an item for each connection."""
    heard = []
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    if not str(path).startswith("\0"):
        os.chmod(path, 0o777)
    server.listen()

    def accept():
        while True:
            try:
                heard.append(server.accept())
            except OSError:
                return
    threading.Thread(target=accept, daemon=True).start()
    return server, heard


class Result(Case):
    def test_comes_by_descriptor_3_alone(self):
        status, result, message = self.done("/bin/sh", "-c", "echo lost; echo lost >&2; printf kept >&3")
        self.assertEqual((status, result, message), (0, "kept", ""))

    def test_of_a_failure_is_nothing(self):
        self.assertEqual(self.done("/bin/sh", "-c", "echo x >&3; exit 3"), (1, "", "ended with exit status 3\n"))

    def test_a_signal_is_named(self):
        self.assertEqual(self.done("/bin/sh", "-c", "kill -9 $$"), (1, "", "killed by signal 9 (Killed)\n"))

    def test_a_program_that_is_not_there(self):
        status, _, message = self.done("no-such-program")
        self.assertEqual(status, 1)
        self.assertIn("cannot run 'no-such-program'", message)

    def test_without_end_is_cut_off(self):
        self.assertIn("wrote more than 1 MiB of result", self.fails("while True: os.write(3, b'x' * 65536)"))

    def test_requests_that_are_none(self):
        for text in ("", "[]", "{", '{"uid": 1}', '{"uid": 1, "gid": 1, "user": "x", "directory": "x"}'):
            process = self.mode.sandbox(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            result, message = process.communicate(text)
            self.assertEqual((process.returncode, result, message.count("\n")), (2, "", 1), text)


if __name__ == "__main__":
    box.main(sys.argv[1])
