"""Two servers that get the same requests, and the comparison of what they reply.

The other memcached gets each request alone, so its reply to each is known, and becomes a template: literal bytes, and
slots for what two servers may not have in common. Larder gets the requests of a batch together, in pieces that end
anywhere, and its bytes have to fit the templates one after the other, with nothing between them.
"""

import contextlib
import re
import struct
import threading
import time

from larder_test import short

SECONDS = 20
# Times to live lie far apart, so a busy machine makes none look like another.
SECONDS_APART = 60
NOOP = 0x0A
BARRIER_OPAQUE = 0x6C617264
BARRIER = {"text": b"mn\r\n", "binary": struct.pack(">BBHBBHIIQ", 0x80, NOOP, 0, 0, 0, 0, 0, BARRIER_OPAQUE, 0)}
ANSWERED = {"text": b"MN\r\n", "binary": struct.pack(">BBHBBHIIQ", 0x81, NOOP, 0, 0, 0, 0, 0, BARRIER_OPAQUE, 0)}
# What begins the reply to any no-operation.
ANSWERED_START = {"text": b"MN\r\n", "binary": b"\x81\x0a"}
UNIQUE = re.compile(rb"<unique (\S+) (\d+)>")


class Request:
    """Bytes for a server. `unique` is the key whose unique a binary header has, and what is added to it. `difference`
    names the row of the table that this request is about; then `instead` is what Larder takes the request for, in bytes
    that the other memcached takes so too, or `reply` is what Larder replies, or a function that makes it of the other's
    reply. `ends` the connection: nothing follows."""

    __slots__ = ("data", "difference", "ends", "instead", "reply", "unique", "wire")

    def __init__(self, data, wire="text", unique=None, difference=None, instead=None, reply=None, ends=False):
        self.data, self.wire, self.unique, self.ends = data, wire, unique, ends
        self.difference, self.instead, self.reply = difference, instead, reply

    def renamed(self, old, new):
        """The same request about the keys of another sequence."""
        def rename(data):
            for before, after in zip(old, new) if isinstance(data, bytes) else ():
                data = data.replace(before, after)
            return data

        unique = self.unique and (rename(self.unique[0]), self.unique[1])
        more = self.difference, rename(self.instead), rename(self.reply), self.ends
        return Request(rename(self.data), self.wire, unique, *more)

    def __repr__(self):
        about = f" [{self.difference}]" if self.difference else ""
        unique = f" with the unique of {self.unique}" if self.unique else ""
        return f"{self.wire} {short(self.data, 300)}{unique}{about}"


class Mismatch(Exception):
    """Larder's bytes do not fit: `request` is the first that they differ for."""

    def __init__(self, request, ours, theirs):
        super().__init__(f"to {request} Larder replies {short(ours, 500)}, memcached {short(theirs, 500)}")
        self.request = request


# What a slot of a reply stands for.
VERSION, FREE, TIME, IDLE, CAS, HIT, LEASE = "version", "free", "time", "idle", "cas", "hit", "lease"
VALUE_LINE = re.compile(rb"^VALUE (\S+) \d+ \d+ (?P<cas>\d+)\r", re.M)
META_FLAGS = re.compile(rb" (?:t(?P<time>-?\d+)|l(?P<la>\d+)|c(?P<cas>\d+)|h(?P<hit>[01])|(?P<lease>X W|Z X))(?= |\r)")
ME_LINE = re.compile(rb"exp=(?P<time>-?\d+)|la=(?P<la>\d+)|cas=(?P<cas>\d+)|fetch=(?P<hit>yes|no)|(?:cls|size)=(?P<free>\d+)")
VERSION_LINE = re.compile(rb"^VERSION (?P<version>\S+)\r", re.M)
KIND = {"cas": CAS, "time": TIME, "la": IDLE, "free": FREE, "version": VERSION, "hit": HIT, "lease": LEASE}
PATTERN = {CAS: rb"\d+", TIME: rb"-?\d+", IDLE: rb"\d+", FREE: rb"\d+", VERSION: rb"\d+\.\d+\.\d+", HIT: rb"[01]|yes|no", LEASE: rb"X W|Z X"}
BY_VERB = {
    b"gets": VALUE_LINE, b"gats": VALUE_LINE, b"mg": META_FLAGS, b"ms": META_FLAGS, b"md": META_FLAGS, b"ma": META_FLAGS,
    b"me": ME_LINE, b"version": VERSION_LINE,
}
META = (b"mg", b"ms", b"md", b"ma", b"me")


def text_template(request, reply):
    words = request.data.split(None, 2)
    pattern = BY_VERB.get(words[0]) if words else None
    if pattern is None:
        return [reply]
    end = reply.find(b"\r\n") + 2 if words[0] in META else len(reply)
    parts, at = [], 0
    for found in pattern.finditer(reply, 0, max(end, 0)):
        kind = found.lastgroup
        key = words[1] if words[0] in META else found[1]
        start, stop = found.span(kind)
        parts += [reply[at:start], (KIND[kind], key, found[kind])]
        at = stop
    return [*parts, reply[at:]]


def binary_template(request, reply):
    parts, at, length = [], 0, len(reply)
    key = request.data[24 + request.data[4] :][: struct.unpack(">H", request.data[2:4])[0]]
    while at + 24 <= length:
        (body,) = struct.unpack(">I", reply[at + 8 : at + 12])
        cas = reply[at + 16 : at + 24]
        is_version = reply[at + 1] == 0x0B and reply[at + 6 : at + 8] == b"\0\0"
        parts += [reply[at : at + 16], ("cas bytes", key, cas)]
        value = reply[at + 24 : at + 24 + body]
        parts += [b"", (VERSION, b"", value)] if is_version else [value]
        at += 24 + body
        if is_version:
            parts.append(b"")
    return [*parts, reply[at:]] if at < length else (parts or [b""])


def template(request, reply):
    return binary_template(request, reply) if request.wire == "binary" else text_template(request, reply)


class Uniques:
    """Which unique of Larder's is which of the other memcached's, key by key."""

    def __init__(self):
        self.by_key = {}

    def same(self, key, theirs, ours):
        if 0 in (theirs, ours):
            return theirs == ours
        forth, back = self.by_key.setdefault(key, ({}, {}))
        self.by_key[key + b" last"] = theirs, ours
        return forth.setdefault(theirs, ours) == ours and back.setdefault(ours, theirs) == theirs

    def last(self, key):
        """The pair that was seen last of a key, or one that neither server gives out."""
        return self.by_key.get(key + b" last", (1 << 62, 1 << 62))


class Peer:
    """One connection to each server, and whether both are open."""

    def __init__(self, pair, wire):
        self.wire = wire
        self.theirs = pair.theirs.connect(SECONDS)
        self.ours = pair.ours.connect(pair.patience)

    def close(self):
        self.theirs.close()
        self.ours.close()


def rendered(request, uniques, side):
    """The request's bytes for one server, with its own uniques in place."""
    data = request.data
    if request.unique:
        key, more = request.unique
        return data[:16] + struct.pack(">Q", uniques.last(key)[side] + more) + data[24:]
    if b"<unique " in data:
        return UNIQUE.sub(lambda found: b"%d" % (uniques.last(found[1])[side] + int(found[2])), data)
    return data


class Pair:
    """The servers `theirs` and `ours`, and connections to both by number."""

    def __init__(self, theirs, ours, lie=None):
        self.theirs, self.ours = theirs, ours
        self.peers = {}
        self.uniques = Uniques()
        self.seen = {}
        self.requests = 0
        # Seconds to wait for Larder.
        self.patience = SECONDS
        # Whether hits and their times may be forgotten, as those of items on the SSD are; and how often a hit was.
        self.may_forget_hits, self.forgotten_hits = False, 0
        # A way to lie about what Larder was asked and replied: the suite shows with it that it finds faults.
        self.lie = lie

    def peer(self, number, wire):
        name = (number, wire)
        if name not in self.peers:
            self.peers[name] = Peer(self, wire)
        return self.peers[name]

    def drop(self, number, wire):
        self.peers.pop((number, wire)).close()

    def forget(self):
        self.uniques = Uniques()

    def close(self):
        for name in list(self.peers):
            self.drop(*name)

    def ask_theirs(self, peer, data, ends=False):
        """The reply to one request, and whether the connection is still open."""
        connection, end = peer.theirs, ANSWERED[peer.wire]
        send(connection, data if ends else data + BARRIER[peer.wire], ())
        # The request may be what is the barrier here.
        is_barrier = data.startswith((b"mn ", b"mn\r")) if peer.wire == "text" else data[1] == NOOP
        reply, how = read_until(connection, end, ANSWERED_START[peer.wire], 2 if is_barrier else 1)
        if how == "silent":
            raise RuntimeError(f"memcached does not reply to the end of {short(data, 300)}: {short(reply)}")
        return (reply.removesuffix(end), True) if how == "answered" else (reply, False)

    def expected(self, peer, requests):
        """What the requests are to be answered with, up to one that closes the connection."""
        found, is_open = [], True
        for request in requests:
            if not is_open:
                break
            reply, is_open = self.ask_theirs(peer, rendered(request, self.uniques, 0), request.ends)
            self.requests += 1
            if request.difference:
                reply = self.differing(peer, request, reply)
            self.count(request, reply)
            found.append((request, template(request, reply), reply))
        return found, is_open

    def differing(self, peer, request, reply):
        """What Larder is to reply to a request of the table."""
        wanted = request.reply(reply) if callable(request.reply) else request.reply
        if request.instead is not None:
            like = Request(request.instead, request.wire)
            wanted, _ = self.ask_theirs(peer, rendered(like, self.uniques, 0))
        counts = self.seen.setdefault(request.difference, [0, 0])
        counts[reply != wanted] += 1
        return wanted

    def count(self, request, reply):
        if request.wire == "binary":
            words = b"opcode %02x, status %d" % (request.data[1], int.from_bytes(reply[6:8], "big")) if reply else b""
        else:
            words = b" ".join(word.split(b" ")[0] for word in (request.data.lstrip(), reply.split(b"\r")[0]))[:60]
        self.seen[words] = self.seen.get(words, 0) + 1

    def compare(self, number, wire, requests, cuts=(), pace=None):
        """Sends a batch to both servers; Mismatch says where they differ."""
        self.compare_all([(number, wire, requests, cuts)], pace)

    def compare_all(self, batches, pace=None):
        """The same with batches on several connections, which Larder gets at once."""
        waiting = []
        for number, wire, requests, cuts in batches:
            peer = self.peer(number, wire)
            # Larder sees all of a batch before any of its replies is read, so uniques are those of before the batch.
            bytes_of = {id(request): rendered(request, self.uniques, 1) for request in requests}
            found, is_open = self.expected(peer, requests)
            data = b"".join(bytes_of[id(request)] for request, *_ in found)
            data += BARRIER[wire] if is_open else b""
            waiting.append((number, peer, found, is_open, self.lie.ask(data) if self.lie else data, cuts))
        senders = [send(peer.ours, data, cuts) for _, peer, _, _, data, cuts in waiting]
        for number, peer, found, is_open, _, _ in waiting:
            reply = self.read_ours(peer, found, is_open, pace)
            if not is_open:
                self.drop(number, peer.wire)
            self.fit(peer, found, is_open, self.lie.reply(reply) if self.lie else reply)
        for sender in senders:
            if sender:
                sender.join(SECONDS)

    def read_ours(self, peer, found, is_open, pace):
        connection, end = peer.ours, ANSWERED[peer.wire]
        least = 1 + sum(reply.count(end) for _, _, reply in found)
        if pace:
            pace(connection)
        reply, how = read_until(connection, end, end, least if is_open else 1 << 62)
        return reply + b"<nothing more, and it is open>" if how == "silent" else reply

    def fit(self, peer, found, is_open, ours):
        at = 0
        for request, parts, theirs in found:
            fitting = self.end_of(parts, ours, at)
            if fitting is None:
                raise Mismatch(request, ours[at : at + max(len(theirs), 100) + 40], theirs)
            at = fitting
        rest = ANSWERED[peer.wire] if is_open else b""
        if ours[at:] != rest:
            raise Mismatch("all of these", ours[at:], rest)

    def end_of(self, parts, ours, at):
        """Where in Larder's bytes a template that begins at `at` ends, or None if they do not fit."""
        for part in parts:
            if isinstance(part, bytes):
                if not ours.startswith(part, at):
                    return None
                at += len(part)
                continue
            kind, key, theirs = part
            if kind == "cas bytes":
                mine = ours[at : at + 8]
                if len(mine) < 8 or not self.uniques.same(key, int.from_bytes(theirs, "big"), int.from_bytes(mine, "big")):
                    return None
                at += 8
                continue
            found = re.compile(PATTERN[kind]).match(ours, at)
            if not found or not self.fills(kind, key, theirs, found[0]):
                return None
            at = found.end()
        return at

    def fills(self, kind, key, theirs, ours):
        if kind == CAS:
            return self.uniques.same(key, int(theirs), int(ours))
        if kind == TIME or kind == IDLE and not self.may_forget_hits:
            return (int(theirs) < 0) == (int(ours) < 0) and abs(int(theirs) - int(ours)) <= SECONDS_APART
        if kind == HIT and ours != theirs:
            self.forgotten_hits += 1
            return self.may_forget_hits
        if kind == LEASE and ours != theirs:
            # See REPLACED_WHILE_READ among the differences.
            return self.may_forget_hits
        return True


def read_until(connection, end, counted, least):
    """Reads until the bytes end with `end` and have `counted` at least so often. Returns them, and whether that came, the
    connection was closed, or nothing more came."""
    parts, tail, seen = [connection.buffer], connection.buffer, connection.buffer.count(counted)
    connection.buffer = b""
    while not (seen >= least and tail.endswith(end)):
        try:
            data = connection.socket.recv(1 << 18)
        except TimeoutError:
            return b"".join(parts), "silent"
        except ConnectionError:
            data = b""
        if not data:
            return b"".join(parts), "closed"
        parts.append(data)
        joined = tail[1 - len(counted) :] + data
        seen += joined.count(counted)
        tail = (tail + data)[-64:] if len(data) < 64 else data[-64:]
    return b"".join(parts), "answered"


def send(connection, data, cuts):
    """Sends in pieces; a thread does it if the peer may have to be read meanwhile."""
    def pieces():
        at = 0
        for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
            if cut > at:
                # Who has closed meanwhile is seen by what is read.
                with contextlib.suppress(ConnectionError):
                    connection.send(data[at:cut])
                at = cut

    if len(data) < 1 << 16:
        pieces()
        return None
    thread = threading.Thread(target=pieces, daemon=True)
    thread.start()
    return thread


def byte_a_second(seconds):
    """A reader that takes one byte a second for so long, and then all."""
    def pace(connection):
        for _ in range(seconds):
            connection.buffer += connection.socket.recv(1)
            time.sleep(1)

    return pace
