"""Usage: keys.py join COMMAND... | add NAME TEXT | read ID The kernel's keys, by its calls alone. join: runs the
command in a session keyring of its own, as systemd runs services. add: adds a key to the session keyring and prints its
id. read: prints a key's text. Status 77: this kernel has no keys, or this program does not know the calls here."""

import ctypes
import errno
import os
import platform
import sys

CALLS = {"x86_64": (248, 250), "aarch64": (217, 219)}  # add_key, keyctl
JOIN, READ, SESSION = 1, 11, -3


def call(number, *arguments):
    kernel = ctypes.CDLL(None, use_errno=True)
    result = kernel.syscall(number, *arguments)
    if result >= 0:
        return result
    code = ctypes.get_errno()
    print(f"keys.py: {os.strerror(code)}", file=sys.stderr)
    sys.exit(77 if code == errno.ENOSYS else 1)


def main(what, *words):
    if platform.machine() not in CALLS:
        sys.exit(77)
    add_key, keyctl = CALLS[platform.machine()]
    if what == "join":
        call(keyctl, JOIN, None)
        os.execvp(words[0], words)
    elif what == "add":
        text = words[1].encode()
        print(call(add_key, b"user", words[0].encode(), text, ctypes.c_size_t(len(text)), SESSION), flush=True)
    else:
        text = ctypes.create_string_buffer(256)
        length = call(keyctl, READ, int(words[0]), text, ctypes.c_size_t(len(text)))
        print(text.raw[:length].decode())


main(*sys.argv[1:])
