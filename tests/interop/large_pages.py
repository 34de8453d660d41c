"""What the system does with large pages in its own time, done at once, so that a test need not wait for it."""

import ctypes
import os
import re

from larder_test import Skip

LARGE_PAGE_BYTES = 2 << 20
# Of Linux on every architecture since 5.1: include/uapi/asm-generic/unistd.h and mman-common.h.
PROCESS_MADVISE = 440
MADV_COLLAPSE = 25


class Span(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


def spans_of(pid):
    """The large pages that lie in a process's memory that no file is behind, as addresses."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as file:
        for line in file:
            mapped = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0\s*$", line)
            if mapped:
                start, end = (int(word, 16) for word in mapped.groups())
                yield from range(-(-start // LARGE_PAGE_BYTES) * LARGE_PAGE_BYTES, end - LARGE_PAGE_BYTES + 1, LARGE_PAGE_BYTES)


def fill_up(pid):
    """Makes every large page of which a process has a part one that it has whole, where that is allowed, as khugepaged
    does with an idle process in a minute or more. Returns how many there are now."""
    libc = ctypes.CDLL(None, use_errno=True)
    whole = 0
    process = os.pidfd_open(pid)
    try:
        for start in spans_of(pid):
            span = Span(start, LARGE_PAGE_BYTES)
            done = libc.syscall(PROCESS_MADVISE, process, ctypes.byref(span), ctypes.c_size_t(1), MADV_COLLAPSE, 0)
            whole += done == LARGE_PAGE_BYTES
    finally:
        os.close(process)
    if not whole:
        raise Skip(f"no large page can be asked for: {os.strerror(ctypes.get_errno())}")
    return whole
