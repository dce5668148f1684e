"""The closing counts of test logs: failed and flaky tests, and the verdict of tests/flaky."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import count

PASSED, FAILED, SKIPPED = "OK", "FAIL", "SKIP"


class Counts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        (self.tree / "meson-logs").mkdir()
        self.list("# none\n")

    def log(self, name, **tests):
        lines = [json.dumps({"name": f"carma:cli / {test}", "result": result}) for test, result in tests.items()]
        (self.tree / "meson-logs" / f"{name}.json").write_text("\n".join(lines), encoding="utf-8")

    def list(self, text):
        count.LIST = self.tree / "flaky"
        count.LIST.write_text(text, encoding="utf-8")

    def expect(self, counts, *said):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            self.assertEqual(count.of_tests(self.tree, "log"), dict(zip(count.COUNTED, counts)), output.getvalue())
        lines = output.getvalue().splitlines()
        self.assertEqual(len(lines), len(said), lines)
        for line, text in zip(lines, said):
            self.assertIn(text, line)

    def test_counts(self):
        self.log("log", a=PASSED, b=SKIPPED, c="EXPECTEDFAIL")
        self.expect((2, 0, 1, 0), "skipped: b")

    def test_failed(self):
        self.log("log", a=PASSED, b=FAILED, c="TIMEOUT", d="ERROR")
        self.assertEqual(count.failed(self.tree, "log"), ["b", "c", "d"])
        self.expect((1, 3, 0, 0), "failed: b", "failed: c", "failed: d")

    def test_failed_again(self):
        self.log("log", a=PASSED, b=FAILED, c=FAILED)
        self.log("log-again", b=FAILED, c=SKIPPED)
        self.expect((1, 2, 0, 0), "failed: b", "failed: c")

    def test_flaky(self):
        self.log("log", a=PASSED, b=FAILED)
        self.log("log-again", b=PASSED)
        self.list("a: its port is taken at times\n")
        self.expect((1, 0, 0, 1), "flaky: b")
        self.list("b: its port is taken at times\n")
        self.expect((1, 1, 0, 0), "failed: b, which is listed as flaky (its port is taken at times)")

    def test_no_tests(self):
        self.log("other", a=PASSED)
        self.expect((0, 1, 0, 0), "no test has run")

    def test_too_many_to_be_run_again(self):
        self.log("log", **{f"t{number}": FAILED for number in range(count.MOST_AGAIN + 1)})
        self.assertEqual(count.failed(self.tree, "log"), [])

    def test_list_without_cause(self):
        self.log("log", a=PASSED)
        self.list("a\n")
        with self.assertRaisesRegex(SystemExit, "'a' has no cause"):
            count.of_tests(self.tree, "log")


class List(unittest.TestCase):
    def test_can_be_read(self):
        count.causes(pathlib.Path(__file__).with_name("flaky").read_text(encoding="utf-8"))


unittest.main()
