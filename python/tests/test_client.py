"""The parts of the Python client that need no daemon: its input, where it looks, its treatment of bad answers."""

import ast
import datetime
import importlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import carma  # noqa: E402
from carma import daemon, output, place, submission, text, units  # noqa: E402

HOUR = 3600 * 10**9


class Words(unittest.TestCase):
    """As in tests/unit of src/base/units.c."""

    def test_sizes(self):
        for word, size in (("12G", 12 << 30), ("1.5GiB", 3 << 29), ("512M", 512 << 20), ("4096B", 4096), ("1kb", 1024),
                           ("2 T", 2 << 40)):  # fmt: skip
            self.assertEqual(units.size_bytes("gpu_memory", word), size)
        for word in ("", "G", "-1", "1e3", "0", 0, "nan", "12X", "1iB", "0x1", "2000T", True, 1.5, "1.2.3"):
            with self.assertRaises(carma.Invalid, msg=word):
                units.size_bytes("gpu_memory", word)
        for word in ("12", 12, 12.5, "0.5", 12 << 30):
            with self.assertRaisesRegex(carma.Invalid, "gpu_memory: .* has no unit: say '.*GiB' or '.*MiB'"):
                units.size_bytes("gpu_memory", word)

    def test_times(self):
        for word, ns in (("90", 1.5 * HOUR), (90, 1.5 * HOUR), ("12:00:00", 12 * HOUR), ("2-12", 60 * HOUR), ("90s", HOUR / 40),
                         ("1:30", HOUR / 40), ("1-0:30", 24.5 * HOUR), ("1.5h", 1.5 * HOUR), ("250ms", 25 * 10**7),
                         (datetime.timedelta(hours=2), 2 * HOUR)):  # fmt: skip
            self.assertEqual(units.time_ns("time", word), ns, word)
        for word in ("", "0", "1:2:3:4", "-5", "a", "1-2-3", "4000d", None, True, "1:", datetime.timedelta(0)):
            with self.assertRaises(carma.Invalid, msg=word):
                units.time_ns("time", word)

    def test_environment_of_a_job_that_submits(self):
        with mock.patch.dict(os.environ, {"CARMA_SCRIPT": "/outer.sh", "KEPT": "1"}):
            sent = submission.specification(["a"], {})["environment"]
            self.assertIn("KEPT=1", sent)
            self.assertNotIn("CARMA_SCRIPT=/outer.sh", sent)
            given = submission.specification(["a"], {"environment": {"CARMA_SCRIPT": "x"}})["environment"]
            self.assertEqual(given, ["CARMA_SCRIPT=x"])

    def test_signals(self):
        self.assertEqual(units.signal_and_before("USR1@120"), (10, 120 * 10**9))
        self.assertEqual(units.signal_and_before("sigterm@2m"), (15, 120 * 10**9))
        self.assertEqual(units.signal_and_before(10), (10, 60 * 10**9))
        for word in ("KILL", "9", "STOP@5", "NONE", "USR1@", "65", "0"):
            with self.assertRaises(carma.Invalid, msg=word):
                units.signal_and_before(word)

    def test_shown(self):
        self.assertEqual([units.bytes_text(n) for n in (None, 0, 512 << 20, 13314398618)], ["-", "0 B", "512 MiB", "12.4 GiB"])
        self.assertEqual(units.duration_text(93784 * 10**9), "1-02:03:04")
        self.assertEqual(text.printable("a\x1b[2J\u202eb\n\ud800"), "a\\x1b[2J\\xe2\\x80\\xaeb\\x0a\\xed\\xa0\\x80")
        self.assertEqual(text.escape("<b>'&"), "&lt;b&gt;&#x27;&amp;")


class Specification(unittest.TestCase):
    def test_golden(self):
        """The golden specification has a member of every name that is sent."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "resnet.txt")
            file.write_text("Layer\n")
            pathlib.Path(folder, "x.py").write_text("foobar")
            made = submission.specification(["a/train", "x.py", "none.py"], dict(
                gpus=2, gpu_memory="12G", max_slowdown=1.5, exclusive=True, mps_threads=50, mps_memory_limit="12G",
                cpus=8, memory="64G", share="time-slice", time="90", signal="USR1@120", requeue=True, hold=True, chdir=folder, output="o", error="/e",
                conda="tf", summary=file, capture=file, batch_size=128, optimizer="momentum", precision="amp",
                environment={"A": "b"}))  # fmt: skip
            golden = eval((HERE.parents[1] / "tests/golden/spec.json").read_text(), {"true": True, "null": None})
            self.assertLessEqual(set(made), set(golden))
            for member in ("gpus", "gpu_memory_bytes", "max_slowdown_permille", "mps_threads_percent", "mps_memory_limit_bytes",
                           "cpus", "host_memory_bytes", "share", "exclusive", "held", "time_limit_ns", "signal", "signal_before_ns", "requeue",
                           "summary_name", "batch_size", "optimizer", "precision", "conda_environment", "code"):  # fmt: skip
                self.assertEqual(made[member], golden[member], member)
            self.assertEqual((made["name"], made["environment"], made["error"]), ("train", ["A=b"], "/e"))
            self.assertEqual(made["output"], os.path.realpath(folder) + "/o")

    def test_refused_before_it_is_sent(self):
        for command, options, why in (
            ([], {}, "command is empty"), ("", {}, "command is empty"), (["a"], {"chdir": "/no/such"}, "No such file"),
            (["a"], {"chdir": __file__}, "is none"), (["a"], {"summary": "/no/such"}, "No such file"),
            (["a"], {"summary": os.devnull}, "is empty"), (["a"], {"capture": sys.executable}, "is not text|is too large"),
            (["a"], {"environment": {"X": "\udcff"}}, "entry 'X' is not UTF-8"), (["\udcff"], {"job_name": "n"}, "not UTF-8"),
        ):  # fmt: skip
            with self.assertRaisesRegex(carma.Invalid, why):
                submission.specification(command, options)


class Place(unittest.TestCase):
    def test_as_carma_finds_it(self):
        with mock.patch.dict(os.environ, {"XDG_RUNTIME_DIR": "/run/mine", "CARMA_SOCKET": ""}), \
                mock.patch("os.geteuid", lambda: 1234):  # fmt: skip
            with mock.patch("os.path.exists", lambda path: path == place.SYSTEM_SOCKET):
                self.assertEqual(place.find(), "/run/carma/carma.sock")
            with mock.patch("os.path.exists", lambda path: False):
                self.assertEqual(place.find(), "/run/mine/carma/carma.sock")
                with mock.patch.dict(os.environ, {"XDG_RUNTIME_DIR": "relative", "XDG_STATE_HOME": "/s"}):
                    self.assertEqual(place.find(), "/s/carma/carma.sock")
                with mock.patch.dict(os.environ, {"CARMA_SOCKET": "relative"}):
                    self.assertEqual(place.find(), "relative")


class Wire(unittest.TestCase):
    def answer(self, *answers):
        """A server that gives each connection one of these texts, and closes it."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = folder.name + "/socket"
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(path)
        listening.listen()
        self.asked = []

        def serve():
            for answer in answers:
                connection, _ = listening.accept()
                with connection:
                    self.asked.append(connection.recv(65536))
                    connection.sendall(answer)
            listening.close()

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        self.addCleanup(server.join, 60)
        patched = mock.patch.dict(os.environ, {"CARMA_SOCKET": path})
        patched.start()
        self.addCleanup(patched.stop)

    @staticmethod
    def reply(status, body):
        return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)

    def test_request(self):
        self.answer(self.reply(200, b'{"jobs": [], "left_out": 2}'))
        self.assertEqual(carma.jobs(state="a b&c", limit=3).left_out, 2)
        head, *lines = self.asked[0].decode().split("\r\n")
        self.assertEqual(head, "GET /v1/jobs?state=a%20b%26c&limit=3 HTTP/1.1")
        self.assertIn("Host: carma", lines)

    def test_refusals_are_the_daemons_own_words(self):
        for status, kind in ((400, carma.Invalid), (403, carma.NotAllowed), (404, carma.NotFound), (409, carma.Conflict),
                             (422, carma.Impossible), (503, carma.Unavailable), (418, carma.Refused)):  # fmt: skip
            self.answer(self.reply(status, b'{"error": "said so"}'))
            with self.assertRaisesRegex(kind, "^said so$") as caught:
                daemon.call("POST", "/v1/jobs/1/cancel")
            self.assertEqual(caught.exception.status, status)
        self.answer(self.reply(500, b"oops"))
        with self.assertRaisesRegex(carma.Refused, "HTTP status 500 and no explanation"):
            daemon.call("GET", "/v1/gpus")

    def test_many_jobs_are_several_requests(self):
        large = "x" * (daemon.REQUEST_BYTES // 2 - 100)
        for specifications, parts in ((["a"] * 2001, [1000, 1000, 1]), ([large] * 3, [2, 1]), ([large * 3], [1]), ([], [0])):
            self.assertEqual([len(part) for part in daemon.requests(specifications)], parts)
        jobs = ",".join(f'{{"id": {i + 1}, "estimate": null}}' for i in range(1000))
        self.answer(self.reply(201, b'{"jobs": [%s]}' % jobs.encode()), self.reply(409, b'{"error": "no more"}'))
        with self.assertRaisesRegex(carma.Conflict, "^the first 1000 of 1001 jobs were submitted, the others were not: no more$"):
            carma.submit_all([("true", {"environment": {}})] * 1001)

    def test_no_answer_is_told_from_no_daemon(self):
        self.answer(b"")
        with self.assertRaisesRegex(carma.NoAnswer, "whether the request was carried out is not known"):
            daemon.call("POST", "/v1/jobs", {"jobs": []})
        for answer, why in ((b"", "without an answer$"), (b"SSH-2.0\r\n", "not HTTP"), (self.reply(200, b"{"), "not JSON"),
                            (b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n{}", "without an answer")):  # fmt: skip
            self.answer(answer)
            with self.assertRaisesRegex(carma.NoAnswer, why):
                daemon.call("GET", "/v1/gpus")
        for where in ("tcp://localhost:80", "tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://127.0.0.1:x"):
            with mock.patch.dict(os.environ, {"CARMA_SOCKET": where}), self.assertRaisesRegex(carma.NoDaemon, "write an IP"):
                daemon.call("GET", "/v1/gpus")

    def test_a_daemon_that_comes_back_is_waited_for_only_by_questions(self):
        self.answer(b"", self.reply(503, b'{"error": "later"}'), self.reply(200, b'{"state": "HELD"}'))
        with mock.patch.object(daemon, "RETRY_S", 0), self.assertLogs("carma") as said:
            self.assertEqual(daemon.get_patiently("/v1/jobs/1"), {"state": "HELD"})
        self.assertEqual(len(said.output), 1)

    def test_a_submission_is_repeated_under_its_id(self):
        sent = []
        call = daemon.call

        def note(method, path, body=None):
            sent.append((method, path, body))
            return call(method, path, body)

        stopping = self.reply(503, b'{"error": "going", "stopping": true}')
        self.answer(b"", stopping, self.reply(201, b'{"jobs": [{"id": 7, "estimate": null}]}'))
        with mock.patch.object(daemon, "RETRY_S", 0), mock.patch.object(daemon, "call", note), self.assertLogs("carma"):
            self.assertEqual(carma.submit(["true"]).id, 7)
        self.assertEqual(len(sent), 3)
        self.assertTrue(sent[0] == sent[1] == sent[2] and len(sent[0][2]["request_id"]) == 32, sent)
        self.answer(self.reply(503, b'{"error": "full"}'))
        with self.assertRaisesRegex(carma.Unavailable, "full"):
            carma.submit(["true"])


class Output(unittest.TestCase):
    def test_lines_of_any_cut(self):
        lines = output._Lines()
        found = [line for byte in "ä\nlast".encode() for line in lines.take(bytes([byte]))]
        self.assertEqual([*found, *lines.end()], ["ä", "last"])
        piece = b"x" * (output.LONGEST_LINE + 1)
        self.assertEqual([len(line) for line in output._Lines().take(piece)], [len(piece)])

    def test_a_file_that_is_made_anew_is_read_from_its_start(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/log"
            pathlib.Path(path).write_text("first run, long\n")
            ended = []
            lines = output.follow(1, path, lambda: bool(ended), lambda: None)
            self.assertEqual(next(lines), "first run, long")
            pathlib.Path(path).write_text("again\n")
            ended.append(True)
            self.assertEqual(list(lines), ["again"])

    def test_only_a_regular_file_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(folder + "/pipe")
            with self.assertRaisesRegex(carma.CarmaError, "is not a regular file"):
                output.open_file(1, folder + "/pipe")


class Package(unittest.TestCase):
    def test_needs_no_more_than_it_says(self):
        for path in (HERE.parent / "carma").glob("*.py"):
            ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
        done = subprocess.run([sys.executable, "-B", "-S", "-c", "import carma, sys; sys.exit('torch' in sys.modules)"],
                              cwd=HERE.parent, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 0)

    def test_capture_is_still_a_function_and_a_module(self):
        self.assertTrue(callable(carma.capture))
        importlib.import_module("carma.capture")
        self.assertTrue(callable(carma.capture))


if __name__ == "__main__":
    unittest.main()
