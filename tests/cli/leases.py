"""Usage: leases.py SOCKET METHOD PATH [BODY]: one request; prints its status, and behind it the answer."""

import sys

from unix_http import Connection


def main(path, method, target, body=None):
    connection = Connection(path)
    connection.request(method, target, body)
    answer = connection.getresponse()
    print(answer.status, answer.read().decode())
    connection.close()


main(*sys.argv[1:])
