"""Prints the nanoseconds of one read of a hot key in Python: `larder BYTES` or `warp_cache BYTES`, median of 101 rounds."""

import statistics
import sys
import time
import timeit

ROUNDS = 101
KEY = "key:000000"


def larder_read(value):
    import larder

    l1 = larder.L1.anonymous()
    l1.set(KEY, value, expire=600)
    get = l1.get
    return lambda: get(KEY)


def warp_cache_read(value):
    import warp_cache

    @warp_cache.cache(backend="shared", max_size=1024, max_value_size=1 << 16)
    def read(key):
        return value

    read(KEY)
    return lambda: read(KEY)


def main():
    value = b"\x07" * int(sys.argv[2])
    read = {"larder": larder_read, "warp_cache": warp_cache_read}[sys.argv[1]](value)
    assert read() == value
    calls = max(1_000_000 // (len(value) + 100), 10)
    # Without the lambda that is timed with it.
    empty = statistics.median(timeit.repeat(lambda: None, number=calls, repeat=ROUNDS, timer=time.perf_counter))
    found = statistics.median(timeit.repeat(read, number=calls, repeat=ROUNDS, timer=time.perf_counter))
    print((found - empty) / calls * 1e9)


if __name__ == "__main__":
    main()
