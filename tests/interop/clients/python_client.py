"""Clients for Python through their whole APIs, one after the other behind an interface of their common commands; see
run_client in larder_test.py for the lines this speaks."""

import asyncio
import sys

SIZES = [0, 1, 100, 3 * 1024, 20 * 1024, 100 * 1024, 700 * 1024]
BATCHES = [1, 2, 50, 1000]
HOST, PORT = sys.argv[-2], int(sys.argv[-1])


def value_of(size):
    block = bytes((i * 31 + size) % 256 for i in range(256))
    return block * (size // 256) + block[: size % 256]


def check(name, got, want):
    text = f"got {got!r:.100}, want {want!r:.100}"
    print(f"ok {name}" if got == want else f"not ok {name}: {text}", flush=True)


def ask(line):
    print(line, flush=True)
    return sys.stdin.readline().strip()


class BinaryMemcached:
    """python-binary-memcached."""

    def __init__(self):
        import bmemcached

        self.client = bmemcached.Client((f"{HOST}:{PORT}",), socket_timeout=60)

    def set(self, key, value, ttl=3600):
        return bool(self.client.set(key, value, ttl, compress_level=0))

    def get(self, key):
        return self.client.get(key)

    def get_many(self, keys):
        return self.client.get_multi(keys)

    def set_many(self, items):
        return self.client.set_multi(items, 3600, compress_level=0) == []

    def add(self, key, value):
        return bool(self.client.add(key, value, 3600, compress_level=0))

    def replace(self, key, value):
        return bool(self.client.replace(key, value, 3600, compress_level=0))

    def gets(self, key):
        return self.client.gets(key)

    def cas(self, key, value, unique):
        return bool(self.client.cas(key, value, unique, 3600, compress_level=0))

    def incr(self, key, delta):
        return self.client.incr(key, delta, default=7, time=3600)

    def decr(self, key, delta):
        return self.client.decr(key, delta, default=7, time=3600)

    def delete(self, key):
        return bool(self.client.delete(key))

    def flush(self):
        self.client.flush_all()

    def more(self):
        check("delete_multi", bool(self.client.delete_multi(["batch:1:0", "batch:2:0"])), True)
        check("delete_multi, values", self.client.get_multi(["batch:1:0", "batch:2:0"]), {})
        (stats,) = self.client.stats().values()
        check("stats", stats["version"] in (b"1.6.45", "1.6.45"), True)
        check("a missing number begins with its default", self.incr("no number", 5), 7)


class Waiting:
    """What the clients for asyncio share: a loop that waits for each call."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()

    def wait(self, call):
        return self.loop.run_until_complete(call)


class Aiomcache(Waiting):
    def __init__(self):
        super().__init__()
        import aiomcache

        self.client = aiomcache.Client(HOST, PORT)

    def call(self, name, *arguments):
        return self.wait(getattr(self.client, name)(*arguments))

    def set(self, key, value, ttl=3600):
        return self.call("set", key.encode(), value, ttl)

    def get(self, key):
        return self.call("get", key.encode())

    def get_many(self, keys):
        # It takes a hundred keys at a time at most.
        found = {}
        for at in range(0, len(keys), 50):
            some = keys[at : at + 50]
            found |= dict(zip(some, self.call("multi_get", *(key.encode() for key in some))))
        return {key: value for key, value in found.items() if value is not None}

    def add(self, key, value):
        return self.call("add", key.encode(), value, 3600)

    def replace(self, key, value):
        return self.call("replace", key.encode(), value, 3600)

    def append(self, key, value):
        return self.call("append", key.encode(), value)

    def prepend(self, key, value):
        return self.call("prepend", key.encode(), value)

    def gets(self, key):
        return self.call("gets", key.encode())

    def cas(self, key, value, unique):
        return self.call("cas", key.encode(), value, unique, 3600)

    def incr(self, key, delta):
        return self.call("incr", key.encode(), delta)

    def decr(self, key, delta):
        return self.call("decr", key.encode(), delta)

    def touch(self, key, ttl):
        return self.call("touch", key.encode(), ttl)

    def delete(self, key):
        return self.call("delete", key.encode())

    def flush(self):
        self.call("flush_all")

    def more(self):
        check("version", self.call("version"), b"1.6.45")
        check("stats", self.call("stats")[b"version"], b"1.6.45")
        check("stats settings", self.call("stats", b"settings")[b"evictions"], b"on")


class Emcache(Waiting):
    def __init__(self):
        super().__init__()
        import emcache

        self.package, self.address = emcache, emcache.MemcachedHostAddress(HOST, PORT)
        self.client = self.wait(emcache.create_client([self.address], timeout=60))

    def stored(self, name, key, *arguments, **options):
        """Whether a call that raises if it stores nothing has stored."""
        try:
            self.wait(getattr(self.client, name)(key.encode(), *arguments, **options))
        except (self.package.NotStoredStorageCommandError, self.package.NotFoundCommandError):
            return False
        return True

    def value(self, item):
        return item and item.value

    def set(self, key, value, ttl=3600):
        return self.stored("set", key, value, exptime=ttl)

    def get(self, key):
        return self.value(self.wait(self.client.get(key.encode())))

    def get_many(self, keys):
        found = self.wait(self.client.get_many([key.encode() for key in keys]))
        return {key.decode(): item.value for key, item in found.items()}

    def add(self, key, value):
        return self.stored("add", key, value, exptime=3600)

    def replace(self, key, value):
        return self.stored("replace", key, value, exptime=3600)

    def append(self, key, value):
        return self.stored("append", key, value)

    def prepend(self, key, value):
        return self.stored("prepend", key, value)

    def gets(self, key):
        item = self.wait(self.client.gets(key.encode()))
        return (item.value, item.cas) if item else (None, None)

    def cas(self, key, value, unique):
        return self.stored("cas", key, value, unique, exptime=3600)

    def incr(self, key, delta):
        return self.wait(self.client.increment(key.encode(), delta))

    def decr(self, key, delta):
        return self.wait(self.client.decrement(key.encode(), delta))

    def touch(self, key, ttl):
        return self.stored("touch", key, ttl)

    def delete(self, key):
        return self.stored("delete", key)

    def flush(self):
        self.wait(self.client.flush_all(self.address))

    def more(self):
        check("flags", self.wait(self.client.get(b"flagged", return_flags=True)), None)
        self.wait(self.client.set(b"flagged", b"x", flags=0xFFFF, exptime=3600))
        check("flags of a fresh item", self.wait(self.client.get(b"flagged", return_flags=True)).flags, 0xFFFF)
        check("gat", self.value(self.wait(self.client.gat(7200, b"get:100"))), value_of(100))
        check_ttl("gat", "get:100", 7200)
        check("gats", self.value(self.wait(self.client.gats(7200, b"get:3072"))), value_of(3072))
        many = self.wait(self.client.gat_many(7200, [b"get:1", b"no"]))
        check("gat_many", {key: item.value for key, item in many.items()}, {b"get:1": value_of(1)})
        many = self.wait(self.client.gets_many([b"get:1", b"get:100", b"no"]))
        check("gets_many", [key for key, item in many.items() if item.cas], [b"get:1", b"get:100"])
        check("version", self.wait(self.client.version(self.address)), "1.6.45")
        check("stats", self.wait(self.client.stats(self.address))["version"], "1.6.45")
        self.wait(self.client.verbosity(self.address, 0))
        self.wait(self.client.set(b"quiet", b"x", noreply=True))
        check("a set without a reply", self.get("quiet"), b"x")


class MetaMemcache:
    """meta-memcache, which speaks the meta protocol."""

    # It compresses longer values, and nothing can be appended to those.
    largest_plain = 100

    def __init__(self):
        import meta_memcache

        self.package = meta_memcache
        self.client = meta_memcache.CacheClient.cache_client_from_servers(
            servers=[meta_memcache.ServerAddress(HOST, PORT)],
            connection_pool_factory_fn=meta_memcache.connection_pool_factory_builder(recv_timeout=60),
        )

    def set(self, key, value, ttl=3600):
        return self.client.set(key, value, ttl)

    def get(self, key):
        return self.client.get(key)

    def get_many(self, keys):
        found = self.client.multi_get(keys)
        return {getattr(key, "key", key): value for key, value in found.items() if value is not None}

    def mode(self, key, value, mode):
        return self.client.set(key, value, 3600, set_mode=getattr(self.package.SetMode, mode))

    def add(self, key, value):
        return self.mode(key, value, "ADD")

    def replace(self, key, value):
        return self.mode(key, value, "REPLACE")

    def append(self, key, value):
        return self.mode(key, value, "APPEND")

    def prepend(self, key, value):
        return self.mode(key, value, "PREPEND")

    def gets(self, key):
        return self.client.get_cas(key)

    def cas(self, key, value, unique):
        return self.client.set(key, value, 3600, cas_token=unique)

    def incr(self, key, delta):
        return self.client.delta_and_get(key, delta)

    def decr(self, key, delta):
        return self.client.delta_and_get(key, -delta)

    def touch(self, key, ttl):
        return self.client.touch(key, ttl)

    def delete(self, key):
        return self.client.delete(key)

    def more(self):
        c, key = self.client, "leased"
        lease = self.package.LeasePolicy(ttl=30, miss_retries=1, miss_retry_wait=0.01)
        check("get_or_lease, the first", c.get_or_lease(key, lease_policy=lease), None)
        check("refill", [c.refill("refilled", b"x", 60), c.refill("refilled", b"y", 60)], [True, False])
        c.set(key, b"made", 3600)
        check("get_or_lease, made", c.get_or_lease(key, lease_policy=lease), b"made")
        stale = self.package.StalePolicy(mark_stale_on_deletion_ttl=30)
        check("invalidate", c.invalidate(key, stale_policy=stale), True)
        check("a binary key", [c.set("clé " * 3, b"x", 60), c.get("clé " * 3)], [True, b"x"])
        check("a long key", [c.set("k" * 500, b"x", 60), c.get("k" * 500)], [True, b"x"])
        check("delta_initialize_and_get", c.delta_initialize_and_get("made number", 1, 7, 60), 7)
        check("delta_initialize", c.delta_initialize("made number", 2, 7, 60), True)
        check("delta", [c.delta("made number", 1), int(c.get("made number"))], [True, 10])
        check("get, touched", c.get("get:100", touch_ttl=7200), value_of(100))
        check_ttl("get, touched", "get:100", 7200)
        check("multi_get_cas", [bool(cas) for _, cas in c.multi_get_cas(["get:1", "get:3072"]).values()], [True, True])


def check_ttl(name, key, most):
    left = ask(f"ttl {key}")
    check(f"{name}: ttl of {left}", left.isdigit() and most - 100 <= int(left) <= most, True)


USES = ["get", "add", "replace", "append", "prepend", "cas", "stale", "delete", "touch"]


def prepare(c):
    for size in SIZES:
        for use in USES:
            check(f"set {use} {size}", c.set(f"{use}:{size}", value_of(size)), True)
    for batch in BATCHES:
        items = {f"batch:{batch}:{i}": value_of(i) for i in range(batch)}
        if hasattr(c, "set_many"):
            check(f"set of {batch}", c.set_many(items), True)
        else:
            check(f"sets of {batch}", all(c.set(key, value) for key, value in items.items()), True)
    for use in ("incr", "decr", "wrap"):
        c.set(f"number:{use}", b"18446744073709551615" if use == "wrap" else b"1234567890")
    c.set("flushed", b"x")
    stale = {size: c.gets(f"stale:{size}")[1] for size in SIZES}
    for size in SIZES:
        c.set(f"stale:{size}", value_of(size))
    return stale


def act(c, stale):
    for size in SIZES:
        value = value_of(size)
        check(f"get {size}", c.get(f"get:{size}"), value)
        check(f"add {size}, there", c.add(f"add:{size}", b"new"), False)
        check(f"add {size}, value", c.get(f"add:{size}"), value)
        check(f"replace {size}", [c.replace(f"replace:{size}", b"new"), c.get(f"replace:{size}")], [True, b"new"])
        for use, want in (("append", value + b"<tail>"), ("prepend", b"<tail>" + value)):
            if hasattr(c, use) and size <= getattr(c, "largest_plain", size):
                check(f"{use} {size}", [getattr(c, use)(f"{use}:{size}", b"<tail>"), c.get(f"{use}:{size}")], [True, want])
        found, unique = c.gets(f"cas:{size}")
        check(f"gets {size}", [found, bool(unique)], [value, True])
        check(f"cas {size}", [c.cas(f"cas:{size}", b"new", unique), c.get(f"cas:{size}")], [True, b"new"])
        check(f"cas {size}, out of date", [c.cas(f"stale:{size}", b"new", stale[size]), c.get(f"stale:{size}")], [False, value])
        if hasattr(c, "touch"):
            check(f"touch {size}", c.touch(f"touch:{size}", 7200), True)
            check_ttl(f"touch {size}", f"touch:{size}", 7200)
        check(f"delete {size}", [c.delete(f"delete:{size}"), c.get(f"delete:{size}")], [True, None])
    for batch in BATCHES:
        want = {f"batch:{batch}:{i}": value_of(i) for i in range(batch)}
        check(f"get of {batch} and missing keys", c.get_many([*want, "no:1", "no:2"]), want)
    check("incr", [c.incr("number:incr", 10), c.incr("number:incr", 1)], [1234567900, 1234567901])
    check("decr", c.decr("number:decr", 90), 1234567800)
    check("incr past 2^64", c.incr("number:wrap", 2), 1)
    check("missing", [c.get("no"), c.replace("no", b"x"), c.add("no:add", b"x")], [None, False, True])
    c.more()
    if hasattr(c, "flush"):
        c.flush()
        check("flush", c.get("flushed"), None)


CLIENTS = {"bmemcached": BinaryMemcached, "aiomcache": Aiomcache, "emcache": Emcache, "meta-memcache": MetaMemcache}
client = CLIENTS[sys.argv[1]]()
uniques = prepare(client)
ask("settle")
act(client, uniques)
