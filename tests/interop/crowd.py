"""Greedy clients by the hundred: what they ask for, and the event loop that asks for it."""

import contextlib
import errno
import os
import selectors
import signal
import socket
import ssl
import time

# What a greedy client asks for, again and again: a request for one large item, which may be on the SSD.
GREEDY = {
    "get": b"get large:%d\r\n",
    "gets": b"gets large:%d\r\n",
    "gat": b"gat 0 large:%d\r\n",
    "mg": b"mg large:%d v\r\n",
    "mg with T": b"mg large:%d v T0\r\n",
    "mg with N": b"mg large:%d v N0\r\n",
    "mg with R": b"mg large:%d v R30\r\n",
    "touch": b"touch large:%d 0\r\n",
    "add": b"add large:%d 0 0 1\r\nx\r\n",
    "replace with a cas": b"cas large:%d 0 0 1 7\r\nx\r\n",
    "incr": b"incr large:%d 1\r\n",
    "append": b"append large:%d 0 0 0\r\n\r\n",
    "delete with a cas": b"md large:%d C7\r\n",
    "a key's metadata": b"me large:%d\r\n",
}


class Crowd:
    """Clients that send what they are given, and read as they are told: not at all, slowly, or all there is. `encrypt` makes
    a socket that speaks TLS of one that is connected."""

    def __init__(self, address, clients, batch, reads, encrypt=None):
        self.reads = reads
        self.selector = selectors.DefaultSelector()
        self.sockets = []
        self.closed = self.received = 0
        for number in range(clients):
            peer = socket.socket()
            # What the kernel holds for a client is not the daemon's, and the less the sooner it counts.
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
            peer.connect(address)
            peer = encrypt(peer) if encrypt else peer
            peer.setblocking(False)
            self.sockets.append(peer)
            self.selector.register(peer, selectors.EVENT_READ | selectors.EVENT_WRITE, [number, batch(number), b""])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.selector.close()
        for peer in self.sockets:
            peer.close()

    def turn(self):
        for key, events in self.selector.select(0.01):
            number, batch, rest = key.data
            try:
                if events & selectors.EVENT_WRITE:
                    if not rest:
                        rest = batch
                    sent = key.fileobj.send(rest)
                    key.data[2] = rest[sent:]
                    if not key.data[2] and not self.reads:
                        self.selector.modify(key.fileobj, selectors.EVENT_READ, key.data)
                if events & selectors.EVENT_READ:
                    if not self.reads:
                        self.selector.modify(key.fileobj, selectors.EVENT_WRITE, key.data)
                    else:
                        self.receive(key.fileobj)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EWOULDBLOCK):
                    self.selector.unregister(key.fileobj)
                    self.closed += 1

    def receive(self, peer):
        more = True
        while more:
            got = peer.recv(self.reads)
            if not got:
                raise ConnectionResetError
            self.received += len(got)
            # What TLS has decrypted raises no event.
            more = isinstance(peer, ssl.SSLSocket) and peer.pending() > 0

    def run(self, seconds, each):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.turn()
            each()


@contextlib.contextmanager
def apart(begin, seconds=30, cpus=None, nice=0):
    """Runs the crowd that `begin` returns in a process of its own, so that it does not slow down the client that is measured."""
    ready, child_ready = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            if cpus:
                os.sched_setaffinity(0, cpus)
            os.nice(nice)
            with begin() as crowd:
                os.write(child_ready, b"r")
                crowd.run(seconds, lambda: None)
        os._exit(0)
    try:
        os.close(child_ready)
        if not os.read(ready, 1):
            raise ConnectionError("the crowd cannot connect")
        time.sleep(0.3)
        yield
    finally:
        os.close(ready)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def crowd_apart(address, clients, batch, reads, seconds=30, cpus=None, nice=0):
    """Runs a [Crowd](Crowd) in a process of its own."""
    return apart(lambda: Crowd(address, clients, batch, reads), seconds, cpus, nice)
