"""cachelib's own tests of its back end for memcached, at the server that the environment variable LARDER_SERVER names."""

import os

import pytest
from cachelib import MemcachedCache
from test_memcached_cache import TestMemcachedCache as Published


class TestMemcachedCache(Published):
    @pytest.fixture(autouse=True)
    def memcached_server(self):
        """Theirs starts a memcached."""

    def cache_factory(self):
        cache = MemcachedCache([os.environ["LARDER_SERVER"]])
        cache.clear()
        return cache
