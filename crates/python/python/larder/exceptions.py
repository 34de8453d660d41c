"""What calls raise: pymemcache's names with pymemcache's parents, and what it leaves to the socket module."""

__all__ = [
    "MemcacheBusyError",
    "MemcacheClientError",
    "MemcacheConnectError",
    "MemcacheDownError",
    "MemcacheError",
    "MemcacheIllegalInputError",
    "MemcacheLoginError",
    "MemcacheServerError",
    "MemcacheTimeoutError",
    "MemcacheTlsError",
    "MemcacheUnexpectedCloseError",
    "MemcacheUnknownCommandError",
    "MemcacheUnknownError",
]


class MemcacheError(Exception):
    """Every error of a client."""


class MemcacheClientError(MemcacheError):
    """The server could not use the request, such as `incr` of a value that is no number."""


class MemcacheUnknownCommandError(MemcacheClientError):
    """The server does not know the command."""


class MemcacheIllegalInputError(MemcacheClientError):
    """A key or value that no server can take; nothing was sent."""


class MemcacheLoginError(MemcacheClientError):
    """The server refused the user or the password."""


class MemcacheServerError(MemcacheError):
    """The server failed, or could not be reached."""


class MemcacheUnknownError(MemcacheError):
    """The server sent what no memcached sends."""


class MemcacheUnexpectedCloseError(MemcacheServerError, ConnectionError):
    """The connection broke. Whether the request took effect is unknown."""


class MemcacheConnectError(MemcacheServerError, ConnectionError):
    """No connection could be made."""


class MemcacheTlsError(MemcacheConnectError):
    """One side refuses the other's certificate, or does not speak TLS; nothing was sent."""


class MemcacheDownError(MemcacheConnectError):
    """The server failed several times in a row and is left alone for a while."""


class MemcacheTimeoutError(MemcacheServerError, TimeoutError):
    """The server took longer than `timeout`, or a connection longer than `connect_timeout`."""


class MemcacheBusyError(MemcacheServerError):
    """All connections are in use, or other clients changed an item each time between its read and its write."""
