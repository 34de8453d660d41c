"""A client for Larder and memcached, with a cache in shared memory for all processes of a host.

>>> import larder
>>> cache = larder.Tiered("shop", larder.Client("127.0.0.1:11211"))
>>> cache.set("page:1", b"<html>", expire=300)
>>> cache.get("page:1")  # from shared memory: no server is asked
"""

from . import exceptions, serde
from ._larder import L1, Client, Decision, Limiter, Tiered, Tls
from .exceptions import MemcacheError

__all__ = ["L1", "Client", "Decision", "Limiter", "MemcacheError", "Tiered", "Tls", "exceptions", "serde"]
