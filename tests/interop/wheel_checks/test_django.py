"""Django's own cache tests, from its source distribution, against larder.django; and its asyncio methods."""

import asyncio

import django
from django.conf import settings
from django.test.utils import setup_databases, setup_test_environment

django.setup()
setup_test_environment()
# They are in memory, and end with the process.
setup_databases(verbosity=0, interactive=False)

from cache import tests  # noqa: E402
from django.core.cache import cache  # noqa: E402
from django.test import TestCase, override_settings  # noqa: E402

BASE = settings.CACHES["default"]
CACHES = tests.caches_setting_for_tests(base=BASE, exclude=tests.memcached_excluded_caches)


@override_settings(CACHES=CACHES)
class LarderCacheTests(tests.BaseMemcachedTests, TestCase):
    base_params = BASE
    incr_decr_type_error = TypeError
    # These two replace methods of another client's. This one keeps its connections when a request ends.
    test_close = tests.BaseCacheTests.test_close
    test_set_many_returns_failing_keys = None


@override_settings(CACHES=CACHES)
class AsyncTests(TestCase):
    def test_each_method_has_its_coroutine(self):
        async def use():
            await cache.aclear()
            self.assertIsNone(await cache.aget("k"))
            await cache.aset("k", 1)
            self.assertEqual([await cache.aget("k"), await cache.aget("none", 7)], [1, 7])
            self.assertFalse(await cache.aadd("k", 2))
            self.assertEqual([await cache.aincr("k"), await cache.adecr("k", 2)], [2, 0])
            self.assertTrue(await cache.atouch("k", 100))
            self.assertTrue(await cache.ahas_key("k"))
            self.assertEqual(await cache.aset_many({"a": 1, "b": {2}}), [])
            self.assertEqual(await cache.aget_many(["a", "b", "none"]), {"a": 1, "b": {2}})
            await cache.adelete_many(["a", "b"])
            self.assertTrue(await cache.adelete("k"))
            self.assertEqual(await cache.aget_or_set("k", lambda: "made", 60), "made")
            self.assertEqual(await cache.aincr_version("k"), 2)
            self.assertEqual(await cache.aget("k", version=2), "made")
            await cache.aclose()

        asyncio.run(use())

    def test_a_callable_runs_once_for_many_threads(self):
        if BASE["OPTIONS"]["shared_memory"] is None:
            self.skipTest("without shared memory it runs in each")
        import threading
        import time

        calls, found = [], []

        def create():
            calls.append(1)
            time.sleep(0.2)
            return {"a": 1}

        cache.delete("once")
        threads = [threading.Thread(target=lambda: found.append(cache.get_or_set("once", create))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((found, len(calls)), ([{"a": 1}] * 8, 1))
