"""Usage: stuck_fs.py DIRECTORY: mounts a file system there (FUSE, as root), until it is killed. Its file `f` can be made and
written. Who opens it to read waits for an answer that never comes, and does not end when he is killed: the name of such a
process is printed."""

import ctypes
import os
import struct
import sys

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, WRITE, RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = (
    1, 2, 3, 4, 14, 16, 18, 25, 26, 36, 42)
ENOENT, ENOSYS, MS_NOSUID_NODEV = 2, 38, 6


def attributes(node, size):
    mode = 0o40755 if node == 1 else 0o100644
    return struct.pack("=6Q10I", node, size, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(operation, node, body, files):
    """The bytes of an answer, an errno, or None where none is due."""
    if operation == INIT:
        return struct.pack("=4I2H2I2H8I", 7, 31, 65536, 0, 16, 12, 131072, 1, *[0] * 10)
    if operation == LOOKUP:
        return struct.pack("=4Q2I", 2, 0, 0, 0, 0, 0) + attributes(2, files["size"]) if body == b"f\0" else ENOENT
    if operation in (GETATTR, SETATTR):
        return struct.pack("=Q2I", 0, 0, 0) + attributes(node, files["size"])
    if operation == OPEN:
        reads = struct.unpack("=I", body[:4])[0] & os.O_ACCMODE == os.O_RDONLY
        return None if reads else struct.pack("=Q2I", 1, 1, 0)
    if operation == WRITE:
        count = struct.unpack("=2QI", body[:20])[2]
        files["size"] += count
        return struct.pack("=2I", count, 0)
    if operation in (FORGET, INTERRUPT, BATCH_FORGET):
        return None
    return b"" if operation in (RELEASE, FLUSH) else ENOSYS


def main(directory):
    device, libc, files = os.open("/dev/fuse", os.O_RDWR), ctypes.CDLL(None, use_errno=True), {"size": 0}
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"stuck", os.fsencode(directory), b"fuse", MS_NOSUID_NODEV, options) < 0:
        sys.exit(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    while True:
        request = os.read(device, 1 << 18)
        _, operation, unique, node = struct.unpack("=2I2Q", request[:24])
        said = answer(operation, node, request[40:], files)
        if said is None and operation == OPEN:
            with open(f"/proc/{struct.unpack('=I', request[32:36])[0]}/comm", encoding="utf-8") as name:
                print(name.read(), end="", flush=True)
        elif said is not None:
            code, rest = (-said, b"") if isinstance(said, int) else (0, said)
            os.write(device, struct.pack("=IiQ", 16 + len(rest), code, unique) + rest)


main(sys.argv[1])
