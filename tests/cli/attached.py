"""Usage: attached.py CARMA: carma run, shell and attach on a terminal, beside a carmad that works."""

import json
import os
import subprocess
import sys

from terminal import Terminal

CARMA = sys.argv[1]
DETACH, INTERRUPT = "\x1d", "\x03"
os.environ["SHELL"] = "/bin/sh"


def job(number="@"):
    return json.loads(subprocess.run([CARMA, "show", "--json", str(number)], capture_output=True, check=True).stdout)


def output():
    with open(job()["output"], "rb") as file:
        return file.read()


def expect(value, wanted, what):
    assert value == wanted, f"{what} is {value!r}, not {wanted!r}"


# The job has a terminal of this one's size, which follows; what is still in it at the end is in the output.
terminal = Terminal([CARMA, "run", "--", "sh", "-c", "stty size; until [ \"$(stty size)\" = '30 100' ]; do sleep 0.1; done; read line; tty; "
                     "seq 5000; exit 7"], columns=90)
terminal.sees("24 90")
terminal.resize(100, 30)
terminal.press("\r")
expect(terminal.ended(), 7, "the exit status")
assert "has failed: exit status 7" in terminal.text(), terminal.text()
assert b"\r\n/dev/pts/" in output() and output().endswith(b"\r\n4999\r\n5000\r\n"), output()[:200] + output()[-50:]
terminal.close()

# Ctrl-C is a key: the terminal of the job makes a signal of it. Twice, it cancels.
terminal = Terminal([CARMA, "run", "--", "sh", "-c", "trap 'echo not yet' INT; echo ready; while :; do sleep 0.1; done"])
terminal.sees("ready")
terminal.press(INTERRUPT)
terminal.sees("not yet", "once more within 2 s cancels the job")
terminal.press(INTERRUPT)
terminal.sees("not yet")
terminal.press(INTERRUPT)
expect(terminal.ended(), 143, "the exit status")
expect(job()["state"], "CANCELLED", "the state")
terminal.close()

# One that does not use its GPU is warned in its terminal.
terminal = Terminal([CARMA, "shell", "--idle-limit", "2"])
terminal.sees("does not use its GPUs: it is ended in 1:00 unless", "it is ended in 0:12 unless")
terminal.press("exit 3\r")
terminal.close()

# Of a shell it is an ordinary key. Ctrl-] leaves it; it can be come back to, by the last one who does.
terminal = Terminal([CARMA, "shell"], PS1="$ ")
terminal.sees("(shell)")
terminal.press("echo on $((1000 + 337))\r")
terminal.sees("on 1337")
expect(job()["idle_limit_ns"], 7200 * 10**9, "its idle limit")
for _ in range(3):
    terminal.press(INTERRUPT)
    terminal.read(0.3)
terminal.press("echo on $((1000 + 338))\r")
terminal.sees("on 1338")
terminal.press(DETACH)
expect(terminal.ended(), 0, "the exit status")
assert "carma attach" in terminal.text(), terminal.text()
terminal.close()
second, third = Terminal([CARMA, "attach", "@"]), None
second.sees("Ctrl-] leaves it", "on 1338")
for _ in range(2):
    second.press(INTERRUPT)
    second.read(0.3)
second.press("echo on $((1000 + 339))\r")
second.sees("on 1339")
third = Terminal([CARMA, "attach", "@"])
third.sees("on 1339")
expect(second.ended(), 125, "the exit status")
assert "has taken over" in second.text(), second.text()
third.press("exit 9\r")
expect(third.ended(), 9, "the exit status")
expect(job()["state"], "FAILED", "the state")
second.close()
third.close()
