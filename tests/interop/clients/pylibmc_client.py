"""pylibmc on items in either tier; see run_client in larder_test.py for the lines it speaks.

libmemcached writes a time of -1 as 4294967295 on the text wire. Django's cache.set(key, value, 0) is that."""

import sys

import pylibmc

address = f"{sys.argv[-2]}:{sys.argv[-1]}"


def check(name, got, want):
    print(f"ok {name}" if got == want else f"not ok {name}: got {got!r:.100}, want {want!r:.100}", flush=True)


def settle():
    print("settle", flush=True)
    sys.stdin.readline()


client = pylibmc.Client([address])
SIZES = (10, 5_000, 200_000)
for size in SIZES:
    check(f"set of {size} bytes", client.set(f"old:{size}", "x" * size), True)
settle()
for size in SIZES:
    check(f"get of {size} bytes", client.get(f"old:{size}"), "x" * size)
    check(f"set of {size} bytes that expires at once", client.set(f"old:{size}", "new", time=-1), True)
    check(f"the old value of {size} bytes is gone", client.get(f"old:{size}"), None)
    check(f"add after it of {size} bytes", client.add(f"old:{size}", "newer"), True)
    check(f"get of what was added to {size} bytes", client.get(f"old:{size}"), "newer")
check("set of a minute", client.set("minute", "x", time=60), True)
check("get of a minute", client.get("minute"), "x")
check("add that expires at once", client.add("lock", "x", time=-1), True)
check("a lock that expired at once is free", client.add("lock", "x", time=60), True)
check("a lock that is taken is not", client.add("lock", "x", time=60), False)
