"""Servers that speak TLS and ask for a login, from each adapter; breakers that processes share."""

import os
import socket
import subprocess
import sys

import larder
import larder.exceptions as exceptions
import pytest

SECURED = os.environ["LARDER_SECURED_SERVER"]
CA = os.environ["LARDER_CA"]
CERT, KEY = os.environ["LARDER_CERT"], os.environ["LARDER_KEY"]
LOGIN = ("shop", "correct:horse")
NAME = os.environ["LARDER_SHARED_MEMORY"]


@pytest.fixture
def tls():
    return larder.Tls(CA, CERT, KEY)


@pytest.mark.parametrize("length", [0, 1, 16 << 10, 1_000_000])
def test_values_cross_whole(tls, length):
    client = larder.Client(SECURED, login=LOGIN, tls=tls)
    value = os.urandom(length)
    assert client.set("k", value, noreply=False)
    assert client.get("k") == value


def test_a_batch_crosses_whole(tls):
    client = larder.Client(SECURED, login=LOGIN, tls=tls)
    items = {f"batch-{number}": bytes([number % 256]) * number for number in range(1_000)}
    assert client.set_many(items, noreply=False) == []
    assert client.get_many(items) == items


def test_a_forked_child_shakes_hands_for_itself(tls):
    client = larder.Client(SECURED, login=LOGIN, tls=tls)
    client.set("k", b"v", noreply=False)
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            os._exit(0 if client.get("k") == b"v" else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert client.get("k") == b"v"


def test_a_wrong_login_or_certificate_has_an_exception_of_its_own(tls):
    with pytest.raises(exceptions.MemcacheLoginError, match="refused the login") as raised:
        larder.Client(SECURED, login=("shop", b"wrong horse"), tls=tls).get("k")
    assert "wrong horse" not in str(raised.value)
    with pytest.raises(exceptions.MemcacheTlsError, match="identity"):
        larder.Client(SECURED, login=LOGIN, tls=larder.Tls(CA)).get("k")
    with pytest.raises(exceptions.MemcacheTlsError, match="trusted authority"):
        larder.Client(SECURED, login=LOGIN, tls=larder.Tls(CERT)).get("k")
    with pytest.raises(exceptions.MemcacheTlsError, match="not for other.test"):
        larder.Client(SECURED, login=LOGIN, tls=larder.Tls(CA, CERT, KEY, server_name="other.test")).get("k")
    unverified = larder.Tls(cert=CERT, key=KEY, unverified=True)
    larder.Client(SECURED, login=LOGIN, tls=unverified).get("k")


def test_what_cannot_be_a_setting_is_refused(tmp_path):
    for words, more in (
        ((tmp_path / "none.pem",), {}), ((__file__,), {}), ((CA,), {"unverified": True}), ((None, None, KEY), {}),
        ((CA,), {"server_name": "a b"}),
    ):
        with pytest.raises(ValueError):
            larder.Tls(*words, **more)
    for login in (("", "p"), ("a b", "p"), ("a", "")):
        with pytest.raises(ValueError):
            larder.Client(SECURED, login=login)


def test_django_takes_login_and_tls(tls):
    import django.conf

    if not django.conf.settings.configured:
        django.conf.settings.configure()
    from larder.django import LarderCache

    options = {"login": LOGIN, "tls": tls, "shared_memory": f"{NAME}-django", "ignore_exc": False}
    cache = LarderCache(SECURED, {"OPTIONS": options})
    cache.set("k", {"a": 1}, 60)
    assert cache.get("k") == {"a": 1}
    larder.L1.remove(f"{NAME}-django")


def test_dogpile_takes_login_and_tls(tls):
    from dogpile.cache import make_region

    arguments = {"url": SECURED, "client": {"login": LOGIN, "tls": tls}}
    region = make_region().configure("larder", arguments=arguments)
    region.set("dogpile", [1, 2])
    assert region.get("dogpile") == [1, 2]


def test_limits_take_login_and_tls_from_options_or_their_address(tls, server):
    import limits.storage
    from limits import RateLimitItemPerMinute
    from limits.errors import ConfigurationError
    from limits.strategies import MovingWindowRateLimiter

    import larder.limits  # noqa: F401

    for number, (uri, options) in enumerate((
        (f"larder://{SECURED}", {"login": LOGIN, "tls": tls}),
        (f"larder://shop:correct%3Ahorse@{SECURED}", {"tls": tls}),
        (f"larders://shop:correct%3Ahorse@{SECURED}", {"tls": tls}),
        # A server without users is not told the password.
        (f"larder://shop:secret@{server}", {}),
    )):
        limiter = MovingWindowRateLimiter(limits.storage.storage_from_string(uri, **options))
        passed = [limiter.hit(RateLimitItemPerMinute(2), f"key-{number}") for _ in range(3)]
        assert passed == [True, True, False]
    # TLS with a server that speaks none, or is not trusted here.
    with pytest.raises((exceptions.MemcacheConnectError, exceptions.MemcacheTimeoutError, ValueError)):
        limits.storage.storage_from_string(f"larders://{server}").get("k")
    with pytest.raises(ConfigurationError, match="no server") as raised:
        limits.storage.storage_from_string("larder://shop:secret@")
    assert "secret" not in str(raised.value)


DOWN = """
import sys, larder
from larder.exceptions import MemcacheDownError
client = larder.Client(sys.argv[1], breakers=sys.argv[2])
try:
    client.get("k")
except MemcacheDownError:
    print("known")
except Exception as error:
    print(repr(error))
"""


def test_processes_share_what_they_know_of_servers_that_are_down():
    name = f"{NAME}-breakers"
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % unused.getsockname()[1]
        client = larder.Client(address, breakers=larder.L1(name, size=1 << 20))
        for _ in range(5):
            with pytest.raises(exceptions.MemcacheConnectError):
                client.get("k")
        words = [sys.executable, "-c", DOWN, address, name]
        told = subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout
        assert told == "known\n"
        own = larder.Client(address)
        with pytest.raises(exceptions.MemcacheConnectError) as raised:
            own.get("k")
        assert not isinstance(raised.value, exceptions.MemcacheDownError), "its breaker is its own"
    larder.L1.remove(name)
