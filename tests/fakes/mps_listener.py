#!/usr/bin/env python3
"""Usage: mps_listener.py SOCKET

Listens as an MPS control daemon does, for as long as the program that started it lives. Jobs are told of it, and it
does nothing else."""
import os
import socket
import sys

parent = os.getppid()
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
listener.listen()
listener.settimeout(0.2)
while os.getppid() == parent and os.path.exists(sys.argv[1]):
    try:
        listener.accept()[0].close()
    except TimeoutError:
        pass
