"""Usage: ask_terminal.py KEYS COMMAND...: runs the command on a terminal, types KEYS and Enter once it asks, and prints what
the terminal shows."""

import os
import pty
import sys

child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
shown = b""
asked = False
while True:
    try:
        got = os.read(terminal, 4096)
    except OSError:  # it has ended
        break
    if not got:
        break
    shown += got
    if b"? [y/N]" in shown and not asked:
        asked = True
        os.write(terminal, sys.argv[1].encode() + b"\n")
os.waitpid(child, 0)
print(shown.decode())
