"""Serializers, to be chosen explicitly: `json`, `msgpack` and `pickle`. Without one, a client stores and returns bytes.

All of them store `bytes`, `str` and `int` as they are, with pymemcache's flags, so that counters work and other clients
can read them. They differ in everything else, and read nothing but what they write. Whoever can write to a server that
`pickle` reads from can run code in this process; so it is never the default.
"""

import json as _json
import pickle as _pickle
from typing import Any, Protocol

from .exceptions import MemcacheClientError

__all__ = [
    "FLAG_INTEGER",
    "FLAG_JSON",
    "FLAG_MSGPACK",
    "FLAG_PICKLE",
    "FLAG_TEXT",
    "Serde",
    "json",
    "msgpack",
    "named",
    "pickle",
]

FLAG_PICKLE = 1 << 0
FLAG_INTEGER = 1 << 1
FLAG_TEXT = 1 << 4
FLAG_JSON = 1 << 8
FLAG_MSGPACK = 1 << 9


class Serde(Protocol):
    """What a client's `serde` has: pymemcache's interface."""

    def serialize(self, key: Any, value: Any) -> tuple[Any, int]:
        """Returns what to store, `bytes` or `str`, and the flags to store with it."""
        ...

    def deserialize(self, key: Any, value: bytes, flags: int) -> Any:
        """Returns the object that was stored."""
        ...


class _Plain:
    """What the serializers have in common."""

    flag: int

    def dumps(self, value: Any) -> bytes:
        raise NotImplementedError

    def loads(self, data: bytes) -> Any:
        raise NotImplementedError

    def serialize(self, key: Any, value: Any) -> tuple[Any, int]:
        kind = type(value)
        if kind is bytes:
            return value, 0
        if kind is str:
            return value.encode(), FLAG_TEXT
        if kind is int:
            return b"%d" % value, FLAG_INTEGER
        return self.dumps(value), self.flag

    def deserialize(self, key: Any, value: bytes, flags: int) -> Any:
        if flags == 0:
            return value
        if flags == FLAG_TEXT:
            return value.decode()
        if flags == FLAG_INTEGER:
            return int(value)
        if flags == self.flag:
            return self.loads(value)
        name = type(self).__name__.strip("_").lower()
        raise MemcacheClientError(f"the value of {key!r} was stored with the flags {flags}, which {name} does not read")


class _Json(_Plain):
    flag = FLAG_JSON

    def dumps(self, value: Any) -> bytes:
        return _json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    def loads(self, data: bytes) -> Any:
        return _json.loads(data)


class _Msgpack(_Plain):
    flag = FLAG_MSGPACK

    def dumps(self, value: Any) -> bytes:
        import msgpack  # noqa: PLC0415

        packed: Any = msgpack.packb(value)
        return bytes(packed)

    def loads(self, data: bytes) -> Any:
        import msgpack  # noqa: PLC0415

        return msgpack.unpackb(data)


class _Pickle(_Plain):
    flag = FLAG_PICKLE

    def dumps(self, value: Any) -> bytes:
        return _pickle.dumps(value, _pickle.HIGHEST_PROTOCOL)

    def loads(self, data: bytes) -> Any:
        return _pickle.loads(data)


json = _Json()
msgpack = _Msgpack()
pickle = _Pickle()

_NAMED: dict[str, Serde] = {"json": json, "msgpack": msgpack, "pickle": pickle}


def named(serde: "str | Serde | None") -> "Serde | None":
    """Returns the serializer with this name; an object or `None` as it is.

    Raises `ValueError` for an unknown name.
    """
    if not isinstance(serde, str):
        return serde
    if serde not in _NAMED:
        raise ValueError(f"there is no serializer {serde!r}; give one of {', '.join(_NAMED)}, or an object")
    return _NAMED[serde]
