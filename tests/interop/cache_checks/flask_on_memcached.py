"""A plugin of pytest: Flask-Caching's tests of its decorators and views, written for a cache in the process, have their items
on the server that the environment variable LARDER_SERVER names."""

import os

import pytest
from flask_caching import backends

SERVER = os.environ["LARDER_SERVER"]


def memcached(app, config, args, kwargs):
    config["CACHE_MEMCACHED_SERVERS"] = [SERVER]
    return backends.memcached(app, config, args, kwargs)


backends.simple = memcached


@pytest.fixture(autouse=True)
def _no_items():
    backends.MemcachedCache([SERVER]).clear()
