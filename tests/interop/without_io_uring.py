"""Runs a program under a seccomp filter that refuses io_uring, as container runtimes do by default.

Usage: without_io_uring.py PROGRAM ARGUMENTS
"""

import ctypes
import errno
import os
import struct
import sys

# The three system calls of io_uring have the same numbers on every architecture.
FIRST, LAST = 425, 427
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
RET_ALLOW, RET_ERRNO = 0x7FFF0000, 0x00050000


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, value)


FILTER = b"".join([
    instruction(0x20, 0),  # load the call's number
    instruction(0x35, FIRST, 0, 2),  # below the first: allow
    instruction(0x25, LAST, 1, 0),  # above the last: allow
    instruction(0x06, RET_ERRNO | errno.EPERM),
    instruction(0x06, RET_ALLOW),
])


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(FILTER) // 8, FILTER)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)):
        sys.exit(f"no filter can be set: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[1], sys.argv[1:])


main()
