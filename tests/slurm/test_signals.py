"""Usage: test_signals.py HELPER: carma-slurm-step gets each signal that Slurm sends to a job's processes, or its user by
scancel --full, in each of its conversations: at its first instruction, and while what it has asked is not answered. This is the
plugin and the carmad of these conversations. As root, as which alone it works."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile

LEASE = {"id": 7, "environment": {"CUDA_VISIBLE_DEVICES": "GPU-1"}, "indexes": [0], "cgroup": None, "request_bytes": 1}
ANSWERS = {"GET /v1/capacity": {"memory_bytes": [40 << 30]}, "POST /v1/leases": LEASE, "PUT /v1/leases/7/steps/batch": {},
           "GET /v1/leases/by-key?job=5&cluster=%6c%61%62": {"leases": []}}
COUNT = "code=0\ngpus=1\ngpumem=1073741824\nguess=0\nrestart=0\nrunning=1\n\n"
# What each of them asks: carmad, or slurmctld by the plugin.
QUESTIONS = {"prolog": ["count n1"], "start": [*list(ANSWERS)[:3]], "exit": ["count n1", list(ANSWERS)[3]], "epilog": [list(ANSWERS)[3]]}
SIGNALS = ["SIGTERM", "SIGCONT", "SIGHUP", "SIGINT", "SIGUSR1", "SIGKILL"]


class Conversation:
    def __init__(self, folder, helper, verb, number, moment):
        """`moment`: the question at which the signal comes; -1: the first instruction."""
        self.number, self.moment, self.asked, self.said = number, moment, [], b""
        spool = f"{folder}/spool"
        os.makedirs(spool, exist_ok=True)
        for name, value in {"gpus": 1, "gpumem": 1 << 30, "restart": 0, "cluster": "lab", "node": "n1"}.items():
            with open(f"{spool}/5.{name}", "w", encoding="utf-8") as fact:
                fact.write(str(value))
        with socket.socket(socket.AF_UNIX) as self.carmad:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{folder}/socket")
            self.carmad.bind(f"{folder}/socket")
            self.carmad.listen()
            self.plugin, end = socket.socketpair()
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            self.helper = subprocess.Popen([helper, "1", verb], stdin=end, stdout=end)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            end.close()
            self.come(-1)
            self.say(f"socket={folder}/socket\nspool={spool}\nwait_ms=60000\njob=5\nstep=batch\nSLURM_CLUSTER_NAME=lab\n"
                     "SLURMD_NODENAME=n1\n\n")
            if verb in ("start", "exit"):
                self.say(f"pid={os.getpid()}\nparent=1\nstatus=0\n\n")
            with self.plugin:
                while self.go():
                    pass
        self.status = self.helper.wait()

    def come(self, moment):
        if moment == self.moment:
            self.helper.send_signal(self.number)

    def say(self, text):
        with contextlib.suppress(BrokenPipeError):
            self.plugin.sendall(text.encode())

    def go(self):
        """false: the helper has ended."""
        if self.carmad in select.select([self.carmad, self.plugin], [], [])[0]:
            with self.carmad.accept()[0] as one, one.makefile("rb") as request:
                words = request.readline().decode().split()
                length = 0
                while line := request.readline().strip():
                    length = int(line.split()[1]) if line.lower().startswith(b"content-length") else length
                request.read(length)
                self.hear(" ".join(words[:2]))
                text = json.dumps(ANSWERS[self.asked[-1]])
                with contextlib.suppress(BrokenPipeError):
                    one.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
            return True
        part = b""
        with contextlib.suppress(ConnectionResetError):  # it was killed with our words unread
            part = self.plugin.recv(65536)
        self.said += part
        if part.endswith(b"count n1\n"):
            self.hear("count n1")
            self.say(COUNT)
        return bool(part)

    def hear(self, question):
        self.asked.append(question)
        self.come(len(self.asked) - 1)


def wanted(verb, name, moment):
    """The questions, and the last line that is said."""
    if name == "SIGKILL":  # the plugin begins anew
        return QUESTIONS[verb][:moment + 1], None
    if (name, verb) == ("SIGTERM", "start"):  # nothing else is asked, and the plugin must not begin anew
        return QUESTIONS[verb][:moment + 1], b"end 1"
    return QUESTIONS[verb], b"end 0"


def main():
    if os.getuid() != 0:
        print("skipped: carma-slurm-step works for root alone")
        return 77
    wrong, tries = [], [(verb, name, moment) for verb, asked in QUESTIONS.items() for name in SIGNALS for moment in range(-1, len(asked))]
    for verb, name, moment in tries:
        with tempfile.TemporaryDirectory() as folder:
            one = Conversation(folder, sys.argv[1], verb, getattr(signal, name), moment)
        lines = one.said.splitlines()
        last = lines[-1] if lines and lines[-1].startswith(b"end") else None
        if (one.asked, last) != wanted(verb, name, moment) or last == b"end 0" and one.status != 0:
            wrong.append(f"{verb}, {name} at question {moment}: {one.asked}, {one.said}, status {one.status}, not {wanted(verb, name, moment)}")
    assert not wrong, "\n" + "\n".join(wrong)
    print(f"{len(tries)} signals")
    return 0


sys.exit(main())
