"""Every call of pymemcache's clients, made to both: the same results, and exceptions of the same name."""

import larder
import larder.serde
import pymemcache
import pytest
from pymemcache.client.hash import HashClient

pytestmark = pytest.mark.filterwarnings("ignore")

# Calls in order; the names of what a call returns are compared where their contents differ by nature.
CALLS = [
    lambda c: c.get("missing"),
    lambda c: c.get("missing", "default"),
    lambda c: c.gets("missing"),
    lambda c: c.gets("missing", "d", "c"),
    lambda c: c.set("a", "text", noreply=False),
    lambda c: c.get("a"),
    lambda c: c.get(b"a"),
    lambda c: c.set(b"n", 41, noreply=False),
    lambda c: c.get("n"),
    lambda c: c.incr("n", 1),
    lambda c: c.decr("n", 50),
    lambda c: c.incr("missing", 1),
    lambda c: c.decr("missing", 1),
    lambda c: c.incr("a", 1),
    lambda c: c.add("a", b"x", noreply=False),
    lambda c: c.add("b", b"y", noreply=False),
    lambda c: c.replace("c", b"z", noreply=False),
    lambda c: c.replace("b", b"yy", noreply=False),
    lambda c: c.append("b", b">", noreply=False),
    lambda c: c.prepend("b", b"<", noreply=False),
    lambda c: c.append("missing", b"x", noreply=False),
    lambda c: c.get("b"),
    lambda c: c.set("s", b"1", noreply=False),
    lambda c: c.cas("s", b"2", c.gets("s")[1]),
    lambda c: c.cas("s", b"3", b"1"),
    lambda c: c.cas("missing", b"3", 1),
    lambda c: c.cas("s", b"3", "no digits"),
    lambda c: type(c.gets("s")[1]),
    lambda c: c.set_many({"m1": b"1", b"m2": b"2"}, noreply=False),
    lambda c: c.get_many(["m1", b"m2", "none"]),
    lambda c: c.get_many([]),
    lambda c: sorted(c.gets_many(["m1", "m2", "none"])),
    lambda c: c.set_many({}),
    lambda c: c.touch("m1", 100, noreply=False),
    lambda c: c.touch("missing", 100, noreply=False),
    lambda c: c.delete("m1", noreply=False),
    lambda c: c.delete("m1", noreply=False),
    lambda c: c.delete_many(["m2", "none"], noreply=False),
    lambda c: c.delete_many([]),
    lambda c: c.set("gone", b"x", expire=-1, noreply=False),
    lambda c: c.get("gone"),
    lambda c: c.set("quiet", b"x"),
    lambda c: c.get("quiet"),
    lambda c: c.delete("quiet"),
    lambda c: c.get("quiet"),
    lambda c: c.incr("n", 5, noreply=True),
    lambda c: c.get("n"),
    lambda c: c.set("k" * 251, b"x"),
    lambda c: c.get("\u00e9"),
    lambda c: c.set("a", "\u00e9"),
    lambda c: c.set("large", b"x" * (1 << 21), noreply=False),
    lambda c: c.flush_all(noreply=False),
    lambda c: c.get("a"),
    lambda c: c.set("again", b"1", noreply=False),
    lambda c: c.close(),
    lambda c: c.get("again"),
]
ON_ONE = [
    lambda c: c["a"],
    lambda c: c.__setitem__("a", b"b"),
    lambda c: c["a"],
    lambda c: c.__delitem__("a"),
    lambda c: c.get("a"),
    lambda c: c.version(),
    lambda c: c.stats()[b"pid"],
    lambda c: type(c.stats("settings")[b"maxconns"]),
    lambda c: c.quit(),
]


def outcome(call, client):
    try:
        return call(client), []
    except Exception as error:
        return None, [kind.__name__ for kind in type(error).__mro__]


def compare(calls, theirs, ours):
    expected = [outcome(call, theirs) for call in calls]
    theirs.flush_all(noreply=False)
    for number, (call, (value, kinds)) in enumerate(zip(calls, expected, strict=True)):
        found, ours_kinds = outcome(call, ours)
        # An exception may be of a class below theirs.
        assert found == value and kinds[:1] == [kind for kind in ours_kinds if kind in kinds][:1], f"call {number}"


def pair(server):
    host, port = server.rsplit(":", 1)
    return host, int(port)


def test_all_calls_do_as_pymemcache_does(server):
    compare(CALLS + ON_ONE, pymemcache.Client(server), larder.Client(server))


def test_all_calls_behind_shared_memory_do_too(server, l1):
    compare(CALLS + ON_ONE, pymemcache.Client(server), larder.Tiered(l1, larder.Client(server), fresh=600))


def test_all_calls_with_a_prefix_do_too(server):
    options = {"key_prefix": b"shop:", "allow_unicode_keys": True, "encoding": "utf-8", "default_noreply": False}
    compare(CALLS + ON_ONE, pymemcache.Client(server, **options), larder.Client(server, **options))
    assert larder.Client(server).get("shop:again") == b"1"


def test_a_list_of_servers_does_as_hash_client_does(server):
    class Flushing(HashClient):
        def flush_all(self, *args, **kwargs):
            super().flush_all(*args, **kwargs)
            return True

    compare(CALLS, Flushing([pair(server)]), larder.Client([server]))


def test_exceptions_have_the_names_and_parents_of_pymemcache():
    for name in dir(pymemcache.exceptions):
        theirs = getattr(pymemcache.exceptions, name)
        if isinstance(theirs, type):
            parents = [parent.__name__ for parent in getattr(larder.exceptions, name).__mro__]
            assert [parent.__name__ for parent in theirs.__mro__ if parent.__name__ in parents] == [
                parent.__name__ for parent in theirs.__mro__
            ]


def test_servers_are_named_in_every_way(server):
    larder.Client(server).set("k", b"v", noreply=False)
    for given in (server, pair(server), [server], [pair(server)]):
        with larder.Client(given) as client:
            assert client.get("k") == b"v"
            assert client.servers == [server]
    for bad in ("", "host:port", ("host", "port"), [], 7):
        with pytest.raises((ValueError, TypeError, larder.MemcacheError)):
            larder.Client(bad)


def test_a_serde_is_called_as_pymemcache_calls_it(server):
    class Reversing:
        def serialize(self, key, value):
            return value[::-1], 7

        def deserialize(self, key, value, flags):
            return key, value[::-1], flags

    client = larder.Client(server, serde=Reversing(), default_noreply=False)
    client.set("k", b"abc")
    assert pymemcache.Client(server).get("k") == b"cba"
    assert client.get("k") == ("k", b"abc", 7)
    client.set("k", b"abc", flags=9)
    assert client.get_many(["k"]) == {"k": ("k", b"abc", 9)}
    assert client.gets("k")[0] == ("k", b"abc", 9)


def test_values_pass_between_this_and_pymemcache_pickled(server):
    theirs = pymemcache.Client(server, serde=pymemcache.serde.pickle_serde, default_noreply=False)
    ours = larder.Client(server, serde=larder.serde.pickle, default_noreply=False)
    for value in (b"\x00\xff", "text \u00e9", 7, {"a": [1, (2,)]}, None, 1.5, True):
        theirs.set("theirs", value)
        ours.set("ours", value)
        assert (ours.get("theirs"), theirs.get("ours")) == (value, value)


def test_serializers_read_what_they_write_and_nothing_else(server):
    plain = (b"\x00\xff", b"", "text \u00e9", "", 7, -7, 10**30)
    both = (None, True, 1.5, [1, "a", None], {"a": {"b": [1.5]}})
    for serde in (larder.serde.json, larder.serde.msgpack, larder.serde.pickle):
        client = larder.Client(server, serde=serde, default_noreply=False)
        for value in plain + both:
            client.set("k", value)
            found = client.get("k")
            assert found == value and type(found) is type(value)
        for other in (larder.serde.json, larder.serde.msgpack, larder.serde.pickle):
            if other is not serde:
                with pytest.raises(larder.exceptions.MemcacheClientError):
                    larder.Client(server, serde=other).get("k")
    with pytest.raises(TypeError):
        larder.Client(server, serde=larder.serde.json).set("k", object())
    with pytest.raises(ValueError, match="json"):
        larder.serde.named("yaml")


def test_counters_are_created_in_one_call(server):
    client = larder.Client(server)
    assert [client.incr("n", 1, initial=10, expire=100) for _ in range(3)] == [10, 11, 12]
    assert 98 <= client.ttl("n") <= 100
    client.set("n", b"1", noreply=False)
    assert (client.ttl("n"), client.ttl("missing")) == (-1, None)
    assert client.gat("n", 50) == b"1" and 48 <= client.ttl("n") <= 50


def test_keys_with_blanks_are_sent_too(server):
    client = larder.Client(server, allow_unicode_keys=True, default_noreply=False)
    for key in ("a b", b"\x00\n\x7f", "\u00e9", b"\xff"):
        client.set(key, b"v")
        assert client.get_many([key, "none"]) == {key: b"v"}


def test_values_of_all_sizes(server):
    for client in (larder.Client(server), larder.Client(server, default_noreply=False)):
        sizes = [0, 1, 100, 9_000, (1 << 20) - 500]
        for size in sizes:
            value = bytes(i * 31 % 256 for i in range(256)) * (size // 256 + 1)
            client.set(f"k{size}", value[:size], 0, False)
        found = client.get_many([f"k{size}" for size in sizes])
        assert [len(found[f"k{size}"]) for size in sizes] == sizes
        with pytest.raises(larder.exceptions.MemcacheServerError, match="too large"):
            client.set("k", b"x" * (2 << 20), noreply=False)
        assert client.get("k100") is not None


def test_keys_that_no_server_takes_are_refused(server):
    client = larder.Client(server, ignore_exc=True)
    for key in ("", b"", "k" * 251, " " * 187, "\u00e9"):
        for call in (client.get, client.delete, client.gets, client.ttl, lambda key: client.get_many([key])):
            with pytest.raises(larder.exceptions.MemcacheIllegalInputError):
                call(key)


def test_buffers_are_stored_as_bytes(server):
    client = larder.Client(server, default_noreply=False)
    for value in (bytearray(b"abc"), memoryview(b"xabcx")[1:4]):
        client.set("k", value)
        assert client.get("k") == b"abc"
