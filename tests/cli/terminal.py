"""A program on a terminal of its own, as a person would see it: its screen is read by pyte, an emulator of a VT100."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pyte

PATIENCE_S = float(os.environ.get("PATIENCE_S", "90"))
KEYS = {"up": "\x1bOA", "down": "\x1bOB", "page down": "\x1b[6~", "tab": "\t", "enter": "\r", "escape": "\x1b"}


class Screen(pyte.Screen):
    """With the abilities that terminfo gives an xterm and pyte does not know: scrolling without moving, repeating a
    character, dim text, which has the colour "brightblack" here."""

    last = " "

    def draw(self, data):
        super().draw(data)
        self.last = data[-1:] or self.last

    def select_graphic_rendition(self, *attributes, **rest):
        super().select_graphic_rendition(*attributes, **rest)
        if 2 in attributes:
            self.cursor.attrs = self.cursor.attrs._replace(fg="brightblack")

    def repeat(self, count=1):
        self.draw(self.last * count)

    def scroll(self, change, count):
        x, y = self.cursor.x, self.cursor.y
        self.cursor.y = self.margins.top if self.margins else 0
        change(count)
        self.cursor.x, self.cursor.y = x, y

    def scroll_up(self, count=1):
        self.scroll(self.delete_lines, count)

    def scroll_down(self, count=1):
        self.scroll(self.insert_lines, count)


class Stream(pyte.ByteStream):
    csi = {**pyte.ByteStream.csi, "S": "scroll_up", "T": "scroll_down", "b": "repeat"}


class Terminal:
    """The program sees a terminal of `columns` x `rows`; `preexec` is called in it before it begins."""

    def __init__(self, command, columns=80, rows=24, preexec=None, **environment):
        self.screen = Screen(columns, rows)
        self.stream = Stream(self.screen)
        self.master, slave = pty.openpty()
        self.set_size(slave, columns, rows)
        self.slave = slave  # kept open, so that its settings can be read when the program has ended
        self.before = termios.tcgetattr(slave)
        self.sent = b""

        def begin():
            os.setsid()
            for number in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP:
                signal.signal(number, signal.SIG_DFL)  # however the test was started
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            if preexec:
                preexec()

        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, close_fds=True,
                                        preexec_fn=begin,  # noqa: PLW1509 no test of these has threads
                                        env={**os.environ, "TERM": "xterm", **environment})

    @staticmethod
    def set_size(fd, columns, rows):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        self.set_size(self.master, columns, rows)  # the kernel sends SIGWINCH

    def read(self, seconds):
        """Takes in the program's output, waiting no longer than that for the first of it."""
        while select.select([self.master], [], [], seconds)[0]:
            try:
                piece = os.read(self.master, 65536)
            except OSError:
                return
            self.sent += piece
            self.stream.feed(piece)
            seconds = 0

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines())

    def until(self, what, condition):
        """Waits until condition(text) holds and returns the text."""
        ends = time.monotonic() + PATIENCE_S
        while not condition(self.text()):
            if time.monotonic() > ends or self.process.poll() is not None:
                self.read(0)
                if condition(self.text()):
                    break
                raise AssertionError(f"never: {what}; status {self.process.poll()}; the screen is\n{self.text()}")
            self.read(0.1)
        return self.text()

    def sees(self, *texts):
        return self.until(f"the screen shows {texts}", lambda text: all(one in text for one in texts))

    def loses(self, *texts):
        return self.until(f"the screen is without {texts}", lambda text: not any(one in text for one in texts))

    def press(self, *keys):
        os.write(self.master, "".join(KEYS.get(key, key) for key in keys).encode())

    def line_with(self, text):
        return next((line for line in self.lines() if text in line), "")

    def style_of(self, text):
        """How the first character of `text` is drawn where it first stands."""
        for row, line in enumerate(self.screen.display):
            if text in line:
                return self.screen.buffer[row][line.index(text)]
        raise AssertionError(f"'{text}' is not on the screen:\n{self.text()}")

    def ended(self):
        """Waits for the end and returns the status; the terminal is as it was before, on its usual screen with a cursor."""
        ends = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            if time.monotonic() > ends:
                raise AssertionError(f"it does not end; the screen is\n{self.text()}")
            self.read(0.1)
        self.read(0.1)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal's settings are not as they were"
        if b"\x1b[?1049h" in self.sent:
            assert self.sent.rindex(b"\x1b[?1049l") > self.sent.rindex(b"\x1b[?1049h"), "it left its own screen on"
            assert b"\x1b[?25h" in self.sent[self.sent.rindex(b"\x1b[?25l"):] or b"\x1b[?12l\x1b[?25h" in \
                self.sent[self.sent.rindex(b"\x1b[?25l"):], "the cursor stays hidden"
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)
