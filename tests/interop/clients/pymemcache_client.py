"""Every command of pymemcache through its three clients; see run_client in larder_test.py for the lines it speaks."""

import sys
import time

from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient
from pymemcache.exceptions import MemcacheClientError, MemcacheServerError, MemcacheUnknownCommandError

SIZES = [0, 100, 3 * 1024, 20 * 1024, 100 * 1024, 700 * 1024]
TAIL = b"\r\n<tail>"
NUMBER = b"1234567890"
address = (sys.argv[-2], int(sys.argv[-1]))


def value_of(size):
    return bytes((i * 31 + size) % 256 for i in range(256)) * (size // 256) + bytes(
        (i * 31 + size) % 256 for i in range(size % 256)
    )


def short(value):
    text = repr(value)
    return text if len(text) < 100 else text[:50] + "..." + text[-50:]


def check(name, got, want):
    print(f"ok {name}" if got == want else f"not ok {name}: got {short(got)}, want {short(want)}", flush=True)


def check_raises(name, kind, body):
    try:
        check(name, body(), kind.__name__)
    except kind as error:
        print(f"ok {name}", flush=True)
        return str(error)


def ask(line):
    print(line, flush=True)
    return sys.stdin.readline().strip()


def check_ttl(name, key, most, least):
    left = ask(f"ttl {key}")
    check(f"{name} (ttl of {left})", left.lstrip("-").isdigit() and least <= int(left) <= most, True)


class Kind:
    """The tests of one client class; `p` is the prefix of its keys."""

    def __init__(self, name, client):
        self.name, self.client, self.p = name, client, name + ":"

    def check(self, name, got, want):
        check(f"{self.name} {name}", got, want)

    def prepare(self):
        c, p = self.client, self.p
        for size in SIZES:
            value = value_of(size)
            for use in ("get", "gets", "add", "replace", "append", "prepend", "cas", "stale", "delete", "touch"):
                self.check(f"set {use} {size}", c.set(f"{p}{use}:{size}", value, 3600), True)
        self.check("set_many", c.set_many({f"{p}many:{i}": value_of(i) for i in range(50)}, 3600), [])
        for use in ("incr", "decr", "below", "wrap", "incr-quiet", "get"):
            number = {"wrap": b"18446744073709551615", "below": b"10"}.get(use, NUMBER)
            c.set(f"{p}number:{use}", number, 3600)
        c.set(f"{p}nonumber", b"ten", 3600)
        for use in ("set", "add", "replace", "append", "prepend", "delete", "touch", "cas"):
            c.set(f"{p}quiet:{use}", b"old", 3600)
        for ttl in (6, 600, 86400, 0):
            c.set(f"{p}ttl:{ttl}", b"x" * 50, ttl)
        self.short_lived_since = time.monotonic()
        c.set(f"{p}gone", b"here")
        self.check("set, negative ttl", c.set(f"{p}gone", b"x", -1), True)
        c.set(f"{p}too-large", b"old", 0)
        self.old_cas = {size: c.gets(f"{p}stale:{size}")[1] for size in SIZES}
        for size in SIZES:
            # Puts a new version in place, so that the unique just read is out of date.
            c.set(f"{p}stale:{size}", value_of(size), 3600)

    def act(self):
        c, p, check = self.client, self.p, self.check
        for size in SIZES:
            value = value_of(size)
            check(f"get {size}", c.get(f"{p}get:{size}"), value)
            got, cas = c.gets(f"{p}gets:{size}")
            check(f"gets {size}", (got, cas.isdigit() and cas != b"0"), (value, True))
            check(f"add {size}, there", c.add(f"{p}add:{size}", b"new"), False)
            check(f"add {size}, value", c.get(f"{p}add:{size}"), value)
            check(f"replace {size}", c.replace(f"{p}replace:{size}", b"new", 60), True)
            check(f"replace {size}, value", c.get(f"{p}replace:{size}"), b"new")
            check(f"append {size}", c.append(f"{p}append:{size}", TAIL), True)
            check(f"append {size}, value", c.get(f"{p}append:{size}"), value + TAIL)
            check(f"prepend {size}", c.prepend(f"{p}prepend:{size}", TAIL), True)
            check(f"prepend {size}, value", c.get(f"{p}prepend:{size}"), TAIL + value)
            check(f"cas {size}, out of date", c.cas(f"{p}stale:{size}", b"new", self.old_cas[size]), False)
            check(f"cas {size}, out of date, value", c.get(f"{p}stale:{size}"), value)
            _, cas = c.gets(f"{p}cas:{size}")
            check(f"cas {size}", c.cas(f"{p}cas:{size}", b"new", cas), True)
            check(f"cas {size}, again", c.cas(f"{p}cas:{size}", b"newer", cas), False)
            check(f"cas {size}, value", c.get(f"{p}cas:{size}"), b"new")
            check(f"touch {size}", c.touch(f"{p}touch:{size}", 7200), True)
            check_ttl(f"{self.name} touch {size}, ttl", f"{p}touch:{size}", 7200, 7190)
            check(f"touch {size}, value", c.get(f"{p}touch:{size}"), value)
            check(f"delete {size}", c.delete(f"{p}delete:{size}"), True)
            check(f"delete {size}, again", c.delete(f"{p}delete:{size}"), False)
            check(f"delete {size}, value", c.get(f"{p}delete:{size}"), None)
        check_ttl(f"{self.name} append keeps the ttl", f"{p}append:100", 3600, 3000)
        check_ttl(f"{self.name} replace sets the ttl", f"{p}replace:100", 60, 50)

        for command in ("add", "replace", "append", "prepend"):
            check(f"{command}, missing", getattr(c, command)(f"{p}no:{command}", b"x"), command == "add")
        check("add, missing, value", c.get(f"{p}no:add"), b"x")
        check("get, missing", c.get(f"{p}no"), None)
        check("get, missing, default", c.get(f"{p}no", b"default"), b"default")
        check("gets, missing", c.gets(f"{p}no"), (None, None))
        check("cas, missing", c.cas(f"{p}no", b"x", b"1"), None)
        check("delete, missing", c.delete(f"{p}no"), False)
        check("touch, missing", c.touch(f"{p}no", 1), False)
        check("incr, missing", c.incr(f"{p}no", 1), None)
        check("decr, missing", c.decr(f"{p}no", 1), None)

        check("get of a number", c.get(f"{p}number:get"), NUMBER)
        check("incr", c.incr(f"{p}number:incr", 10), 1234567900)
        check("incr, again", c.incr(f"{p}number:incr", 1), 1234567901)
        check_ttl(f"{self.name} incr keeps the ttl", f"{p}number:incr", 3600, 3000)
        check("decr", c.decr(f"{p}number:decr", 90), 1234567800)
        check("decr to fewer digits", c.decr(f"{p}number:below", 1), 9)
        check("decr to fewer digits, value", c.get(f"{p}number:below"), b"9 ")
        check("decr below 0", c.decr(f"{p}number:below", 100), 0)
        check("incr past 2^64", c.incr(f"{p}number:wrap", 2), 1)
        said = check_raises(
            f"{self.name} incr of no number", MemcacheClientError, lambda: c.incr(f"{p}nonumber", 1)
        )
        check("incr of no number, message", "non-numeric value" in (said or ""), True)
        check("incr of no number, value", c.get(f"{p}nonumber"), b"ten")
        check("incr, quiet", c.incr(f"{p}number:incr-quiet", 5, noreply=True), None)
        check("incr, quiet, value", c.get(f"{p}number:incr-quiet"), b"1234567895")
        check("decr, quiet", c.decr(f"{p}number:incr-quiet", 6, noreply=True), None)
        check("decr, quiet, value", c.get(f"{p}number:incr-quiet"), b"1234567889")

        check("set, quiet", c.set(f"{p}quiet:set", b"new", noreply=True), True)
        check("set, quiet, value", c.get(f"{p}quiet:set"), b"new")
        c.add(f"{p}quiet:add", b"new", noreply=True)
        check("add, quiet, value", c.get(f"{p}quiet:add"), b"old")
        c.add(f"{p}quiet:add-new", b"new", noreply=True)
        check("add, quiet, missing, value", c.get(f"{p}quiet:add-new"), b"new")
        c.replace(f"{p}quiet:replace", b"new", noreply=True)
        check("replace, quiet, value", c.get(f"{p}quiet:replace"), b"new")
        c.append(f"{p}quiet:append", b"+", noreply=True)
        check("append, quiet, value", c.get(f"{p}quiet:append"), b"old+")
        c.prepend(f"{p}quiet:prepend", b"+", noreply=True)
        check("prepend, quiet, value", c.get(f"{p}quiet:prepend"), b"+old")
        c.delete(f"{p}quiet:delete", noreply=True)
        check("delete, quiet, value", c.get(f"{p}quiet:delete"), None)
        c.touch(f"{p}quiet:touch", 7200, noreply=True)
        # Another connection asks for the ttl; the get makes sure that the touch is done by then.
        check("touch, quiet, value", c.get(f"{p}quiet:touch"), b"old")
        check_ttl(f"{self.name} touch, quiet, ttl", f"{p}quiet:touch", 7200, 7190)
        c.cas(f"{p}quiet:cas", b"new", b"1", noreply=True)
        check("cas, quiet, out of date, value", c.get(f"{p}quiet:cas"), b"old")
        c.cas(f"{p}quiet:cas", b"new", c.gets(f"{p}quiet:cas")[1], noreply=True)
        check("cas, quiet, value", c.get(f"{p}quiet:cas"), b"new")

        c.set(f"{p}fresh:1", b"fresh one")
        c.set(f"{p}fresh:2", value_of(5000))
        many = [f"{p}many:{i}" for i in range(50)]
        mixed = [f"{p}fresh:1", *many, f"{p}no:1", f"{p}get:102400", f"{p}fresh:2", f"{p}no:2", f"{p}get:0"]
        want = {f"{p}many:{i}": value_of(i) for i in range(50)}
        want |= {f"{p}fresh:1": b"fresh one", f"{p}fresh:2": value_of(5000)}
        want |= {f"{p}get:{size}": value_of(size) for size in (0, 102400)}
        check("get_many of fresh, settled and missing keys", c.get_many(mixed), want)
        check("gets_many", {key: value for key, (value, _) in c.gets_many(mixed).items()}, want)
        check("get_many, none there", c.get_many([f"{p}no:{i}" for i in range(3)]), {})
        check("delete_many", c.delete_many(many[:20]), True)
        check("delete_many, values", len(c.get_many(many)), 30)

        check_ttl(f"{self.name} ttl of 600", f"{p}ttl:600", 600, 480)
        check_ttl(f"{self.name} ttl of a day", f"{p}ttl:86400", 86400, 86280)
        check_ttl(f"{self.name} ttl of 0", f"{p}ttl:0", -1, -1)
        check("negative ttl hides the item", c.get(f"{p}gone"), None)
        check("add over a negative ttl", c.add(f"{p}gone", b"back"), True)
        said = check_raises(
            f"{self.name} set, too large", MemcacheServerError, lambda: c.set(f"{p}too-large", bytes(2 << 20))
        )
        check("set, too large, message", "object too large for cache" in (said or ""), True)
        check("set, too large, drops what was there", c.get(f"{p}too-large"), None)

    def expire(self):
        time.sleep(max(0, 7.1 - (time.monotonic() - self.short_lived_since)))
        self.check("gone after its ttl of 6", self.client.get(f"{self.p}ttl:6"), None)
        self.check("touch after its ttl", self.client.touch(f"{self.p}ttl:6", 10), False)
        self.check("add after its ttl", self.client.add(f"{self.p}ttl:6", b"x"), True)


plain = Client(address, default_noreply=False, timeout=60)
kinds = [
    Kind("Client", plain),
    Kind("PooledClient", PooledClient(address, default_noreply=False, timeout=60, max_pool_size=2)),
    Kind("HashClient", HashClient([address], default_noreply=False, timeout=60)),
]
for kind in kinds:
    kind.prepare()
ask("settle")
for kind in kinds:
    kind.act()
for kind in kinds:
    kind.expire()

check("version", plain.version().startswith(b"1.6."), True)
stats = plain.stats()
check("stats, set and get are counted", stats[b"cmd_set"] > 300 and stats[b"get_hits"] > 300, True)
check("stats settings", plain.stats("settings")[b"evictions"], b"on")
check("stats items", type(plain.stats("items")), dict)
check("stats slabs", type(plain.stats("slabs")), dict)
check_raises("stats of something unknown", MemcacheUnknownCommandError, lambda: plain.stats("nonsense"))
check("cache_memlimit", plain.cache_memlimit(int(stats[b"limit_maxbytes"]) >> 20), True)
check_raises("a key with a blank", MemcacheClientError, lambda: plain.get("a b"))

for kind in kinds:
    kind.client.set(f"{kind.p}flush", b"x")
check("flush_all in 2 seconds", plain.flush_all(delay=2), True)
check("flush_all in 2 seconds: not yet", plain.get("Client:get:100"), value_of(100))
plain.set("before-the-flush", b"x")
time.sleep(3.2)
check("flush_all in 2 seconds: settled item", plain.get("Client:get:3072"), None)
check("flush_all in 2 seconds: item set after the command", plain.get("before-the-flush"), None)
for kind in kinds:
    kind.client.set(f"{kind.p}flush", b"x", 60)
    kind.client.set(f"{kind.p}flush:large", value_of(100 * 1024), 60)
ask("settle")
for kind in kinds:
    kind.client.set(f"{kind.p}flush:fresh", b"x", 60)
    check(f"{kind.name} before flush_all", kind.client.get(f"{kind.p}flush"), b"x")
for kind in kinds:
    p, c = kind.p, kind.client
    keys = [f"{p}flush", f"{p}flush:large", f"{p}flush:fresh"]
    # HashClient's flush_all answers nothing, it only has to work.
    flushed = c.flush_all()
    check(f"{kind.name} flush_all", flushed in (True, None), True)
    check(f"{kind.name} flush_all: all are gone", c.get_many(keys), {})
    check(f"{kind.name} append after flush_all", c.append(keys[0], b"x"), False)
    check(f"{kind.name} set after flush_all", (c.set(keys[0], b"y"), c.get(keys[0])), (True, b"y"))
plain.flush_all(noreply=True)
check("flush_all, quiet", plain.get("Client:flush"), None)
plain.quit()
check("works again after quit", plain.get("nothing"), None)
