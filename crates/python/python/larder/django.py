"""A cache back end for Django.

    CACHES = {
        "default": {
            "BACKEND": "larder.django.LarderCache",
            "LOCATION": "127.0.0.1:11211",
            "OPTIONS": {"serde": "pickle"},
        }
    }

`OPTIONS`, all of them optional:

- `serde`: "json" (the default), "pickle", "msgpack", or an object as `larder.serde` describes. Django's own page and
  fragment caches store objects that only pickle can.
- `shared_memory`: the name of the cache in shared memory, "django" by default; `None` for none.
- `shared_memory_size`: its size in bytes when it is made, 64 MiB by default.
- `fresh`, `stale`, `negative`, `wait`, `lease`, `early_percent`, `push`, `exact_within`: as in `larder.Tiered`.
- `ignore_exc`: true by default: while a server fails, reads miss and writes do nothing.
- Everything else that `larder.Client` takes: `timeout`, `login`, `tls`, `placement` and so on. With shared memory,
  `breakers` is that, so that all workers know when a server is down.
"""

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

from asgiref.sync import sync_to_async
from django.core.cache.backends.base import (
    DEFAULT_TIMEOUT,
    BaseCache,
    InvalidCacheKey,
    memcache_key_warnings,
)

from . import serde
from ._larder import L1, Client, Tiered
from .exceptions import MemcacheClientError, MemcacheIllegalInputError, MemcacheServerError

__all__ = ["LarderCache"]

_MISSING = object()
# Seconds beyond this are the time of expiry itself (memcached's rule).
_RELATIVE_MAX_S = 30 * 24 * 60 * 60
_TIERED = ("fresh", "stale", "negative", "wait", "lease", "early_percent", "push", "exact_within")
# The clients of this process, by what they are made of: Django makes a back end for each thread.
_clients: dict[str, Client] = {}


def _make_client(servers: list[str], options: dict[str, Any]) -> Client:
    name = options.pop("shared_memory", "django")
    size = options.pop("shared_memory_size", 64 << 20)
    tiered = {word: options.pop(word) for word in _TIERED if word in options}
    own = serde.named(options.pop("serde", "json"))
    # Another cache of this name in front of other servers has shared memory of its own.
    l1 = None if name is None else L1(name, size=size, servers=Client(list(servers)).servers)
    defaults = {"ignore_exc": True, "allow_unicode_keys": True, "breakers": l1}
    client = Client(list(servers), own, **{**defaults, **options})
    return client if l1 is None else Tiered(l1, client, **tiered)


def _in_thread(call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a coroutine function that runs the call in a thread of the pool: the client may be used by all."""
    return sync_to_async(call, thread_sensitive=False)


class LarderCache(BaseCache):
    """A cache on Larder or memcached servers, with shared memory in front of them."""

    def __init__(self, server: str | Iterable[str], params: dict[str, Any]) -> None:
        super().__init__(params)
        options = dict(params.get("OPTIONS") or {})
        for word in ("MAX_ENTRIES", "CULL_FREQUENCY"):
            options.pop(word, None)
        servers = server.replace(";", ",").split(",") if isinstance(server, str) else list(server)
        self._servers = [name.strip() for name in servers]
        self._options = options

    @property
    def _cache(self) -> Client:
        key = repr((self._servers, sorted(self._options.items(), key=lambda option: option[0])))
        client = _clients.get(key)
        if client is None:
            client = _clients.setdefault(key, _make_client(self._servers, dict(self._options)))
        return client

    def validate_key(self, key: str) -> None:
        for warning in memcache_key_warnings(key):
            raise InvalidCacheKey(warning)

    def get_backend_timeout(self, timeout: Any = DEFAULT_TIMEOUT) -> int:
        """Returns the expiry as memcached has it: 0 for never, below 0 for at once."""
        if timeout is DEFAULT_TIMEOUT:
            timeout = self.default_timeout
        if timeout is None:
            return 0
        if timeout <= 0:
            return -1
        seconds: int = math.ceil(timeout)
        return seconds if seconds <= _RELATIVE_MAX_S else seconds + int(time.time())

    def _name(self, key: Any, version: int | None) -> str:
        return str(self.make_and_validate_key(key, version=version))

    def _keys(self, keys: Iterable[Any], version: int | None) -> dict[str, Any]:
        return {self._name(key, version): key for key in keys}

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        name = self._name(key, version)
        return self._cache.add(name, value, self.get_backend_timeout(timeout), noreply=False)

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        return self._cache.get(self._name(key, version), default)

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        name = self._name(key, version)
        try:
            stored = self._cache.set(name, value, self.get_backend_timeout(timeout), noreply=False)
        except (MemcacheServerError, MemcacheIllegalInputError):
            # A value that the server does not take must not leave an older one behind.
            self._cache.delete(name, noreply=False)
            raise
        if not stored:
            self._cache.delete(name, noreply=False)

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        name = self._name(key, version)
        return self._cache.touch(name, self.get_backend_timeout(timeout), noreply=False)

    def delete(self, key: Any, version: int | None = None) -> bool:
        return self._cache.delete(self._name(key, version), noreply=False)

    def get_many(self, keys: Iterable[Any], version: int | None = None) -> dict[Any, Any]:
        names = self._keys(keys, version)
        return {names[name]: value for name, value in self._cache.get_many(names).items()}

    def set_many(
        self, data: dict[Any, Any], timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> list[Any]:
        names = self._keys(data, version)
        values = {name: data[key] for name, key in names.items()}
        failed = self._cache.set_many(values, self.get_backend_timeout(timeout), noreply=False)
        return [names[name] for name in failed]

    def delete_many(self, keys: Iterable[Any], version: int | None = None) -> None:
        self._cache.delete_many(self._keys(keys, version), noreply=False)

    def get_or_set(
        self, key: Any, default: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> Any:
        """As Django's, but a callable runs once for all threads of all processes of all hosts."""
        cache = self._cache
        if not callable(default) or not isinstance(cache, Tiered):
            return super().get_or_set(key, default, timeout, version)
        name = self._name(key, version)
        found = cache.get(name, _MISSING)
        if found is not _MISSING:
            return found
        return cache.get_or_create(name, default, self.get_backend_timeout(timeout))

    def incr(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        name = self._name(key, version)
        try:
            change = self._cache.incr if delta >= 0 else self._cache.decr
            value = change(name, abs(delta))
        except MemcacheClientError as error:
            raise TypeError(f"the value of {key!r} is no number that can be counted with: {error}") from error
        if value is None:
            raise ValueError(f"Key {key!r} not found")
        return value

    def clear(self) -> None:
        self._cache.flush_all()

    async def aget(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        cache = self._cache
        if isinstance(cache, Tiered):
            found = cache.peek(self._name(key, version), _MISSING)
            if found is not _MISSING:
                return found
        return await _in_thread(self.get)(key, default, version)

    async def aadd(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return bool(await _in_thread(self.add)(key, value, timeout, version))

    async def aset(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        await _in_thread(self.set)(key, value, timeout, version)

    async def atouch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return bool(await _in_thread(self.touch)(key, timeout, version))

    async def adelete(self, key: Any, version: int | None = None) -> bool:
        return bool(await _in_thread(self.delete)(key, version))

    async def aget_many(self, keys: Iterable[Any], version: int | None = None) -> Any:
        return await _in_thread(self.get_many)(keys, version)

    async def aset_many(
        self, data: dict[Any, Any], timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> Any:
        return await _in_thread(self.set_many)(data, timeout, version)

    async def adelete_many(self, keys: Iterable[Any], version: int | None = None) -> None:
        await _in_thread(self.delete_many)(keys, version)

    async def aget_or_set(
        self, key: Any, default: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> Any:
        return await _in_thread(self.get_or_set)(key, default, timeout, version)

    async def aincr(self, key: Any, delta: int = 1, version: int | None = None) -> Any:
        return await _in_thread(self.incr)(key, delta, version)

    async def aclear(self) -> None:
        await _in_thread(self.clear)()
