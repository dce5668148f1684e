"""Usage: test_top.py CARMA CARMA-TRAIN SOURCE DAEMON: drives carma top in the working directory, on a node of 4 GPUs."""

import http.server
import json
import os
import pathlib
import re
import signal
import socketserver
import subprocess
import sys
import threading
import time

from terminal import PATIENCE_S, Terminal

CARMA, TRAIN, SOURCE, DAEMON = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
UTF8 = {"LC_ALL": "C.UTF-8"}


def carma(*words):
    return subprocess.run([CARMA, *map(str, words)], stdout=subprocess.PIPE, check=True, text=True).stdout


def submit(name, *words, command=None):
    command = command or [TRAIN, "--memory", "9G", "--sm-activity", "0.4", "--seconds", "1000000"]
    return int(carma("submit", "--parsable", "--job-name", name, *words, "--", *command))


def job(number):
    return json.loads(carma("show", "--json", number))


def until(what, condition):
    ends = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < ends, f"never: {what}"
        time.sleep(0.1)


def top(columns=80, rows=24, **environment):
    return Terminal([CARMA, "top", "--delay", "0.3"], columns, rows, **{**UTF8, **environment})


def row_of(text, name):
    return next((i for i, line in enumerate(text.split("\n")) if name in line), -1)


# ---- Display ----

small = [submit(f"small-{i}", "--gpu-memory", "12G") for i in range(5)]
large = [submit(f"large-{i}", "--gpu-memory", f"{30 + i}G") for i in range(3)]
held = submit("kept", "--hold")
until("all small jobs run", lambda: all(job(n)["state"] == "RUNNING" and job(n)["placements"][0]["observed_bytes"] >= 9 << 30
                                        for n in small))

t = top()
t.sees("4 GPUs", "small-4", "large-2", " GiB free at ", "held: ")
t.until("GPUs in use", lambda text: re.search(r"^ +0 A100\S* +█+▒+░+ +18\.0G +2[0-4]\.\dG +39\.6G +\d+% gpm +\d+ W mps +1,5$",
                                              text, re.M))
line = t.until("job 1's line", lambda text: re.search(r"^ +1 small-0 .* 9\.0G +12\.0G +\d+% 1\.[1-9]x +\d.* k?J$", text, re.M))
assert re.search(r"5 running +3 waiting +1 held", t.text())
assert not re.search(r"NO DAEMON|NOTHING", t.text())
assert t.style_of("RUNNING").underscore and t.style_of("small-0").reverse, "the first job is not selected"
assert t.style_of("█").fg == "cyan"

# ---- Sizes ----

t.resize(40, 10)
t.until("40x10", lambda text: "QUEUE" in text and len(text.split("\n")) == 10 and "JOBS" in text and "POWER" not in text)
t.resize(30, 5)
t.sees("too small")
t.resize(200, 50)
t.until("200x50", lambda text: all(part in text for part in ("declared", "A100-SXM4-40GB", "node time",
                                                             "; 30.0 GiB needed")))
t.resize(80, 24)
t.until("80x24", lambda text: "declared" not in text and "small-4" in text and len(text.split("\n")) == 24)

# ---- Order, filter, selection ----

t.press("tab")
t.until("the queue has the keys", lambda text: t.style_of("large-0").reverse)
t.press(">")
t.sees("waiting jobs: by name")
t.press("<")
t.sees("as the daemon lists them")
t.press("/LARGE-1", "enter")
t.sees("/LARGE-1", "large-1")
t.loses("large-0", "small-0")
t.press("escape")
t.sees("large-0", "small-0")

# ---- A job's details, hold and release, cancel ----

t.press("up", "up", "up", "up", "e")
t.sees(f"JOB {large[0]}", "free at most, on GPU 1; 30.0 GiB needed", "Memory    30.0 GiB on each GPU, declared", "GPU 3 ")
t.press("q")
t.sees("QUEUE")
t.press("h")
t.sees(f"job {large[0]}: hold, it is HELD now")
until("it is held", lambda: job(large[0])["state"] == "HELD")
t.until("the line says so", lambda text: "held: " in t.line_with("large-0"))
t.press("h")
t.sees(f"job {large[0]}: release, it is QUEUED now")
t.press("c")
t.sees(f"cancel job {large[0]}? y/n")
t.press("n")
t.sees("is left as it is")
assert job(large[0])["state"] == "QUEUED"
t.press("c", "y")
t.sees(f"job {large[0]}: cancel, it is CANCELLED now")
assert job(large[0])["state"] == "CANCELLED"
t.loses("large-0")
many = submit("many", "--hold", "--array", "0-4")  # one row, and one question
t.press("/many", "enter")
t.until("it is selected", lambda text: f"{many}_[0-4] many" in text and t.style_of(f"{many}_[0-4] many").reverse)
t.press("c", "y")
t.sees("cancel: 5 jobs")
assert [job(f"{many}_{i}")["state"] for i in range(5)] == ["CANCELLED"] * 5
t.press("escape")

# ---- A log ----

writer = submit("writer", "--gpu-memory", "1G", command=["sh", "-c", r"""echo first line; printf '\033]0;owned\007\033[31mred\033[0m\n'
    until [ -e go ]; do sleep 0.1; done; echo second line; until [ -e stop ]; do sleep 0.1; done"""])
until("it writes", lambda: job(writer)["state"] == "RUNNING" and os.path.exists(f"carma-{writer}.out"))
t.press("tab", "tab", "/writer", "enter")
t.until("it is selected", lambda text: f"{writer} writer " in text and t.style_of(f"{writer} writer ").reverse)
t.press("l")
t.sees(f"OUTPUT OF JOB {writer}", "first line", "\\x1b]0;owned\\x07red")
assert "second line" not in t.text()
pathlib.Path("go").touch()
t.sees("second line")
pathlib.Path("stop").touch()
until("it has ended", lambda: job(writer)["state"] == "COMPLETED")
t.press("escape", "escape")
t.sees("small-0")
t.loses("writer")
assert b"\x1b]0;" not in t.sent and b"owned\x07" not in t.sent, "the job's output reached the terminal as it is"

# ---- A daemon that hangs, and one that is gone ----

os.kill(DAEMON, signal.SIGSTOP)
t.press("?")
t.sees("hold it, or release it")  # nobody waits for it
t.press("q")
t.sees("small-0")
t.sees("NO DAEMON for", "has not answered for 5 s")
os.kill(DAEMON, signal.SIGCONT)
t.loses("NO DAEMON")

command = pathlib.Path(f"/proc/{DAEMON}/cmdline").read_bytes().split(b"\0")[:-1]
t.sent = b""
os.kill(DAEMON, signal.SIGKILL)
t.sees("NO DAEMON for", "no daemon listens there", "small-0", "large-2")
t.until("greyed", lambda text: t.style_of("█").fg == t.style_of("large-2").fg == "brightblack")
t.sees("NO DAEMON for 2 s")  # it counts
t.press("tab", "c", "y")  # a request that cannot be sent is told
t.sees("no daemon listens there: start it")
with open("daemon.log", "ab") as log:
    again = subprocess.Popen(command, stderr=log)
pathlib.Path("daemon.pid").write_text(str(again.pid))
t.loses("NO DAEMON")
t.until("in colours", lambda text: "█" in text and t.style_of("█").fg == "cyan")

# ---- Ends ----

t.press("q")
assert t.ended() == 0
t.close()

for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT:
    t = top(ASAN_OPTIONS="handle_segv=0:handle_abort=0", TSAN_OPTIONS="handle_segv=0:handle_abort=0")  # they have handlers, too
    t.sees("small-0", "q quit")
    os.kill(t.process.pid, number)
    assert t.ended() == -number, f"signal {number} gives {t.process.returncode}"
    t.close()
t = top()
t.sees("small-0")
t.press("\x03")
assert t.ended() == -signal.SIGINT
t.close()

# By a shell that can stop it, as people's shells do.
t = Terminal(["sh", "-c", 'set -m; "$0" top --delay 0.3; echo "stopped with $?"; read -r _; fg; echo "ended with $?"', CARMA], 80, 24, **UTF8)
t.sees("small-0")
t.press("\x1a")
t.sees("stopped with")
assert b"\x1b[?1049l" in t.sent, "a stopped carma top leaves its screen on"
t.resize(100, 30)
t.press("enter")
t.until("it is back", lambda text: "small-0" in text and len(t.line_with("A100")) > 80)
t.press("q")
t.sees("ended with 0")
assert t.ended() == 0
t.close()

# A terminal that goes away.
t = top()
t.sees("small-0")
os.close(t.slave)
os.close(t.master)
until("it ends with its terminal", lambda: t.process.poll() is not None)

# ---- Terminals ----

t = top(TERM="xterm-no-such-thing")
t.sees("TERM 'xterm-no-such-thing' is not known here: used as 'xterm'", "small-0")
t.press("q")
assert t.ended() == 0
t.close()
t = top(NO_COLOR="1", LC_ALL="C")
t.until("ASCII", lambda text: re.search(r"#+\++\.+ ", text))
t.press("q")
assert t.ended() == 0
assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", t.sent), "colours in spite of NO_COLOR"
assert not re.search(rb"[\x80-\xff]", t.sent), "more than ASCII in a locale that has no more"
t.close()
for terminal, said in ("no-such-thing", "is not known here: set TERM"), ("dumb", "cannot move its cursor"), ("", "TERM is not set"):
    t = top(TERM=terminal)
    assert t.ended() == 2, t.text()
    assert said in " ".join(t.text().split()) and b"\x1b" not in t.sent, t.text()
    t.close()
t = Terminal([CARMA, "--socket", "nobody", "top"], 80, 24)
assert t.ended() == 1 and "no daemon listens there" in t.text(), t.text()
t.close()

# ---- Hostile names: a daemon that passes on names that no real one would take ----

answers = json.loads((SOURCE / "tests/fakes/top.json").read_text())


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        what = "gpus" if "gpus" in self.path else "running" if "running" in self.path else "waiting" if "waiting" in self.path else "status"
        body = json.dumps(answers[what]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "somebody"

    def log_message(self, *_):
        pass


fake = socketserver.ThreadingUnixStreamServer("fake", Answer)
fake.daemon_threads = True
threading.Thread(target=fake.serve_forever, daemon=True).start()
t = Terminal([CARMA, "--socket", "fake", "top"], 150, 40, **UTF8)
t.sees("resnet50 imagenet", r"\x1b[31mevil", "Xid 31", "LOST", "MIG 3g.40gb", "4978 waiting", "sweep-0")
t.press("q")
assert t.ended() == 0
assert b"\x1b[31mevil" not in t.sent and "\u202e".encode() not in t.sent and b"evil\x1b" not in t.sent
t.close()
fake.shutdown()

for number in (*small, *large[1:], held):
    carma("cancel", number)
