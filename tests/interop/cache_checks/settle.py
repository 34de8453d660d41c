"""A plugin of pytest: what a test has stored is on the SSD when it uses it next. Both clients' methods are wrapped, so that
items are pushed out between a change and the next access."""

import functools
import os
import sys
import time

import pylibmc
import pymemcache

sys.path.insert(0, os.environ["LARDER_INTEROP"])
from larder_test import Pusher, Server  # noqa: E402

FILL_MIB = 12
# What lives for no longer than this may be gone after a push.
BRIEF_SECONDS = 5
CHANGES = ["set", "set_multi", "set_many", "add", "replace", "append", "prepend", "cas", "incr", "decr", "touch"]
READS = ["get", "get_multi", "get_many", "gets", "gets_many", "delete", "delete_multi", "delete_many"]


class Running:
    """A server that another process has started."""

    def __init__(self, host, port):
        self.address = host, int(port)

    connect, larder_stats = Server.connect, Server.larder_stats


def is_brief(arguments):
    """Whether a change of this time to live, which comes last, is for a moment only."""
    seconds = arguments[-1] if arguments and isinstance(arguments[-1], int) else 0
    return 0 < seconds <= BRIEF_SECONDS or 0 < seconds - time.time() <= BRIEF_SECONDS


class Settling:
    def __init__(self, pusher):
        self.pusher, self.is_changed = pusher, False

    def wrap(self, client, name):
        method = getattr(client, name)

        @functools.wraps(method)
        def settled(*arguments, **options):
            # A blind write does not care where the item was.
            if self.is_changed and not name.startswith("set"):
                self.is_changed = False
                self.pusher.push(FILL_MIB)
            result = method(*arguments, **options)
            if name in CHANGES and result not in (False, None):
                self.is_changed = name in ("incr", "decr") or not is_brief(arguments)
            return result

        setattr(client, name, settled)


settling = Settling(Pusher(Running(*os.environ["LARDER_SERVER"].split(":"))))
for kind in (pylibmc.Client, pymemcache.HashClient):
    for each in CHANGES + READS:
        if hasattr(kind, each):
            settling.wrap(kind, each)
