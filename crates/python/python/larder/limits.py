"""A storage for the `limits` library, so for Flask-Limiter and slowapi: `larder://host:port,host:port` or
`larder:///path/of/a/socket`, after `import larder.limits`; `async+larder://` for asyncio. `larder://user:password@host`
logs in, and `larders://` and `async+larders://` speak TLS with servers that this host trusts; the options `login` and
`tls` of `larder.Client` say more.

Every strategy is exact by its own rule, however many clients ask at once. A request takes two round trips, a denied one
of a moving or sliding window one. A moving window takes 16 bytes for each request that it remembers, and a server
stores 1 MiB at most unless it was told otherwise. The time is the clients'.
"""

import asyncio
import itertools
import math
import struct
import time
from array import array
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from limits import errors
from limits.aio.storage import MovingWindowSupport as AsyncMovingWindowSupport
from limits.aio.storage import SlidingWindowCounterSupport as AsyncSlidingWindowCounterSupport
from limits.aio.storage import Storage as AsyncStorage
from limits.storage import MovingWindowSupport, SlidingWindowCounterSupport, Storage
from limits.storage.base import TimestampedSlidingWindow

from ._larder import Client
from .exceptions import MemcacheBusyError, MemcacheError

__all__ = ["AsyncLarderStorage", "LarderStorage"]

# Compare-and-swaps lost in a row after which a thread gives up.
_TRIES_MAX = 1000
# The number of the period, its count and that of the period before.
_COUNTS = struct.Struct("<qqq")
# When a fixed window ends, and its count.
_WINDOW = struct.Struct("<dq")


def _client_of(uri: str, options: dict[str, Any]) -> Client:
    scheme, _, servers = uri.partition("://")
    if not servers.startswith("/") and "@" in servers:
        login, _, servers = servers.rpartition("@")
        user, _, password = login.partition(":")
        options = {"login": (unquote(user), unquote(password)), **options}
    if not servers:
        raise errors.ConfigurationError("the address names no server; write larder://host:port")
    if scheme.endswith("larders"):
        options = {"tls": True, **options}
    return Client(servers if servers.startswith("/") else servers.split(","), allow_unicode_keys=True, **options)


class _Counts:
    """The strategies on one client. Each keeps its state in one item, which is changed by compare-and-swap: the times
    of servers are whole seconds, too coarse for a limit per second."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def swap(self, key: str, lives_s: float, decide: Callable[[bytes, float], bytes | None]) -> bool:
        """Stores what `decide` makes of the state and the time. Returns false if it makes nothing of it."""
        # A server may drop an item up to a second early.
        expire = math.ceil(lives_s) + 1
        for _ in range(_TRIES_MAX):
            state, cas = self.client.gets(key)
            changed = decide(state or b"", time.time())
            if changed is None:
                return False
            if cas is None:
                stored: bool | None = self.client.add(key, changed, expire, noreply=False)
            else:
                stored = self.client.cas(key, changed, cas, expire)
            if stored:
                return True
        raise MemcacheBusyError(f"{key} changed {_TRIES_MAX} times between a read and its write")

    def incr(self, key: str, expiry: float, amount: int) -> int:
        count = 0

        def decide(state: bytes, now: float) -> bytes:
            nonlocal count
            end, before = _window_at(state, now)
            count = before + amount
            return _WINDOW.pack(end if before else now + expiry, count)

        self.swap(key, expiry, decide)
        return count

    def get(self, key: str) -> int:
        return _window_at(self.client.get(key, b""), time.time())[1]

    def get_expiry(self, key: str) -> float:
        return _window_at(self.client.get(key, b""), time.time())[0]

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int) -> bool:
        def decide(state: bytes, now: float) -> bytes | None:
            kept = _entries_since(state, now - expiry)
            if sum(count for _, count in kept) + amount > limit:
                return None
            return array("d", itertools.chain(*kept, (now, amount))).tobytes()

        return amount <= limit and self.swap(_moving(key), expiry, decide)

    def get_moving_window(self, key: str, expiry: int) -> tuple[float, int]:
        now = time.time()
        kept = _entries_since(self.client.get(_moving(key), b""), now - expiry)
        return (kept[0][0], int(sum(count for _, count in kept))) if kept else (now, 0)

    def acquire_sliding(self, key: str, limit: int, expiry: int, amount: int) -> bool:
        def decide(state: bytes, now: float) -> bytes | None:
            current, previous = _counts_at(state, now, expiry)
            weighted = previous * (expiry - now % expiry) / expiry + current
            if math.floor(weighted) + amount > limit:
                return None
            return _COUNTS.pack(int(now // expiry), current + amount, previous)

        return amount <= limit and self.swap(_sliding(key, expiry), 2 * expiry, decide)

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        now = time.time()
        current, previous = _counts_at(self.client.get(_sliding(key, expiry), b""), now, expiry)
        left_s = expiry - now % expiry
        return previous, left_s if previous else 0.0, current, left_s + expiry

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        self.client.delete(_sliding(key, expiry), noreply=False)

    def clear(self, key: str) -> None:
        self.client.delete_many([key, _moving(key)], noreply=False)

    def check(self) -> bool:
        try:
            self.client.get("limiter-check")
        except MemcacheError:
            return False
        return True


def _moving(key: str) -> str:
    return f"{key}/moving"


def _sliding(key: str, expiry: int) -> str:
    return f"{key}/sliding/{expiry}"


def _window_at(state: bytes, now: float) -> tuple[float, int]:
    """Returns the end of a fixed window and its count; none has ended."""
    if len(state) == _WINDOW.size:
        end, count = _WINDOW.unpack(state)
        if now < end:
            return end, count
    return now, 0


def _entries_since(state: bytes, since: float) -> list[tuple[float, float]]:
    """Returns the times and amounts of a moving window's entries after a time, the oldest first."""
    numbers = array("d", state)
    return [entry for entry in zip(numbers[::2], numbers[1::2], strict=True) if entry[0] > since]


def _counts_at(state: bytes, now: float, expiry: int) -> tuple[int, int]:
    """Returns the counts of the period at this time and of the one before it."""
    if len(state) != _COUNTS.size:
        return 0, 0
    period, current, previous = _COUNTS.unpack(state)
    return {0: (current, previous), 1: (0, current)}.get(int(now // expiry) - period, (0, 0))


class LarderStorage(Storage, MovingWindowSupport, SlidingWindowCounterSupport, TimestampedSlidingWindow):
    """Rate limits on Larder or memcached servers. Options are those of `larder.Client`."""

    STORAGE_SCHEME = ["larder", "larders"]

    def __init__(self, uri: str, wrap_exceptions: bool = False, **options: Any) -> None:
        super().__init__(uri, wrap_exceptions=wrap_exceptions)
        self._counts = _Counts(_client_of(uri, options))

    @property
    def base_exceptions(self) -> type[Exception] | tuple[type[Exception], ...]:
        return MemcacheError

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        return self._counts.incr(key, expiry, amount)

    def get(self, key: str) -> int:
        return self._counts.get(key)

    def get_expiry(self, key: str) -> float:
        return self._counts.get_expiry(key)

    def check(self) -> bool:
        return self._counts.check()

    def reset(self) -> int | None:
        raise NotImplementedError("a server does not know which of its items are limits")

    def clear(self, key: str) -> None:
        self._counts.clear(key)

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return self._counts.acquire_entry(key, limit, expiry, amount)

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        return self._counts.get_moving_window(key, expiry)

    def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return self._counts.acquire_sliding(key, limit, expiry, amount)

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        return self._counts.get_sliding_window(key, expiry)

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        self._counts.clear_sliding_window(key, expiry)


class AsyncLarderStorage(
    AsyncStorage, AsyncMovingWindowSupport, AsyncSlidingWindowCounterSupport, TimestampedSlidingWindow
):
    """As `LarderStorage`, for asyncio: each call runs in a thread."""

    STORAGE_SCHEME = ["async+larder", "async+larders"]

    def __init__(self, uri: str, wrap_exceptions: bool = False, **options: Any) -> None:
        super().__init__(uri, wrap_exceptions=wrap_exceptions)
        self._counts = _Counts(_client_of(uri, options))

    @property
    def base_exceptions(self) -> type[Exception] | tuple[type[Exception], ...]:
        return MemcacheError

    async def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        return await asyncio.to_thread(self._counts.incr, key, expiry, amount)

    async def get(self, key: str) -> int:
        return await asyncio.to_thread(self._counts.get, key)

    async def get_expiry(self, key: str) -> float:
        return await asyncio.to_thread(self._counts.get_expiry, key)

    async def check(self) -> bool:
        return await asyncio.to_thread(self._counts.check)

    async def reset(self) -> int | None:
        raise NotImplementedError("a server does not know which of its items are limits")

    async def clear(self, key: str) -> None:
        await asyncio.to_thread(self._counts.clear, key)

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return await asyncio.to_thread(self._counts.acquire_entry, key, limit, expiry, amount)

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        return await asyncio.to_thread(self._counts.get_moving_window, key, expiry)

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return await asyncio.to_thread(self._counts.acquire_sliding, key, limit, expiry, amount)

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        return await asyncio.to_thread(self._counts.get_sliding_window, key, expiry)

    async def clear_sliding_window(self, key: str, expiry: int) -> None:
        await asyncio.to_thread(self._counts.clear_sliding_window, key, expiry)
