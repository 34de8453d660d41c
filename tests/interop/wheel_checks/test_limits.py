"""The tests of limits, from its source distribution, against larder.limits."""

import os

import larder.limits
import pytest
import tests.aio.test_storage
import tests.test_storage
from tests.aio.test_strategy import TestAsyncFixedWindow, TestAsyncMovingWindow, TestAsyncSlidingWindow  # noqa: F401
from tests.test_strategy import TestFixedWindow, TestMovingWindow, TestSlidingWindow  # noqa: F401

SERVER = os.environ["LARDER_SERVER"]




def on(scheme, storage):
    params = [pytest.param(f"{scheme}://{SERVER}", {}, storage, None, id=scheme)]
    return pytest.mark.parametrize("uri, args, expected_instance, fixture", params)


tests.test_storage.TestConcreteStorages.pytestmark = [on("larder", larder.limits.LarderStorage)]
tests.aio.test_storage.TestConcreteStorages.pytestmark = [
    pytest.mark.asyncio, on("async+larder", larder.limits.AsyncLarderStorage)
]


class TestStorage(tests.test_storage.TestConcreteStorages):
    # A server does not know which of its items are limits.
    test_storage_reset = None


class TestAsyncStorage(tests.aio.test_storage.TestConcreteStorages):
    test_storage_reset = None
