"""carma.progress(): its lines, how often it writes them, and that it never is in the way."""

import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import carma  # noqa: E402

progress = sys.modules["carma.progress"]


class Progress(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "progress")
        os.mkfifo(self.path)
        progress._told.clear()
        clock = mock.patch.object(progress.time, "monotonic", lambda: self.now_s)
        clock.start()
        self.addCleanup(clock.stop)
        self.now_s = 100.0
        environment = mock.patch.dict(os.environ, {"CARMA_PROGRESS_FILE": self.path})
        environment.start()
        self.addCleanup(environment.stop)

    def listen(self):
        pipe = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, pipe)
        return pipe

    def test_lines(self):
        pipe = self.listen()
        carma.progress(1)
        self.now_s += 1
        carma.progress(2, 10)
        carma.progress(3, 10)  # too soon
        carma.progress(10, 10)  # the last one is told
        self.assertEqual(os.read(pipe, 1000), b"1\n2/10\n10/10\n")

    def test_nobody_listens(self):
        carma.progress(1)
        os.unlink(self.path)
        self.now_s += 1
        carma.progress(2)

    def test_full(self):
        pipe = self.listen()
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(pipe, b"x" * 4096)
        while True:
            try:
                os.write(pipe, b"x")
            except BlockingIOError:
                break
        carma.progress(1)

    def test_outside_carma(self):
        pipe = self.listen()
        del os.environ["CARMA_PROGRESS_FILE"]
        carma.progress(1)
        with self.assertRaises(BlockingIOError):
            os.read(pipe, 1000)

    def test_numbers_only(self):
        with self.assertRaises(ValueError):
            carma.progress("many")


if __name__ == "__main__":
    unittest.main()
