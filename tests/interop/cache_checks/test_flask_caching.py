"""Flask-Caching's own tests of its back end for memcached, at the server that the environment variable LARDER_SERVER names."""

import os

import pytest
import test_backend_cache
from flask_caching import backends


class TestMemcachedCache(test_backend_cache.TestMemcachedCache):
    @pytest.fixture(scope="class", autouse=True)
    def requirements(self):
        """Theirs starts a memcached."""

    @pytest.fixture
    def make_cache(self):
        cache = backends.MemcachedCache([os.environ["LARDER_SERVER"]], key_prefix="test:")
        yield lambda: cache
        cache.clear()
