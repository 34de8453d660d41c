"""Settings for Django's own tests of its back ends for memcached, on the server that the environment variable LARDER_SERVER
names; `default` is the one that DJANGO_BACK_END names."""

import os

BACK_ENDS = ("PyMemcacheCache", "PyLibMCCache")


def cache(name):
    return {"BACKEND": f"django.core.cache.backends.memcached.{name}", "LOCATION": os.environ["LARDER_SERVER"]}


CACHES = {"default": cache(os.environ["DJANGO_BACK_END"])}
DATABASES = {name: {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"} for name in ("default", "other")}
INSTALLED_APPS = ["cache", "django.contrib.sessions", "sessions_tests"]
ROOT_URLCONF = []
SECRET_KEY = "for tests only"
USE_TZ = False
