"""How a process came to its end, where no exception of its main thread says so: the status that it asked for, an error of
another thread, and the last line that it wrote."""

import builtins
import contextlib
import sys
import threading

KEPT = 4000  # characters of what was written


class LastWords:
    """status: of sys.exit(), exit() and quit(), or the text of a SystemExit. error: of a thread."""

    def __init__(self):
        self.status, self.error, self._written = None, None, ""
        self._exit, self._thread_failed = sys.exit, threading.excepthook
        sys.exit = builtins.exit = builtins.quit = self._leave
        threading.excepthook = self._fail
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError):  # there is none, or it is of another kind
                stream.write = self._listened(stream.write)  # loggers hold the stream itself

    def _leave(self, status=None, /):
        self.status = status
        self._exit(status)

    def _fail(self, failed, /):
        self.error = failed.exc_value
        self._thread_failed(failed)

    def _listened(self, original):
        def write(text, /):
            if isinstance(text, str):
                self._written = (self._written + text)[-KEPT:]
                interpreter = sys._getframe().f_back is None  # itself: what SystemExit was given, or a traceback
                if interpreter and self.status is None and text.strip() and not hasattr(sys, "last_value"):
                    self.status = text
            return original(text)

        return write

    def line(self):
        """The last one on standard output or error, but for bars of progress."""
        lines = [line.rstrip() for line in self._written.split("\n")]
        return next((line.strip() for line in reversed(lines) if line and "\r" not in line), "")
