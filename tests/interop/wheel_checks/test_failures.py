"""Servers that are down, hang or take large values; limits; asyncio."""

import asyncio
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import larder
import larder.aio
import larder.exceptions as exceptions
import pytest


@pytest.fixture
def nowhere():
    """An address where nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()


@pytest.fixture
def hanging():
    """A server that accepts and never replies."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()


def calls_of(client):
    return {
        "get": lambda: client.get("k", "default"),
        "get_many": lambda: client.get_many(["k"]),
        "gets": lambda: client.gets("k"),
        "set": lambda: client.set("k", b"v", noreply=False),
        "add": lambda: client.add("k", b"v", noreply=False),
        "cas": lambda: client.cas("k", b"v", 1),
        "set_many": lambda: client.set_many({"k": b"v"}, noreply=False),
        "delete": lambda: client.delete("k", noreply=False),
        "incr": lambda: client.incr("k", 1),
        "touch": lambda: client.touch("k", noreply=False),
    }


IGNORED = {
    "get": "default", "get_many": {}, "gets": (None, None), "set": False, "add": False, "cas": False, "set_many": ["k"],
    "delete": False, "incr": None, "touch": False,
}


def test_a_server_that_is_down_raises_or_is_ignored(nowhere):
    for name, call in calls_of(larder.Client(nowhere)).items():
        if name == "set_many":
            assert call() == ["k"]
        else:
            with pytest.raises(exceptions.MemcacheConnectError):
                call()
    calls = calls_of(larder.Client(nowhere, ignore_exc=True))
    assert {name: call() for name, call in calls.items()} == IGNORED
    with pytest.raises(exceptions.MemcacheIllegalInputError):
        larder.Client(nowhere, ignore_exc=True).get("k" * 251)


def test_network_errors_are_what_the_socket_module_raises_too(nowhere, hanging):
    with pytest.raises(ConnectionError):
        larder.Client(nowhere).get("k")
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        larder.Client(hanging, timeout=0.1).get("k")
    assert time.monotonic() - began < 5


def test_a_server_that_failed_often_is_left_alone(hanging):
    client = larder.Client(hanging, timeout=0.05)
    for _ in range(5):
        with pytest.raises(exceptions.MemcacheTimeoutError):
            client.get("k")
    with pytest.raises(exceptions.MemcacheDownError):
        client.get("k")


def test_other_threads_run_while_a_call_waits(hanging):
    client = larder.Client(hanging, timeout=0.5)
    thread = threading.Thread(target=_swallow, args=(client,))
    began = time.monotonic()
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
        time.sleep(0.001)
    assert turns > 20 and time.monotonic() - began > 0.4


def _swallow(client):
    try:
        client.get("k")
    except TimeoutError:
        pass


def test_stale_values_are_used_while_the_server_is_down(server, l1, nowhere):
    larder.Tiered(l1, larder.Client(server), fresh=0.1, stale=60).set("k", b"v")
    down = larder.Tiered(l1, larder.Client(nowhere), fresh=0.1, stale=60)
    time.sleep(0.2)
    assert down.get("k") == b"v"
    assert down.get_many(["k"]) == {"k": b"v"}
    assert down.get_or_create("k", lambda: b"new") == b"v"
    with pytest.raises(exceptions.MemcacheServerError):
        down.get("other")
    assert down.get_or_create("other", lambda: b"new") == b"new"
    quiet = larder.Tiered(l1, larder.Client(nowhere, ignore_exc=True), fresh=0.1)
    assert quiet.get("other", "default") == "default"


def test_values_of_32_mib_pass_where_the_server_takes_them():
    client = larder.Client(os.environ["LARDER_LARGE_SERVER"], timeout=20, default_noreply=False)
    value = os.urandom(1 << 20) * 32
    assert client.set("k", value)
    assert client.get("k") == value


def test_a_limit_passes_what_it_allows(server, nowhere):
    limiter = larder.Limiter(larder.Client(server))
    for check in (limiter.gcra, limiter.sliding_window, limiter.fixed_window):
        decisions = [check(f"user:{check.__name__}", 5, 3600) for _ in range(8)]
        assert [bool(decision) for decision in decisions] == [True] * 5 + [False] * 3
        assert decisions[0].remaining == 4 and decisions[0].retry_after == 0 and decisions[0].failure is None
        assert 0 < decisions[-1].retry_after <= 7200
    assert limiter.gcra("k", 5, 60, cost=6).retry_after is None
    for on_failure, allowed in (("open", 8), ("closed", 0), ("local", 5)):
        down = larder.Limiter(larder.Client(nowhere), on_failure)
        decisions = [down.gcra("k", 5, 3600) for _ in range(8)]
        assert sum(map(bool, decisions)) == allowed
        assert "127.0.0.1" in decisions[0].failure
    with pytest.raises(ValueError, match="local"):
        larder.Limiter(larder.Client(nowhere), "maybe")


def test_a_limit_of_none_lets_nothing_pass(server):
    limiter = larder.Limiter(larder.Client(server))
    for check in (limiter.gcra, limiter.sliding_window, limiter.fixed_window):
        assert not check(f"none:{check.__name__}", 0, 60.0)


def test_a_denied_cost_asks_no_server_before_it_could_pass(server, l1):
    client = larder.Client(server)
    for check in ("gcra", "sliding_window", "fixed_window"):
        deny = getattr(larder.Limiter(client, denials=l1), check)
        assert deny("denied", 1, 3600.0)
        assert not deny("denied", 1, 3600.0)
        client.delete("denied", noreply=False)
        decision = deny("denied", 1, 3600.0)
        assert not decision and 0 < decision.retry_after <= 7200, "shared memory knows it"
        anew = getattr(larder.Limiter(client, denials=l1), check)
        assert not anew("denied", 1, 3600.0), "other processes, too"
        assert getattr(larder.Limiter(client), check)("denied", 1, 3600.0), "the server has forgotten it"
        brief = getattr(larder.Limiter(client, denials=l1, denials_max=0.1), check)
        assert brief("brief", 1, 3600.0) and not brief("brief", 1, 3600.0)
        client.delete("brief", noreply=False)
        time.sleep(0.2)
        assert brief("brief", 1, 3600.0), "it is kept for no longer than was said"
        client.delete_many(["denied", "brief"], noreply=False)
        l1.clear()


def test_limits_hold_for_threads_of_one_key(server):
    import larder.limits

    storage = larder.limits.LarderStorage(f"larder://{server}")
    passed = []

    def work(acquire, key):
        passed.extend(acquire(key, 50, 3600) for _ in range(20))

    for acquire in (storage.acquire_entry, storage.acquire_sliding_window_entry):
        passed.clear()
        threads = [threading.Thread(target=work, args=(acquire, f"k{acquire.__name__}")) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (sum(passed), len(passed)) == (50, 160)


def test_asyncio_has_every_call(server, l1):
    async def use(client):
        assert await client.set("k", b"v", noreply=False)
        assert await client.get("k") == b"v"
        assert await client.get("none", 7) == 7
        assert await client.get_many(["k", "none"]) == {"k": b"v"}
        assert await client.gets_many(["none"]) == {}
        value, cas = await client.gets("k")
        assert await client.cas("k", value + b"!", cas)
        assert await client.append("k", b"!", noreply=False) and await client.prepend("k", b"!", noreply=False)
        assert await client.gat("k", 50) == b"!v!!" and await client.touch("k", 60, noreply=False)
        assert 58 <= await client.ttl("k") <= 60
        assert await client.add("a", b"1", noreply=False) and await client.replace("a", b"2", noreply=False)
        assert (await client.incr("a", 5), await client.decr("a", 1)) == (7, 6)
        assert await client.set_many({"m": b"1"}, noreply=False) == []
        assert await client.delete("m", noreply=False) and await client.delete_many(["a"], noreply=False)
        assert (await client.version()).startswith(b"1.6") and (await client.stats())[b"pid"] > 0
        assert await client.flush_all()

    async def main():
        async with larder.aio.Client(larder.Client(server)) as client:
            await use(client)
        tiered = larder.Tiered(l1, larder.Client(server), fresh=600)
        await use(larder.aio.Client(tiered))

    asyncio.run(main())


def test_a_coroutine_creates_a_value_once(server, l1):
    made = []

    def create():
        made.append(1)
        time.sleep(0.1)
        return b"made"

    async def main():
        client = larder.aio.Client(larder.Tiered(l1, larder.Client(server)))
        assert set(await asyncio.gather(*(client.get_or_create("k", create, 60) for _ in range(20)))) == {b"made"}
        assert len(made) == 1
        with pytest.raises(TypeError, match="coroutine function"):
            await client.get_or_create("k", main)
        with pytest.raises(TypeError, match="larder.Tiered"):
            await larder.aio.Client(larder.Client(server)).get_or_create("k", create)

    asyncio.run(main())


def test_asyncio_is_answered_by_shared_memory_while_the_server_hangs(server, l1, hanging):
    larder.Tiered(l1, larder.Client(server), fresh=600).set("k", b"v")

    async def main():
        tiered = larder.Tiered(l1, larder.Client(hanging, timeout=0.5), fresh=600)
        # The only thread is the one that waits.
        client = larder.aio.Client(tiered, ThreadPoolExecutor(1))
        waiting = asyncio.create_task(client.get("other"))
        await asyncio.sleep(0)
        began = time.monotonic()
        assert await client.get("k") == b"v" and await client.get_many(["k"]) == {"k": b"v"}
        assert time.monotonic() - began < 0.4 and not waiting.done()
        with pytest.raises(TimeoutError):
            await waiting

    asyncio.run(main())
