"""What a person sees on a terminal who types the commands of a transcript, one after the other.

What stands behind a prompt, `$ ` or `[y/N] `, is typed, and ended by Return, once the screen shows all above it, the prompt included:
it is the shell's, or of a program that it has started. A line `^C` is that key, as is `^]`, also behind a prompt. The echo of a key is
no part of the transcript. As a program, it reads a transcript from standard input."""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

PATIENCE_SECONDS = float(os.environ.get("PATIENCE_S", "90"))
PROMPT = re.compile(r"(\$ |.*\[y/N\] )(.*)")
KEYS = {"^C": b"\x03", "^]": b"\x1d"}


def matches(expected, got):
    """Whether the lines are those expected, where `...` stands for any."""
    if not expected:
        return not got
    if expected[0] == "...":
        return any(matches(expected[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and expected[0] == got[0] and matches(expected[1:], got[1:])


def autocluster_all(lines, alike):
    """All lines so, but for the status that `echo $?` prints."""
    return [line if before.endswith("echo $?") else alike(line) for before, line in zip(["", *lines], lines)]


class Screen:
    def __init__(self, directory, environment):
        self.seen = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
        (directory / ".profile").write_text("PS1='$ '\n", encoding="utf-8")  # of a login shell, too

        def begin():
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self.bash = subprocess.Popen(["bash", "--norc", "--noprofile"], cwd=directory, stdin=slave, stdout=slave, stderr=slave,
                                     env={**environment, "PS1": "$ ", "TERM": "dumb"}, start_new_session=True,
                                     preexec_fn=begin)  # noqa: PLW1509 no other thread is in the middle of anything
        os.close(slave)

    def lines(self, alike):
        while select.select([self.master], [], [], 0.1)[0]:
            self.seen += os.read(self.master, 65536)
        text = re.sub(r"\r+\n", "\n", self.seen.decode(errors="replace"))
        text = re.sub(r"\^[C\]]|[^\n]*\r", "", text)  # a shell draws over its prompt when the window changes
        return autocluster_all([line for line in text.split("\n") if line], alike)

    def close(self):
        self.bash.kill()
        self.bash.wait()
        os.close(self.master)


def transcript(text, directory, environment, alike=str.rstrip):
    """What differs; "": nothing. `alike` leaves out of a line what differs from run to run."""
    screen, wanted, before, previous = Screen(directory, environment), [], "", None

    def shown(more):
        end = time.monotonic() + PATIENCE_SECONDS
        while not matches(wanted + more, screen.lines(alike)):
            if time.monotonic() > end:
                return False
        return True

    try:
        for line in text.splitlines():
            prompt, typed = PROMPT.fullmatch(line).groups() if PROMPT.fullmatch(line) else ("", line)
            if not prompt and line not in KEYS:
                wanted.append(line if line == "..." else autocluster_all([before, line], alike)[1])
                before, previous = line, None
                continue
            if not (typed in KEYS and previous in KEYS) and not shown([alike(prompt)] if prompt else []):
                break
            before, previous = line, typed
            os.write(screen.master, KEYS.get(typed, typed.encode() + b"\r"))
            if prompt:
                wanted.append(alike(prompt if typed in KEYS else line))
            if typed in KEYS:
                time.sleep(0.2)  # two are two
        if shown(["$"]):
            return ""
        return "the terminal shows\n" + "\n".join(screen.lines(str)) + "\nand not as the document has it:\n" + "\n".join(wanted)
    finally:
        screen.close()


if __name__ == "__main__":
    sys.exit(transcript(sys.stdin.read(), pathlib.Path.cwd(), os.environ) or None)
