"""Peers that speak TLS and mean no good: handshakes that are begun, records that are begun, a byte now and then, and floods."""

import contextlib
import errno
import os
import socket
import ssl
import struct
import time

CONNECTED_IN_SECONDS = 20


def client_hello(context):
    """The bytes that a client begins its handshake with."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def half_record():
    """The half of a record of a handshake."""
    return b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03" + os.urandom(8 << 10)


def half_message():
    """Three of four records of one message of a handshake, the longest that there may be."""
    body = b"\x01\x00\xfe\x00\x03\x03" + os.urandom(48 << 10)
    pieces = [body[at : at + (16 << 10)] for at in range(0, len(body), 16 << 10)]
    return b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece for piece in pieces)


class Group:
    """Peers that each act whenever it is their turn; one that was closed begins again."""

    def __init__(self, address, clients, every=0.0):
        self.address = address
        self.every = every
        self.peers = [self.begin() for _ in range(clients)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for peer in self.peers:
            peer.close()

    def connect(self):
        peer = socket.socket()
        peer.settimeout(CONNECTED_IN_SECONDS)
        peer.connect(self.address)
        return peer

    def begin(self):
        """Returns a peer that is connected."""
        raise NotImplementedError

    def act(self, peer):
        """One turn of a peer. Raises an OSError when it was closed."""

    def run(self, seconds, each):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            for at, peer in enumerate(self.peers):
                try:
                    self.act(peer)
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass
                except OSError as error:
                    if error.errno in (errno.EAGAIN, errno.EWOULDBLOCK):
                        continue
                    peer.close()
                    with contextlib.suppress(OSError):
                        self.peers[at] = self.begin()
            each()
            time.sleep(max(0.001, self.every - (time.monotonic() - began)))


class Starters(Group):
    """Peers that send the same first bytes, and wait to be closed."""

    def __init__(self, address, clients, first):
        self.first = first
        super().__init__(address, clients, every=0.02)

    def begin(self):
        peer = self.connect()
        peer.sendall(self.first)
        peer.setblocking(False)
        return peer

    def act(self, peer):
        # The answer is left where it is; only an end is looked for.
        if not peer.recv(1, socket.MSG_PEEK):
            raise ConnectionResetError


class Flood(Starters):
    """Peers that begin a handshake, and leave to begin another."""

    def connect(self):
        peer = super().connect()
        # Its port is free again at once.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return peer

    def act(self, peer):
        raise ConnectionResetError


class Drips(Group):
    """Peers that send one byte a second each, of the first bytes of a handshake or, encrypted, of requests."""

    def __init__(self, address, clients, first, encrypt=None):
        self.first = first
        self.encrypt = encrypt
        super().__init__(address, clients, every=1.0)

    def begin(self):
        peer = self.connect()
        peer = self.encrypt(peer) if self.encrypt else peer
        peer.setblocking(False)
        return peer

    def run(self, seconds, each):
        self.at = 0
        super().run(seconds, each)

    def act(self, peer):
        if self.peers and peer is self.peers[0]:
            self.at += 1
        peer.send(self.first[self.at % len(self.first)].to_bytes(1, "big"))


class HalfRecords(Group):
    """Peers that have shaken hands, and sent the half of a record of which the rest does not come."""

    def __init__(self, address, clients, context):
        self.context = context
        super().__init__(address, clients, every=0.02)

    def begin(self):
        peer = self.connect()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                peer.sendall(outgoing.read())
                if not (got := peer.recv(1 << 16)):
                    raise ConnectionResetError from None
                incoming.write(got)
        tls.write(b"get " + b"k" * ((16 << 10) - 6) + b"\r\n")
        record = outgoing.read()
        peer.sendall(record[: len(record) // 2])
        peer.setblocking(False)
        return peer

    act = Starters.act
