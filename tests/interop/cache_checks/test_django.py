"""Django's own tests of its back end for memcached and of the sessions that are kept in it."""

import django
from django.conf import settings
from django.test.utils import setup_databases, setup_test_environment

django.setup()
setup_test_environment()
# They are in memory, and end with the process.
setup_databases(verbosity=0, interactive=False)

from cache import tests as cache_tests  # noqa: E402
from sessions_tests import tests as session_tests  # noqa: E402

NAME = settings.CACHES["default"]["BACKEND"].rpartition(".")[2]
BackEnd = getattr(cache_tests, f"{NAME}Tests")
CacheSession, CacheDBSession = session_tests.CacheSessionTests, session_tests.CacheDBSessionTests
