"""HTTP over the daemon's Unix socket, for tests in Python."""

import http.client
import socket


class Connection(http.client.HTTPConnection):
    """To the daemon at that path; without a time-out it waits for ever."""

    def __init__(self, path, timeout=None):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)
