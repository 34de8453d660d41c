"""The client for asyncio: calls that may wait run in threads, and what shared memory has is returned at once."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from ._larder import Client as _Client
from ._larder import Tiered

__all__ = ["Client"]

T = TypeVar("T")
_NOTHING = object()


class Client:
    """The calls of a `larder.Client` or `larder.Tiered` as coroutines. `executor` runs those that ask a server; without
    one, the event loop's default does."""

    def __init__(self, client: _Client, executor: Executor | None = None) -> None:
        self.sync = client
        self._executor = executor
        self._peek: Callable[..., Any] | None = client.peek if isinstance(client, Tiered) else None

    def _run(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> Awaitable[T]:
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._executor, partial(call, *args, **kwargs))

    async def get(self, key: bytes | str, default: Any = None) -> Any:
        if self._peek is not None:
            found = self._peek(key, _NOTHING)
            if found is not _NOTHING:
                return found
        return await self._run(self.sync.get, key, default)

    async def gets(self, key: bytes | str, default: Any = None, cas_default: Any = None) -> tuple[Any, Any]:
        return await self._run(self.sync.gets, key, default, cas_default)

    async def gat(self, key: bytes | str, expire: int = 0, default: Any = None) -> Any:
        return await self._run(self.sync.gat, key, expire, default)

    async def get_many(self, keys: Iterable[Any]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        wanted = list(keys)
        if self._peek is not None:
            peeked = [(key, self._peek(key, _NOTHING)) for key in wanted]
            found.update((key, value) for key, value in peeked if value is not _NOTHING)
            wanted = [key for key, value in peeked if value is _NOTHING]
        if wanted:
            found.update(await self._run(self.sync.get_many, wanted))
        return found

    async def get_or_create(self, key: bytes | str, creator: Callable[[], Any], expire: int = 0) -> Any:
        """As `larder.Tiered.get_or_create`. The creator is a plain function, and runs in a thread."""
        if not isinstance(self.sync, Tiered):
            raise TypeError("get_or_create needs shared memory; give larder.aio.Client a larder.Tiered")
        if inspect.iscoroutinefunction(creator):
            raise TypeError("the creator is a coroutine function; give a plain one, which runs in a thread")
        found = self.sync.peek(key, _NOTHING)
        return found if found is not _NOTHING else await self._run(self.sync.get_or_create, key, creator, expire)

    async def gets_many(self, keys: Iterable[Any]) -> dict[Any, tuple[Any, Any]]:
        return await self._run(self.sync.gets_many, list(keys))

    async def set(self, key: bytes | str, value: Any, expire: int = 0, noreply: bool | None = None) -> bool:
        return await self._run(self.sync.set, key, value, expire, noreply)

    async def add(self, key: bytes | str, value: Any, expire: int = 0, noreply: bool | None = None) -> bool:
        return await self._run(self.sync.add, key, value, expire, noreply)

    async def replace(self, key: bytes | str, value: Any, expire: int = 0, noreply: bool | None = None) -> bool:
        return await self._run(self.sync.replace, key, value, expire, noreply)

    async def append(self, key: bytes | str, value: Any, noreply: bool | None = None) -> bool:
        return await self._run(self.sync.append, key, value, 0, noreply)

    async def prepend(self, key: bytes | str, value: Any, noreply: bool | None = None) -> bool:
        return await self._run(self.sync.prepend, key, value, 0, noreply)

    async def cas(self, key: bytes | str, value: Any, cas: bytes | str | int, expire: int = 0) -> bool | None:
        return await self._run(self.sync.cas, key, value, cas, expire)

    async def set_many(self, values: dict[Any, Any], expire: int = 0, noreply: bool | None = None) -> list[Any]:
        return await self._run(self.sync.set_many, values, expire, noreply)

    async def delete(self, key: bytes | str, noreply: bool | None = None) -> bool:
        return await self._run(self.sync.delete, key, noreply)

    async def delete_many(self, keys: Iterable[Any], noreply: bool | None = None) -> bool:
        return await self._run(self.sync.delete_many, list(keys), noreply)

    async def incr(self, key: bytes | str, value: int, *, initial: int | None = None, expire: int = 0) -> int | None:
        return await self._run(self.sync.incr, key, value, initial=initial, expire=expire)

    async def decr(self, key: bytes | str, value: int, *, initial: int | None = None, expire: int = 0) -> int | None:
        return await self._run(self.sync.decr, key, value, initial=initial, expire=expire)

    async def touch(self, key: bytes | str, expire: int = 0, noreply: bool | None = None) -> bool:
        return await self._run(self.sync.touch, key, expire, noreply)

    async def ttl(self, key: bytes | str) -> int | None:
        return await self._run(self.sync.ttl, key)

    async def flush_all(self, delay: int = 0) -> bool:
        return await self._run(self.sync.flush_all, delay)

    async def stats(self, *args: str, server: int = 0) -> dict[bytes, int | bytes]:
        return await self._run(self.sync.stats, *args, server=server)

    async def version(self, *, server: int = 0) -> bytes:
        return await self._run(self.sync.version, server=server)

    async def close(self) -> None:
        await self._run(self.sync.close)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
