"""Reads a random sample of the pump's items with pymemcache and compares every byte; prints one line of JSON."""

import json
import random
import struct
import sys
import time

from pymemcache.client.base import Client

MASK = (1 << 64) - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def key_of(seed, i):
    return b"%016x" % mix(seed ^ i << 1)


def value_of(seed, i, size):
    words = [i]
    state = mix((seed + i) & MASK)
    while len(words) * 8 < size:
        state = mix(state)
        words.append(state)
    return struct.pack(f"<{len(words)}Q", *words)[:size]


def main():
    port, items, size, seed, sample = map(int, sys.argv[1:6])
    client = Client(("127.0.0.1", port), timeout=60)
    chosen = random.Random(seed).sample(range(items), min(sample, items))
    counts = {"sample": len(chosen), "hits": 0, "verified": 0, "wrong": 0}
    start = time.monotonic()
    for i in chosen:
        value = client.get(key_of(seed, i))
        if value is not None:
            counts["hits"] += 1
            counts["verified" if value == value_of(seed, i, size) else "wrong"] += 1
    counts["seconds"] = time.monotonic() - start
    print(json.dumps(counts))


main()
