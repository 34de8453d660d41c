"""Sets items with pymemcache, or reads them in another order and compares every byte; prints one line of JSON."""

import json
import random
import sys

from pymemcache.client.base import Client


def value_of(i, size):
    """The same in every run, and of no two items the same."""
    return random.Random(i).randbytes(size)


def main():
    what = sys.argv[1]
    port, items, size = map(int, sys.argv[2:5])
    client = Client(("127.0.0.1", port), timeout=60, default_noreply=False)
    counts = {"items": items, "hits": 0, "verified": 0, "wrong": 0}
    if what == "set":
        for i in range(items):
            client.set(f"sample:{i}", value_of(i, size))
    else:
        for i in random.Random(items).sample(range(items), items):
            value = client.get(f"sample:{i}")
            if value is not None:
                counts["hits"] += 1
                counts["verified" if value == value_of(i, size) else "wrong"] += 1
    print(json.dumps(counts))


main()
