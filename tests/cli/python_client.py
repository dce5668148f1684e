"""Usage: python_client.py SOURCE: carma for Python against the daemon of a virtual node (test_python.sh)."""

import asyncio
import importlib
import json
import logging
import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import time
import unittest

import carma

SOURCE = pathlib.Path(sys.argv.pop(1))
PATIENCE_S = float(os.environ.get("PATIENCE_S", "90"))
HOSTILE = '<img src=x onerror="alert(1)">\u202e&amp;'


def until(true):
    ends = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > ends:
            raise AssertionError("waited in vain")
        time.sleep(0.05)


class Jobs(unittest.TestCase):
    def test_runs_and_ends_as_carma_says(self):
        job = carma.submit(["sh", "-c", 'echo "$MARK $0 $CARMA_JOB_ID"; echo bad >&2; exit 3', "it's"],
                           environment={"MARK": "given", "PATH": os.environ["PATH"]}, output="own-%j.out", error="own-%j.err")
        self.assertEqual(job.wait(), 3)
        self.assertEqual((job.state, job.exit_status, job.name), ("FAILED", 3, "sh"))
        self.assertEqual(job.logs(), f"given it's {job.id}\n")
        self.assertEqual(job.logs(error=True), "bad\n")
        self.assertEqual(pathlib.Path(f"own-{job.id}.out").read_text(), job.logs())

    def test_a_text_is_for_the_shell(self):
        job = carma.submit("echo one && false || echo two")
        self.assertEqual(job.wait(), 0)
        self.assertEqual(job.logs(), "one\ntwo\n")
        self.assertEqual(job.info["directory"], os.path.realpath("."))

    def test_options_arrive(self):
        job = carma.submit(["true"], hold=True, gpus=2, gpu_memory="1.5G", max_slowdown=1.5, exclusive=True, time="1:30:00",
                           tag=["a", "b"], signal="USR1@120", requeue=True, job_name="named", chdir="/")
        info = job.info
        self.assertEqual((info["state"], info["gpus"], info["reserved_bytes"], info["reservation_source"]),
                         ("HELD", 2, 3 << 29, "declared"))
        self.assertEqual((info["exclusive"], info["requeue"], info["name"], info["tags"], info["directory"]),
                         (True, True, "named", "a,b", "/"))
        self.assertEqual((info["time_limit_ns"], info["signal"], info["signal_before_ns"]), (5400 * 10**9, 10, 120 * 10**9))
        self.assertEqual(info["output"], f"/carma-{job.id}.out")
        job.cancel()
        with self.assertRaises(TypeError):
            carma.submit(["true"], gpu=1)

    def test_lines_come_while_it_runs(self):
        job = carma.submit("echo first; until [ -e go ]; do sleep 0.05; done; printf 'second\\nlast'")
        lines = job.logs(follow=True)
        self.assertEqual(next(lines), "first")
        self.assertIn(job.state, ("PLACED", "RUNNING"))  # its start may not have been told yet
        pathlib.Path("go").touch()
        self.assertEqual(list(lines), ["second", "last"])

    def test_hold_release_cancel(self):
        job = carma.submit(["true"], hold=True)
        with self.assertRaisesRegex(carma.NotStarted, f"job {job.id} has not been started"):
            job.logs()
        self.assertIn("held", str(job.explain()))
        self.assertEqual(job.explain().code, "held")
        with self.assertRaisesRegex(TimeoutError, "is still HELD"):
            job.wait(timeout=0.2)
        job.release()
        self.assertEqual(job.wait(), 0)
        with self.assertRaisesRegex(carma.Conflict, "already ended") as caught:
            job.cancel()
        self.assertEqual(caught.exception.status, 409)
        with self.assertRaises(carma.NotFound):
            _ = carma.Job(999999).state
        with self.assertRaises(carma.Impossible):
            carma.submit(["true"], gpus=64)
        with self.assertRaises(carma.Invalid):
            carma.submit(["true"], share="none")

    def test_all_or_none(self):
        count = len(carma.jobs(state="all"))
        with self.assertRaises(carma.Refused):
            carma.submit_all([(["true"], {}), (["true"], {"optimizer": "none"})])
        self.assertEqual(len(carma.jobs(state="all")), count)
        first, second = carma.submit_all([(["true"], {"job_name": "a"}), (["true"], {"job_name": "b"})])
        self.assertEqual((second.id, first.name, second.name), (first.id + 1, "a", "b"))
        self.assertEqual((first.wait(), second.wait()), (0, 0))

    def test_an_array_is_waited_for_as_a_whole(self):
        array = carma.submit("exit $CARMA_ARRAY_TASK_ID", array="0-2")
        self.assertEqual((array.wait(), array.exit_status, array.ended, len(array.jobs)), (1, 1, True, 3))
        held = carma.submit("true", array="5,7", hold=True)
        with self.assertRaisesRegex(TimeoutError, "is still HELD"):
            held.wait(timeout=0.1)
        self.assertEqual((held.cancel(), [job.state for job in held.jobs]), ("CANCELLED", ["CANCELLED"] * 2))
        with self.assertRaisesRegex(carma.Conflict, "have ended"):
            held.cancel()

    def test_a_block_waits_or_cancels(self):
        with carma.submit("exit 0") as job:
            pass
        self.assertEqual(job.state, "COMPLETED")
        with self.assertRaises(ZeroDivisionError), carma.submit(["sleep", "1000"]) as job:
            _ = 1 / 0
        self.assertIn(job.state, ("STOPPING", "CANCELLED"))
        job.wait()
        job = carma.submit(["sleep", "1000"])
        while job.state != "RUNNING":
            time.sleep(0.05)
        with self.assertRaisesRegex(carma.Conflict, "it is not suspended"):
            job.resume()
        self.assertEqual((job.suspend(), job.resume(), job.signal(10), job.requeue()), ("SUSPENDED", "RUNNING", "RUNNING", "REQUEUING"))
        with self.assertRaisesRegex(carma.CarmaError, "use 'carma cancel'"):
            job.signal("KILL")
        job.cancel()
        job.wait()
        self.assertEqual(job.state, "CANCELLED")

    def test_estimate(self):
        capture = SOURCE / "tests/golden/model.capture"
        job = carma.submit(["true"], hold=True, capture=capture, batch_size=4)
        self.assertGreater(job.estimate["bytes"], 0)
        self.assertEqual(job.estimate["from"], "model.capture")
        job.cancel()

    def test_names_of_others_do_no_harm(self):
        job = carma.submit(["true"], hold=True, job_name=HOSTILE)
        for shown in (job._repr_html_(), carma.jobs()._repr_html_(), job.explain()._repr_html_(), carma.gpus()._repr_html_()):
            self.assertNotIn("<img", shown)
            self.assertNotIn("\u202e", shown)
        self.assertIn("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;\\xe2\\x80\\xae&amp;amp;", job._repr_html_())
        for shown in (repr(job), repr(carma.jobs()), str(job.explain())):
            self.assertNotIn("\u202e", shown)
        self.assertEqual(job.name, HOSTILE)
        job.cancel()

    def test_gpus_and_jobs(self):
        gpus = carma.gpus()
        self.assertEqual([gpu["index"] for gpu in gpus], [0, 1, 2, 3])
        self.assertIn("A100", repr(gpus))
        self.assertIn("39.6 GiB", gpus._repr_html_())
        job = carma.submit(["true"], hold=True)
        self.assertIn(job, carma.jobs())
        self.assertEqual(len(carma.jobs(state="all", limit=1)), 1)
        self.assertGreater(carma.jobs(state="all", limit=1).left_out, 0)
        job.cancel()
        self.assertNotIn(job, carma.jobs())
        self.assertEqual(carma.status()["gpus"], 4)


class Functions(unittest.TestCase):
    def script(self, name, text, *arguments):
        pathlib.Path(name).write_text(textwrap.dedent(text))
        done = subprocess.run([sys.executable, name, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_of_a_script(self):
        self.script("of_script.py", """
            import dataclasses, os, pathlib
            import carma

            @dataclasses.dataclass
            class Settings:
                lr: float

            @carma.job(gpus=1)
            def train(settings, *, steps):
                print("in", os.getpid(), flush=True)
                return Settings(settings.lr * steps), pathlib.Path(__file__).name

            if __name__ == "__main__":
                job = train.submit(Settings(0.5), steps=4)
                pathlib.Path(__file__).write_text("raise SystemExit('changed meanwhile')")
                settings, name = job.result()
                assert type(settings) is Settings and settings.lr == 2 and name == "of_script.py", (settings, name)
                assert job.logs() != f"in {os.getpid()}\\n" and job.logs().startswith("in "), job.logs()
                assert job.info["name"] == "train" and train(Settings(1), steps=2)[0].lr == 2
                assert job.folder.stat().st_mode & 0o77 == 0, oct(job.folder.stat().st_mode)
                again = carma.FunctionJob(job.id, job.folder)
                assert again.result()[0] == settings
        """)  # fmt: skip

    def test_that_does_not_end_well(self):
        self.script("ends_badly.py", """
            import carma

            @carma.job
            def fails():
                raise ValueError("no such loss")

            @carma.job
            def gives_a_lambda():
                return lambda: 0

            @carma.job
            def takes(value):
                return value

            def outer():
                @carma.job
                def inner():
                    pass
                return inner

            def expect(kind, text, call):
                try:
                    call()
                except kind as error:
                    assert text in str(error), error
                else:
                    raise AssertionError(f"no {kind.__name__}")

            if __name__ == "__main__":
                job = fails.submit()
                expect(carma.JobFailed, f"job {job.id} has failed: ValueError: no such loss (see", job.result)
                assert "ValueError: no such loss" in job.logs(), job.logs()
                expect(carma.JobFailed, "its result cannot be pickled", gives_a_lambda.submit().result)
                expect(TypeError, "unexpected keyword argument", lambda: fails.submit(lr=1))
                expect(carma.Invalid, "cannot be pickled", lambda: takes.submit(lambda: 0))
                expect(carma.Invalid, "at the top of its module", outer().submit)
        """)  # fmt: skip

    def test_where_others_may_write(self):
        self.script("shared.py", """
            import os, pathlib
            import carma

            @carma.job
            def train():
                return 1

            if __name__ == "__main__":
                for make in (lambda at: at.mkdir(), lambda at: at.symlink_to("/tmp"), lambda at: at.touch()):
                    os.mkdir("shared") if not os.path.exists("shared") else None
                    at = pathlib.Path("shared/.carma")
                    make(at)
                    if at.is_dir() and not at.is_symlink():
                        at.chmod(0o777)
                    try:
                        train.options(chdir="shared").submit()
                    except carma.Invalid as error:
                        assert "shared/.carma: " in str(error), error
                    else:
                        raise AssertionError(make)
                    at.rmdir() if at.is_dir() and not at.is_symlink() else at.unlink()
                for planted in ("carma", "queue"):  # modules that nobody asked for
                    os.mkdir(f"shared/{planted}")
                    pathlib.Path(f"shared/{planted}/__init__.py").write_text("raise SystemExit('planted')")
                assert train.options(chdir="shared").submit().result() == 1
        """)  # fmt: skip

    def test_of_a_script_that_would_submit_again(self):
        said = self.script("unguarded.py", """
            import carma

            @carma.job
            def train():
                return 1

            print(train.submit().id)
        """)  # fmt: skip
        job = carma.Job(int(said))
        self.assertEqual(job.wait(), 1)
        self.assertIn('if __name__ == "__main__":', job.logs())
        self.assertEqual([each.id for each in carma.jobs(state="all") if each.id > job.id], [])

    def test_of_a_module(self):
        pathlib.Path("modules").mkdir()
        pathlib.Path("modules/trainer.py").write_text("import carma\n@carma.job\ndef train(x):\n    return x + 1\n")
        self.script("uses_module.py", """
            import sys
            sys.path.append("modules")
            import carma, trainer

            class Number:
                pass

            if __name__ == "__main__":
                assert trainer.train.submit(1).result() == 2
                assert trainer.train.options(job_name="other").submit(2).name == "other"
                try:
                    trainer.train.submit(Number())
                except carma.Invalid as error:
                    assert "Number is of the script" in str(error), error
        """)  # fmt: skip


class Many(unittest.TestCase):
    def test_in_the_order_of_their_ends(self):
        jobs = [carma.submit("until [ -e last ]; do sleep 0.05; done"), carma.submit("true", array="0-2"), carma.submit("exit 3")]
        ended = carma.as_completed(jobs)
        self.assertEqual({next(ended).id, next(ended).id}, {jobs[1].id, jobs[2].id})
        with self.assertRaises(TimeoutError):
            next(carma.as_completed(jobs[:1], timeout=0.1))
        pathlib.Path("last").touch()
        self.assertEqual(list(ended), jobs[:1])

    def test_a_loop_goes_on_meanwhile(self):
        async def both():
            started = time.monotonic()
            return await asyncio.gather(carma.submit("exit 3"), carma.submit("true")), time.monotonic() - started

        self.assertEqual(asyncio.run(both())[0], [3, 0])

    def test_an_executor(self):
        pathlib.Path("calls.py").write_text(textwrap.dedent("""
            def double(x):
                return 2 * x

            def fail(x):
                raise ValueError(f"not {x}")
        """))
        sys.path.insert(0, os.getcwd())
        self.addCleanup(sys.path.remove, os.getcwd())
        calls = importlib.import_module("calls")
        with carma.Executor(gpu_memory="1G") as executor:
            self.assertEqual(list(executor.map(calls.double, range(3))), [0, 2, 4])
            wrong = executor.submit(calls.fail, 7)
            self.assertIn("not 7", str(wrong.exception(PATIENCE_S)))
        with self.assertRaises(RuntimeError):
            executor.submit(calls.double, 1)
        with carma.Executor(hold=True) as executor:
            waits = executor.submit(calls.double, 1)
            self.assertTrue(waits.cancel())
            until(lambda: waits.job.state == "CANCELLED")
        self.assertEqual([job.result() for job in carma.job(calls.double).map([1, 2])], [2, 4])


class Assistant(unittest.TestCase):
    """python -m carma.mcp, line by line."""

    def setUp(self):
        path = os.environ["CARMA_PREFIX"] + "/bin:" + os.environ["PATH"]
        self.server = subprocess.Popen([sys.executable, "-m", "carma.mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PATH": path})

    def tearDown(self):
        self.server.stdin.close()
        self.assertEqual((self.server.stdout.read(), self.server.wait()), (b"", 0))
        self.server.stdout.close()

    def ask(self, line):
        self.server.stdin.write(line + b"\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def call(self, name, **arguments):
        params = {"name": name, "arguments": arguments}
        result = self.ask(json.dumps({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}).encode())["result"]
        return result["content"][0]["text"], result["isError"]

    def test_the_protocol(self):
        for version, said in (("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")):
            hello = self.ask(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"%s"}}' % version.encode())
            self.assertEqual((hello["id"], hello["result"]["protocolVersion"]), (0, said))
        self.server.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n\n')  # gets no answer
        tools = {tool["name"]: tool for tool in self.ask(b'{"jsonrpc":"2.0","id":"a","method":"tools/list"}')["result"]["tools"]}
        self.assertLessEqual({"estimate", "explain", "what_if", "queue", "show", "submit", "tail"}, set(tools))
        self.assertLess({"command", "really", "gpu_memory", "time"}, set(tools["submit"]["inputSchema"]["properties"]))
        self.assertEqual([name for name in tools if not tools[name]["annotations"]["readOnlyHint"]], ["submit"])
        for line, code in ((b"{", -32700), (b"\xff", -32700), (b"[" * 100000, -32700), (b"[]", -32600), (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":1}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}', -32601),
                           (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":[]}}', -32602), (b'"' + b"x" * (9 << 20) + b'"', -32700)):  # fmt: skip
            self.assertEqual(self.ask(line)["error"]["code"], code, line[:60])
        self.assertEqual(self.ask(b'{"jsonrpc":"2.0","id":9,"method":"ping"}'), {"jsonrpc": "2.0", "id": 9, "result": {}})

    def test_only_a_real_submission_submits(self):
        before = len(carma.jobs(state="all"))
        for needs, said in (({"gpu_memory": "12G"}, "12.0 GiB on each of 1 GPU (as it says); so much is free now on GPU "),
                            ({"summary": f"{SOURCE}/data/summaries/convnext_base-86.txt", "batch_size": 8}, "estimated by replay"), ({"gpus": 0}, "no GPU")):  # fmt: skip
            text, failed = self.call("submit", command=["echo", "hello"], **needs)
            self.assertTrue(not failed and said in text and "Not submitted" in text, text)
        for name, wrong in (("submit", {}), ("submit", {"command": ["x"], "colour": "red"}), ("submit", {"command": ["x"], "gpu_memory": "12"}), ("submit", {"command": ["x"], "gpus": 60}), ("show", {"job": "7_x"}), ("show", {"job": "9_9"}),
                            ("submit", {"command": ["x"], "really": "yes"}), ("show", {"job": 10**9}), ("show", {"job": True}), ("tail", {"job": 0}),
                            ("estimate", {"summary": "/nothing"}), ("what_if", {"policies": ["nothing"]})):  # fmt: skip
            text, failed = self.call(name, **wrong)
            self.assertTrue(failed and text and "\n" not in text, (name, wrong, text))
        self.assertEqual(len(carma.jobs(state="all")), before)
        text, failed = self.call("submit", command="seq 100; printf 'a\\033b'", really=True, gpu_memory="1G", chdir=os.getcwd())
        job = carma.Job(int(text.split()[2]))
        self.assertEqual(job.wait(), 0)
        self.assertEqual(self.call("tail", job=job.id, lines=2), ("100\na\\x1bb", False))
        self.assertEqual(json.loads(self.call("show", job=job.id)[0])["state"], "COMPLETED")
        self.assertIn("has completed", self.call("explain", job=str(job.id))[0])
        self.assertIn(f"\n{job.id} ", self.call("queue", state="ended")[0])
        self.assertEqual(len(json.loads(self.call("what_if", policies=["exclusive"])[0])["policies"]), 2)


class Restart(unittest.TestCase):
    def test_waits_for_the_daemon(self):
        """The shell stops the daemon when `waiting` is there, and starts it again when it was `missed`."""
        job = carma.submit("until [ -e restarted ]; do sleep 0.05; done; echo over; exit 5")
        until(lambda: job.state == "RUNNING")

        class Said(logging.Handler):
            def emit(self, record):
                pathlib.Path("missed").write_text(record.getMessage())

        logging.getLogger("carma").addHandler(Said())
        answers = []
        waiters = [threading.Thread(target=lambda: answers.append(job.wait())),
                   threading.Thread(target=lambda: answers.append(list(carma.Job(job.id).logs(follow=True))))]
        for waiter in waiters:
            waiter.start()
        pathlib.Path("waiting").touch()
        for waiter in waiters:
            waiter.join(PATIENCE_S)
        self.assertEqual(sorted(answers, key=str), [5, ["over"]])
        self.assertIn("waiting up to 30 s for it", pathlib.Path("missed").read_text())


class Gone(unittest.TestCase):
    def test_no_daemon(self):
        with self.assertRaisesRegex(carma.NoDaemon, "no daemon listens there: start it with `carmad`"):
            carma.gpus()


if __name__ == "__main__":
    unittest.main()
