"""Usage: old_kernel.py COMMAND...: runs it as if on Linux 4.18 (RHEL 8, whose glibc is 2.28), x86-64: calls that came
later (numbers from 424, pidfd_send_signal, on) answer ENOSYS, by a seccomp filter that its processes inherit."""

import ctypes
import os
import struct
import sys

FIRST_LATER = 424
ENOSYS = 38
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
X86_64 = 0xC000003E

FILTER = b"".join(struct.pack("HBBI", *step) for step in (
    (0x20, 0, 0, 4),  # the architecture
    (0x15, 0, 3, X86_64),
    (0x20, 0, 0, 0),  # the call's number
    (0x35, 0, 1, FIRST_LATER),
    (0x06, 0, 0, 0x00050000 | ENOSYS),
    (0x06, 0, 0, 0x7FFF0000),  # allowed
))


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(FILTER) // 8, FILTER)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)):
        sys.exit(f"old_kernel.py: no filter: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


main()
