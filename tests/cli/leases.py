"""Usage: leases.py SOCKET METHOD PATH [BODY]: one request; prints its status, and behind it the answer."""

import http.client
import socket
import sys


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def main(path, method, target, body=None):
    connection = Connection(path)
    connection.request(method, target, body)
    answer = connection.getresponse()
    print(answer.status, answer.read().decode())
    connection.close()


main(*sys.argv[1:])
