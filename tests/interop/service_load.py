"""Load for a service that is restarted meanwhile: items that are counted before and after, and clients that count what breaks."""

import contextlib
import threading
import time

from larder_test import Connection, expect, expect_that

ITEMS = 20_000
ITEMS_SHARE_MIN = 0.99


def value(number, version=0):
    """A kilobyte or so that tells its key and version."""
    return b"%d:%d:" % (number, version) * 80


class Client(threading.Thread):
    """Changes its own keys and reads all, on a connection that it makes again when it breaks, until it is told to end."""

    def __init__(self, number, address):
        super().__init__(daemon=True)
        self.number, self.address = number, address
        self.ends = threading.Event()
        self.refused = self.wrong = self.rounds = self.broken = 0
        self.connections = 0

    def run(self):
        connection, version = None, 0
        acked, sent = {}, {}
        while not self.ends.is_set():
            try:
                if connection is None:
                    self.connections += 1
                    connection = Connection(self.address, 60)
                version += 1
                own = b"own:%d:%d" % (self.number, version % 50)
                sent[own] = version
                expect_that(connection.set(own, b"%d" % version) == b"STORED", "a set is refused")
                acked[own] = version
                looked_at = b"own:%d:%d" % (self.number, (version * 7) % 50)
                found = connection.get(looked_at)
                # A miss is allowed, an older version never. A set without an answer may have happened.
                if found is not None and not acked.get(looked_at, 0) <= int(found) <= sent.get(looked_at, 0):
                    self.wrong += 1
                number = (version * 7919 + self.number) % ITEMS
                found = connection.get(b"item:%d" % number)
                if found is not None and found != value(number):
                    self.wrong += 1
                self.rounds += 1
            except ConnectionRefusedError:
                self.refused += 1
                time.sleep(0.01)
            except OSError:
                self.broken += 1
                with contextlib.suppress(AttributeError):
                    connection.close()
                connection = None
            # Some connections are short, so that there is always one being made.
            if connection and self.number % 2 and version % 20 == 0:
                connection.close()
                connection = None


def fill(address):
    with Connection(address) as connection:
        for first in range(0, ITEMS, 500):
            numbers = range(first, min(first + 500, ITEMS))
            pieces = (b"set item:%d 0 0 %d noreply\r\n%b\r\n" % (n, len(value(n)), value(n)) for n in numbers)
            connection.send(b"".join(pieces) + b"mn\r\n")
            expect(connection.line(), b"MN")


def count(address):
    """How many of the items are found, and how many have a wrong value."""
    found = wrong = 0
    with Connection(address) as connection:
        for number in range(ITEMS):
            got = connection.get(b"item:%d" % number)
            found += got is not None
            wrong += got not in (None, value(number))
    return found, wrong
