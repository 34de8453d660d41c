"""What the checks of the wheel share: the server, and clients with and without shared memory in front of them."""

import os
import sys

import larder
import pytest

SERVER = os.environ["LARDER_SERVER"]


@pytest.fixture
def server():
    """The address of a server without items."""
    larder.Client(SERVER).flush_all()
    return SERVER


@pytest.fixture
def l1(tmp_path_factory):
    """A cache in shared memory of the test's own."""
    name = f"{os.environ['LARDER_SHARED_MEMORY']}-{os.getpid()}"
    yield larder.L1(name, size=32 << 20)
    larder.L1.remove(name)


@pytest.fixture
def tiered(server, l1):
    return larder.Tiered(l1, larder.Client(server), fresh=600)


def point_limits_here():
    """Points the tests of limits at larder.limits: their own conftest.py would start servers in containers."""
    sys.path.insert(0, os.environ["LIMITS_TESTS"])
    import larder.limits  # noqa: F401
    import tests.utils

    for name, scheme in (("", "larder"), ("async_", "async+larder")):
        storage = [pytest.param(f"{scheme}://{SERVER}", {}, None, id=scheme)]
        for strategy in ("all_storage", "moving_window_storage", "sliding_window_counter_storage"):
            setattr(tests.utils, name + strategy, pytest.mark.parametrize("uri, args, fixture", storage))


if "LIMITS_TESTS" in os.environ:
    point_limits_here()


@pytest.fixture(autouse=True)
def _a_fresh_server(request):
    # Those of limits count under the same keys.
    if "LIMITS_TESTS" in os.environ:
        larder.Client(SERVER).flush_all()
    yield
