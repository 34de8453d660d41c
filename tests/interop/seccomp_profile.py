"""Runs a program under a seccomp profile in the form that container runtimes read.

Usage: seccomp_profile.py PROFILE PROGRAM ARGUMENTS
"""

import ctypes
import json
import os
import sys

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
ACTIONS = {"SCMP_ACT_ALLOW": ALLOW, "SCMP_ACT_ERRNO": ERRNO}
COMPARISONS = {"SCMP_CMP_EQ": 4, "SCMP_CMP_MASKED_EQ": 7}


class Comparison(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint), ("operator", ctypes.c_int), ("one", ctypes.c_uint64), ("other", ctypes.c_uint64)]


def library():
    """libseccomp; None where it is not installed."""
    try:
        found = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    except OSError:
        return None
    found.seccomp_init.restype = ctypes.c_void_p
    return found


def done(what, code):
    if code:
        sys.exit(f"{what}: {os.strerror(-code)}")


def prepare(path):
    """Returns what puts the process that calls it, and all that it starts, under the profile; it needs no file any more."""
    seccomp = library()
    if not seccomp:
        sys.exit("libseccomp.so.2 is not installed: apt-get install libseccomp2")
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    filters = ctypes.c_void_p(seccomp.seccomp_init(ACTIONS[profile["defaultAction"]] | profile["defaultErrnoRet"]))
    for rule in profile["syscalls"]:
        arguments = [
            Comparison(part["index"], COMPARISONS[part["op"]], part["value"], part.get("valueTwo", 0)) for part in rule.get("args", [])
        ]
        array, action = (Comparison * max(len(arguments), 1))(*arguments), ctypes.c_uint32(ACTIONS[rule["action"]])
        for name in rule["names"]:
            number = seccomp.seccomp_syscall_resolve_name(name.encode())
            # Other architectures have calls that this one does not have, as runtimes accept.
            if number >= 0:
                done(name, seccomp.seccomp_rule_add_array(filters, action, number, len(arguments), array))
    # It sets no_new_privs, too.
    return lambda: done("the filter", seccomp.seccomp_load(filters))


if __name__ == "__main__":
    prepare(sys.argv[1])()
    os.execv(sys.argv[2], sys.argv[2:])
