"""Sets a value once and runs a loop over it, as loops.pl does, with stores of Python."""

import sys
import time

store, loop, iterations, seconds_max, file, folder, key, near_at, far_at = sys.argv[1:]
with open(file, "rb") as handle:
    value = handle.read()
lives = 3600


# Each store is functions that get and set, one that returns how many gets found the value near, and whether all gets
# go to the remote server.
def diskcache():
    import diskcache as module

    cache = module.Cache(f"{folder}/diskcache")
    return lambda: cache.get(key), lambda: cache.set(key, value, expire=lives), None, False


def larder_client():
    import larder

    # As patient as the loops in Perl.
    return larder.Client(far_at, connect_timeout=5, timeout=10)


def client():
    cache = larder_client()
    return lambda: cache.get(key), lambda: cache.set(key, value, expire=lives, noreply=False), None, True


def shared():
    import larder

    return larder.L1("tier_loops_py", directory=f"{folder}/l1")


def l1():
    cache = shared()
    return lambda: cache.get(key), lambda: cache.set(key, value, expire=lives), None, False


def tiered():
    import larder

    near = shared()
    cache = larder.Tiered(near, larder_client())

    def set_both():
        return cache.set(key, value, expire=lives, noreply=False)

    return lambda: cache.get(key), set_both, lambda: near.stats()["hits"], False


stores = {"diskcache": diskcache, "client": client, "l1": l1, "tiered": tiered}
get, set_, hits, is_far = stores[store]()
if not set_():
    sys.exit(f"{store}: the value cannot be set")
is_get, is_set = loop != "set", loop != "get"
end, limit = int(iterations), float(seconds_max)
misses = wrong = gets = done = 0
hits_before = hits() if hits else 0
clock = time.perf_counter
start = clock()
while done < end:
    if done % 10 == 9 and clock() - start > limit:
        break
    if is_set:
        set_()
    if is_get:
        gets += 1
        found = get()
        if found is None:
            misses += 1
            set_()
        elif found != value:
            wrong += 1
    done += 1
seconds = clock() - start
near = 0 if is_far else hits() - hits_before if hits else gets - misses
print(done, f"{seconds:.6f}", misses, wrong, near, gets if is_far else 0)
