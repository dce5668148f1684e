"""Usage: attached.py CARMA: carma run, shell and attach on a terminal, beside a carmad that works."""

import json
import os
import subprocess
import sys

from terminal import Terminal

CARMA = sys.argv[1]
INTERRUPT = "\x03"
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

# Ctrl-C is an ordinary key of a program that reads each one, and of a shell. (More: docs/user.md, a day.)
for mode in ["-icanon -isig", "-icanon", "-isig"]:
    terminal = Terminal([CARMA, "run", "--", "sh", "-c",
                         f"trap 'echo got it' INT; stty {mode}; echo ready; until read line; do :; done; exit 7"])
    terminal.sees("ready")
    for key in [INTERRUPT, INTERRUPT, "\n"]:
        terminal.press(key)
        terminal.read(0.3)
    expect(terminal.ended(), 7, f"the exit status with {mode}")
    terminal.close()

# One that does not use its GPU is warned in its terminal.
terminal = Terminal([CARMA, "shell", "--idle-limit", "2"])
terminal.sees("does not use its GPUs: it is ended in 1:00 unless", "it is ended in 0:12 unless")
terminal.press("exit 3\r")
terminal.close()

# Whoever attaches has the job: the last one.
first = Terminal([CARMA, "shell"], PS1="$ ")
first.sees("(shell)")
first.press("echo on $((1000 + 337))\r")
first.sees("on 1337")
expect(job()["idle_limit_ns"], 7200 * 10**9, "its idle limit")
for _ in range(3):
    first.press(INTERRUPT)
    first.read(0.3)
first.press("echo on $((1000 + 339))\r")
first.sees("on 1339")
second = Terminal([CARMA, "attach", "@"])
second.sees("Ctrl-] leaves it", "on 1339")
expect(first.ended(), 125, "the exit status")
assert "has taken over" in first.text(), first.text()
second.press("exit 9\r")
expect(second.ended(), 9, "the exit status")
expect(job()["state"], "FAILED", "the state")
first.close()
second.close()
