"""A back end for dogpile.cache.

    region = make_region().configure(
        "larder", expiration_time=60, arguments={"url": "127.0.0.1:11211", "shared_memory": "shop"}
    )

`arguments`:

- `url`: a server, or a list of them.
- `shared_memory`: the name of the cache in shared memory in front of them; none by default.
- `fresh`, `stale`, `negative`, `wait`, `early_percent`, `push`, `exact_within`: as in `larder.Tiered`; they need
  `shared_memory`.
- `expire`: how many seconds servers keep a value, 0 (the default) for ever. Longer than the region's own expiration.
- `distributed_lock`: whether one of all hosts creates a value; false by default: one thread of this process does.
- `lock_timeout`: after so many seconds another may take the lock of one that does not give it back; 30 by default, 0
  for never.
- `client`: more of what `larder.Client` takes, as a dictionary, such as `login` and `tls`.

Values are stored as JSON, unless the region is given a `serializer` and a `deserializer`, such as pickle's.
"""

import contextlib
import json
import random
import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any

from dogpile.cache import register_backend
from dogpile.cache.api import NO_VALUE, BytesBackend, CacheMutex

from ._larder import Client, Tiered
from .exceptions import MemcacheServerError

__all__ = ["LarderBackend", "LarderLock"]

_PAUSE_MIN_S, _PAUSE_MAX_S = 0.005, 0.1
_TIERED = ("fresh", "stale", "negative", "wait", "early_percent", "push", "exact_within")


class LarderLock(CacheMutex):
    """A lock that all clients of a server share: an item with the owner's token. It ends after `timeout` seconds. While
    the server fails, anyone has it if `ignore_exc` is true."""

    def __init__(self, client: Client, key: str, timeout: int, ignore_exc: bool = False) -> None:
        self._client = client
        self._ignored = (MemcacheServerError,) if ignore_exc else ()
        self._key = f"{key}:lock"
        self._timeout = timeout
        self._token = b""

    def acquire(self, wait: bool = True) -> bool:
        try:
            return self._acquire(wait)
        except self._ignored:
            return True

    def _acquire(self, wait: bool) -> bool:
        token = secrets.token_bytes(16)
        pause = _PAUSE_MIN_S
        while not self._client.add(self._key, token, self._timeout, noreply=False):
            if not wait:
                return False
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, _PAUSE_MAX_S)
        self._token = token
        return True

    def release(self) -> None:
        with contextlib.suppress(*self._ignored):
            found, cas = self._client.gets(self._key)
            # After the timeout it may be another's. One that changes between the two requests is left alone, too.
            if found == self._token and cas is not None:
                self._client.cas(self._key, b"", cas, expire=-1)

    def locked(self) -> bool:
        with contextlib.suppress(*self._ignored):
            return self._client.get(self._key) is not None
        return False


def _dumps(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


class LarderBackend(BytesBackend):
    """Regions on Larder or memcached servers, with shared memory in front of them where it is asked for."""

    serializer = staticmethod(_dumps)
    deserializer = staticmethod(json.loads)

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        url = arguments["url"]
        name = arguments.get("shared_memory")
        options = {"breakers": name, **arguments.get("client", {})}
        servers = url if isinstance(url, str) else list(url)
        self._client = Client(servers, **options)
        self._ignore_exc: bool = options.get("ignore_exc", False)
        # A lock has to know whether it was refused or the server failed.
        self._lock_client = Client(servers, **{**options, "ignore_exc": False})
        tiered = {word: arguments[word] for word in _TIERED if word in arguments}
        if name is None and tiered:
            raise ValueError(f"{', '.join(tiered)}: these need shared memory; give `shared_memory` a name")
        self._cache = self._client if name is None else Tiered(name, self._client, **tiered)
        self._expire: int = arguments.get("expire", 0)
        self._is_distributed: bool = arguments.get("distributed_lock", False)
        self._lock_timeout: int = arguments.get("lock_timeout", 30)

    def has_lock_timeout(self) -> bool:
        return self._is_distributed and self._lock_timeout != 0

    def get_mutex(self, key: str) -> CacheMutex | None:
        if not self._is_distributed:
            return None
        return LarderLock(self._lock_client, key, self._lock_timeout, self._ignore_exc)

    def get_serialized(self, key: str) -> Any:
        return self._cache.get(key, NO_VALUE)

    def get_serialized_multi(self, keys: Iterable[str]) -> list[Any]:
        wanted = list(keys)
        found = self._cache.get_many(wanted)
        return [found.get(key, NO_VALUE) for key in wanted]

    def set_serialized(self, key: str, value: bytes) -> None:
        self._cache.set(key, value, self._expire, noreply=False)

    def set_serialized_multi(self, mapping: Mapping[str, bytes]) -> None:
        self._cache.set_many(dict(mapping), self._expire, noreply=False)

    def delete(self, key: str) -> None:
        self._cache.delete(key, noreply=False)

    def delete_multi(self, keys: Iterable[str]) -> None:
        self._cache.delete_many(keys, noreply=False)


register_backend("larder", __name__, "LarderBackend")  # type: ignore[no-untyped-call]
