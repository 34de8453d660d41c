"""The suites that dogpile.cache ships for back ends, against larder.dogpile: plain, behind shared memory, and with its
lock across hosts with and without a time limit."""

import json
import os
import pickle
import time

import larder
import pytest
from dogpile.cache import make_region
from dogpile.testing.fixtures import (
    _GenericBackendFixture,
    _GenericBackendTestSuite,
    _GenericMutexTestSuite,
    _GenericSerializerTestSuite,
)

SERVER = os.environ["LARDER_SERVER"]


class Larder:
    backend = "larder"
    region_args = {"key_mangler": lambda key: key.replace(" ", "_")}
    config_args = {"arguments": {"url": SERVER}}


class TestPlain(Larder, _GenericBackendTestSuite):
    pass


class TestPickle(Larder, _GenericBackendTestSuite):
    region_args = {**Larder.region_args, "serializer": pickle.dumps, "deserializer": pickle.loads}


class TestSerializer(_GenericSerializerTestSuite, Larder, _GenericBackendFixture):
    pass


class TestSharedMemory(Larder, _GenericBackendTestSuite):
    config_args = {"arguments": {"url": [SERVER], "shared_memory": os.environ["LARDER_SHARED_MEMORY"]}}


class TestPush(Larder, _GenericBackendTestSuite):
    config_args = {
        "arguments": {"url": SERVER, "shared_memory": os.environ["LARDER_SHARED_MEMORY"] + "-push", "push": True}
    }

    def test_a_copy_is_used_for_longer_than_without_and_a_change_is_seen_in_time(self):
        name, other = os.environ["LARDER_SHARED_MEMORY"] + "-pushed", larder.Client(SERVER, default_noreply=False)
        words = {"push": True, "exact_within": 0.2, "fresh": 0.05, "stale": 5.0, "early_percent": 10}
        region = make_region().configure("larder", arguments={"url": SERVER, "shared_memory": name, **words})
        region.set("pushed", "old")
        until = time.monotonic() + 20
        while time.monotonic() < until:
            region.get("pushed")
            gets = other.stats()[b"cmd_get"]
            time.sleep(0.15)
            assert region.get("pushed") == "old"
            if other.stats()[b"cmd_get"] == gets:
                break
        else:
            pytest.fail("it asks the server each time that it is not fresh")
        other.set("pushed", b"|".join([json.dumps({"ct": time.time(), "v": 1}).encode(), b'"new"']))
        time.sleep(0.3)
        assert region.get("pushed") == "new"
        larder.L1.remove(name)


class TestDistributed(Larder, _GenericBackendTestSuite):
    config_args = {"arguments": {"url": SERVER, "distributed_lock": True, "lock_timeout": 0}}


class TestTimedLock(Larder, _GenericBackendTestSuite):
    config_args = {"arguments": {"url": SERVER, "distributed_lock": True, "lock_timeout": 2}}


def test_words_of_shared_memory_without_it_are_refused():
    with pytest.raises(ValueError, match="fresh, push: these need shared memory"):
        make_region().configure("larder", arguments={"url": SERVER, "fresh": 2.0, "push": True})


def test_a_lock_holds_up_no_one_while_the_server_fails_and_that_is_ignored():
    for distributed in (False, True):
        arguments = {"url": "127.0.0.1:1", "distributed_lock": distributed, "client": {"ignore_exc": True}}
        region = make_region().configure("larder", expiration_time=60, arguments=arguments)
        assert region.get_or_create("k", lambda: 5) == 5
        raising = make_region().configure("larder", arguments={**arguments, "client": {}})
        with pytest.raises(larder.exceptions.MemcacheServerError):
            raising.get_or_create("k", lambda: 5)


class TestMutex(Larder, _GenericMutexTestSuite):
    config_args = {"arguments": {"url": SERVER, "distributed_lock": True}}


class TestTimedMutex(Larder, _GenericMutexTestSuite):
    config_args = {"arguments": {"url": SERVER, "distributed_lock": True, "lock_timeout": 2}}
