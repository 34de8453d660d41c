"""The suites that dogpile.cache ships for back ends, against larder.dogpile: plain, behind shared memory, and with its
lock across hosts with and without a time limit."""

import os
import pickle

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


class TestDistributed(Larder, _GenericBackendTestSuite):
    config_args = {"arguments": {"url": SERVER, "distributed_lock": True, "lock_timeout": 0}}


class TestTimedLock(Larder, _GenericBackendTestSuite):
    config_args = {"arguments": {"url": SERVER, "distributed_lock": True, "lock_timeout": 2}}


class TestMutex(Larder, _GenericMutexTestSuite):
    config_args = {"arguments": {"url": SERVER, "distributed_lock": True}}


class TestTimedMutex(Larder, _GenericMutexTestSuite):
    config_args = {"arguments": {"url": SERVER, "distributed_lock": True, "lock_timeout": 2}}
