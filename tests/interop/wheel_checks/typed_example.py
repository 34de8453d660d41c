"""A program with types that mypy --strict and pyright accept; test_page.py runs it, too."""

import asyncio
import sys

import larder
import larder.aio
from larder import exceptions, serde


class Upper:
    """A serializer of one's own."""

    def serialize(self, key: object, value: str) -> tuple[bytes, int]:
        return value.upper().encode(), 0

    def deserialize(self, key: object, value: bytes, flags: int) -> str:
        return value.decode()


def remember(cache: larder.Client, key: str, seconds: int) -> bytes:
    found: bytes | None = cache.get(key)
    if found is None:
        cache.set(key, b"value", expire=seconds, noreply=False)
        return b"value"
    return found


def secured(authority: str) -> larder.Client:
    tls = larder.Tls(authority, server_name="cache.example")
    return larder.Client(["10.0.0.1:11211"], login=("shop", b"secret"), tls=tls, breakers=larder.L1.anonymous())


def limits(limiter: larder.Limiter) -> float:
    decision: larder.Decision = limiter.gcra("user:1", 10, 60.0)
    return 0.0 if decision else decision.retry_after or 60.0


async def use_asyncio(client: larder.Client) -> bytes:
    async with larder.aio.Client(client) as cache:
        await cache.set("async", b"value", noreply=False)
        made: bytes = await cache.get_or_create("async-made", lambda: b"value", 60)
        found: bytes = await cache.get("async")
        return found or made


def main(server: str, name: str) -> None:
    with larder.Client(server, serde=serde.json, timeout=1.0) as client:
        client.set_many({"a": {"b": 1}}, noreply=False)
        value, cas = client.gets("a")
        swapped: bool | None = client.cas("a", value, cas)
        count: int | None = client.incr("count", 1, initial=1)
        print(swapped, count, client.stats()[b"pid"], client.version(), client.servers)
    l1 = larder.L1(name, size=8 << 20)
    l1.set("k", b"v", expire=1.5)
    hit: bytes | None = l1.get("k")
    other: bytes | int = l1.get("other", 7)
    busiest: int = max(l1.stats_by_process(), key=lambda row: row["hits"])["pid"]
    assert busiest > 0
    tiered = larder.Tiered(l1, larder.Client([server, server], serde=Upper()), fresh=0.5).with_prefix("p:", fresh=9)
    made: str = tiered.get_or_create("made", lambda: "text", expire=60)
    print(tiered.using(fresh=0.1).get("k"))
    print(hit, other, made, tiered.l1.path, limits(larder.Limiter(tiered, denials=l1, denials_max=2.0)))
    print(remember(larder.Client((server.split(":")[0], int(server.split(":")[1]))), "k", 60))
    print(asyncio.run(use_asyncio(larder.Tiered(l1, larder.Client(server)))))
    try:
        larder.Client(server).get("k" * 300)
    except exceptions.MemcacheIllegalInputError as error:
        print(error)
    larder.L1.remove(name)


if __name__ == "__main__":
    main(*sys.argv[1:3])
