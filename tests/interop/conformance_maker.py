"""Sequences of requests at random: a seed makes the same ones again. Each is a list of steps, and a step is what up to
four connections send at the same time, over keys that only one of them uses in it.

The text and meta requests are those of wire_random.py, and besides odd spacing, wrong lengths, keys in base64, errors of
every kind, requests that end a connection, and the rows of conformance_differences.py.
"""

import base64
import re
import struct

import conformance_differences
from conformance_pair import Request
from wire_random import NUMBERS, TTLS, Maker

TIME_IN_BETWEEN = re.compile(rb" [NT]-?\d+( \S+)* t( \S+)* [NT]-?\d")
KEYS_EACH = 6
LONGEST_KEY = 250
REQUESTS_EACH = 14
VALUES = [0, 1, 30, 100, 900, 5000]
# Of every magnitude, for the few sequences of large values; memcached counts its header to the largest.
LARGE_VALUES = [0, 1, 65_536, 700_000, 1_047_000, 1 << 20, 7 << 20, 10 << 20, (32 << 20) - 4096, (32 << 20) + 1]


def prefix_of(number):
    """Begins the keys of a sequence. Of nine bytes, so that it stays recognisable in base64."""
    return b"%08x:" % number


def names_of(number):
    """What renames a sequence: its prefix, plain and in base64."""
    prefix = prefix_of(number)
    return prefix, base64.b64encode(prefix)


class SequenceMaker(Maker):
    """Requests over the keys of one sequence; `keys` narrows them to those of one connection for a step."""

    def __init__(self, random, number):
        super().__init__(random, 20_000, pipelined=False)
        self.all_keys = [prefix_of(number) + b"k%02d" % i for i in range(KEYS_EACH)]
        self.keys = self.all_keys

    def key(self):
        return self.random.choice(self.keys)

    def value(self):
        r = self.random
        if r.random() < 0.4:
            return r.choice(NUMBERS)
        size = r.choice(VALUES) if r.random() < 0.98 else self.largest
        return (b"x%07x" % r.getrandbits(28) * (size // 8 + 1))[:size]

    def coded_key(self):
        """A key in base64, which no other request names: an item that is rewritten under its plain key may forget it."""
        return base64.b64encode(self.key().replace(b":k", b":b"))

    def text(self):
        r = self.random
        chance = r.random()
        if chance < 0.62:
            return Request(self.spaced(self.command()) if r.random() < 0.1 else self.command())
        if chance < 0.70:
            return Request(self.with_unique())
        if chance < 0.76:
            return Request(self.base64_key())
        if chance < 0.80:
            return Request(self.wrong_length())
        if chance < 0.90:
            return Request(self.wrong())
        if chance < 0.93:
            return Request(self.operator())
        return conformance_differences.request(self, r.choice(list(conformance_differences.DIFFERENCES)))

    def command(self):
        # A flush would reach the sequences beside this one; `flush` makes it.
        while (made := super().command()).startswith(b"flush"):
            pass
        return made

    def meta(self):
        # The time left between N and T is a row of the table.
        while (made := super().meta()).startswith(b"mg") and TIME_IN_BETWEEN.search(made):
            pass
        return made

    def spaced(self, command):
        """The same with blanks around the words of its first line, and perhaps without a carriage return."""
        r = self.random
        line, _, rest = command.partition(b"\r\n")
        words = [word for word in line.split(b" ") if word]
        line = b" " * r.choice([0, 0, 1, 3]) + b"".join(word + b" " * r.choice([1, 1, 2, 5]) for word in words)
        return line.rstrip() + b" " * r.choice([0, 1, 2]) + r.choice([b"\r\n", b"\n"]) + rest

    def with_unique(self):
        """Reads and changes that name a unique: the last that was seen of the key, or another."""
        r, key = self.random, self.key()
        unique = b"<unique %b %d>" % (key, r.choice([0, 0, 0, 1 << 40]))
        value, ttl = b"%d" % r.randint(3_000_000, 7_000_000), r.choice(TTLS)
        quiet = b" noreply" if r.random() < 0.1 else b""
        return r.choice([
            b"gets %b\r\n" % key, b"gats %d %b\r\n" % (ttl, key), b"mg %b c v\r\n" % key,
            b"cas %b 3 %d %d %b%b\r\n%b\r\n" % (key, ttl, len(value), unique, quiet, value),
            b"ms %b %d C%b c\r\n%b\r\n" % (key, len(value), unique, value),
            b"ms %b %d c C%b I T%d\r\n%b\r\n" % (key, len(value), unique, TTLS[1], value),
            b"md %b C%b q k\r\n" % (key, unique), b"md %b C%b I T%d\r\n" % (key, unique, TTLS[2]),
            b"ma %b C%b v c N0 J3000000\r\n" % (key, unique),
        ])

    def base64_key(self):
        # An item that is created or extended under such a key is a row of the table.
        head = b" N"
        while any(word in head for word in (b" N", b" MA", b" MP")):
            head, end, rest = self.meta().partition(b"\r\n")
        words = head.split()
        words[1] = self.coded_key()
        words.insert(self.random.randint(3 if words[0] == b"ms" else 2, len(words)), b"b")
        return b" ".join(words) + end + rest

    def wrong_length(self):
        """A length that is not the data's, and enough behind it to be in step again."""
        r, value = self.random, self.value()[:5000]
        verb = r.choice([
            b"set %b 0 0 %d", b"append %b 0 0 %d", b"cas %b 0 0 %d 1", b"ms %b %d", b"ms %b %d q", b"set %b 0 0 %d noreply"
        ])
        # What is left over is a line that is no command: shorter ones are a row of the table.
        length = len(value) + r.choice([-9 if len(value) > 9 else 5, 1, 2, 3, 10])
        return verb % (self.key(), length) + b"\r\n" + value + b"\r\n" + b"nonsense" * 3 + b"\r\n"

    def wrong(self):
        """A request that is refused, in each way there is."""
        r, key = self.random, self.key()
        long = key.ljust(LONGEST_KEY + r.choice([0, 1]), b"x")
        many = b" ".join(self.key() for _ in range(60))
        return r.choice([
            b"GET %b" % key, b"nonsense", b"gett %b" % key, b"set\0 %b 0 0 1" % key, b"get\t%b" % key,
            b"incr %b %b" % (key, r.choice([b"x", b"-1", b"18446744073709551616", b"1x", b"0x10", b"1.5"])),
            b"decr %b %b" % (key, r.choice([b"x", b"-1", b"99999999999999999999", b"+1"])),
            b"touch %b %b" % (key, r.choice([b"x", b"1x", b"99999999999999999999"])),
            b"gat %b %b" % (r.choice([b"x", b"1x"]), key), b"gats x %b" % key,
            b"set %b 0 0 %b" % (key, r.choice([b"-1", b"x", b"4294967295", b"2147483647"])),
            b"get %b" % long, b"get %b- %b" % (key, long), b"gets %b" % long, b"delete %b" % long, b"incr %b 1" % long,
            b"touch %b 0" % long, b"gat 0 %b" % long, b"mg %b v" % long, b"md %b" % long, b"ma %b" % long, b"me %b" % long,
            b"get %b" % many, b"gets %b" % many, b"gat 0 %b" % many,
            *self.wrong_meta(key), b"mn", b"mn x y", b"version", b"version x",
        ]) + b"\r\n"

    def wrong_meta(self, key):
        r = self.random
        verb = r.choice([b"mg %b", b"md %b", b"ma %b"]) % key
        # On a hit of mg and ma memcached looks at the length of an opaque after it took effect.
        opaques = [b"mg %b- O" % key, b"md %b O" % key]
        return [
            verb + b" v v", verb + b" q k k", verb + b" !", verb + b" z", r.choice(opaques) + b"o" * r.choice([31, 32, 40]),
            verb + b" N%b" % r.choice([b"x", b"", b"-1"]), verb + b" T%b" % r.choice([b"x", b"", b"1x"]), verb + b" Cx",
            verb + b" Rx",
            verb + b" b", b"mg %%%% b", b"ma %b %b" % (key, r.choice([b"MX", b"Dx", b"D-1", b"Jx N0"])),
            b"ms %b x" % key, b"ms %b -1" % key, b"ms %b 5 MX\r\nhello" % key, b"ms %b 5 v v\r\nhello" % key,
            b"ms %b 5 Fx\r\nhello" % key, b"ms %b 5 Tx\r\nhello" % key, b"ms %b 5 O%b\r\nhello" % (key, b"o" * 40),
            b"ms %b 5 P L\r\nhello" % key, b"mg %b P L k" % key, b"ms %b 5 Cx\r\nhello" % key,
        ]

    def operator(self):
        """What an operator asks, as far as every memcached replies the same."""
        return self.random.choice([
            b"verbosity 0", b"verbosity 0 noreply", b"cache_memlimit 1", b"cache_memlimit x", b"config get cluster",
            b"stats nonsense", b"stats reset", b"stats detail", b"stats detail nonsense", b"stats cachedump", b"stats cachedump 1",
            b"stats cachedump 99 1", b"lru", 
            b"slabs automove invalid",
            b"slabs automove 0", b"slabs reassign 1", b"slabs nonsense", b"slabs automove ratio 0.8", b"lru_crawler", b"lru_crawler sleep",
            b"lru_crawler sleep 2000000", b"lru_crawler sleep 100", b"lru_crawler tocrawl 10", b"lru_crawler tocrawl x",
            b"lru_crawler nonsense", b"extstore", b"refresh_certs",
        ]) + b"\r\n"

    def ending(self):
        """A request that makes the server close the connection."""
        return Request(self.random.choice([
            b"quit\r\n", b"quit x y\r\n", b"GET / HTTP/1.1\r\n", b"POST /x HTTP/1.0\r\nHost: y\r\n\r\n", b"set " + b"k" * 3000,
            b"x" * 5000, b"mg " + b"x" * 3000, b"gat 0 " + b"k " * 3000,
        ]), ends=True)

    def flush(self):
        return Request(self.random.choice([
            b"flush_all\r\n", b"flush_all 0\r\n", b"flush_all noreply\r\n", b"flush_all 0 noreply\r\n", b"flush_all \r\n",
            b"flush_all  noreply\r\n", b"flush_all -1\r\n", b"flush_all x\r\n",
        ]))


def packet(opcode, key=b"", extras=b"", value=b"", opaque=0, magic=0x80):
    body = len(key) + len(extras) + len(value)
    head = struct.pack(">BBHBBHIIQ", magic, opcode, len(key), len(extras), 0, 0, body, opaque, 0)
    return head + extras + key + value


READS = [0x00, 0x09, 0x0C, 0x0D]
TOUCHES = [0x1C, 0x1D, 0x1E, 0x23, 0x24]
STORES = [0x01, 0x02, 0x03, 0x11, 0x12, 0x13]
APPENDS = [0x0E, 0x0F, 0x19, 0x1A]
COUNTS = [0x05, 0x06, 0x15, 0x16]
DELETES = [0x04, 0x14]
PLAIN = [0x0A, 0x0B]
# No command of memcached's, with the quiet and range commands that it has reserved.
UNKNOWN = [0x1F, 0x25, 0x30, 0x3C, 0x40, 0x51, 0x7F, 0xFE]


class BinaryMaker:
    """Requests of the binary protocol, with the keys and values of a SequenceMaker."""

    def __init__(self, make):
        self.make, self.random = make, make.random

    def request(self):
        r = self.random
        if r.random() < 0.12:
            return Request(self.wrong(), "binary")
        opcode = r.choice(READS * 4 + TOUCHES * 2 + STORES * 4 + APPENDS * 2 + COUNTS * 2 + DELETES * 2 + PLAIN)
        data = self.about(opcode, self.make.key())
        takes_unique = opcode in STORES + APPENDS + DELETES + COUNTS
        unique = (self.key_of(data), r.choice([0, 0, 1 << 40])) if takes_unique and r.random() < 0.15 else None
        return Request(data, "binary", unique)

    def key_of(self, data):
        length, extras = struct.unpack(">HB", data[2:5])
        return data[24 + extras : 24 + extras + length]

    def about(self, opcode, key):
        r = self.random
        opaque, ttl = r.getrandbits(32), r.choice([*TTLS, 0x7FFFFFFF])
        if opcode in PLAIN:
            return packet(opcode, opaque=opaque)
        if opcode in TOUCHES:
            return packet(opcode, key, struct.pack(">I", r.choice(TTLS)), opaque=opaque)
        if opcode in STORES:
            return packet(opcode, key, struct.pack(">II", r.choice([0, 5, 0xFFFFFFFF]), ttl), self.make.value(), opaque)
        if opcode in APPENDS:
            return packet(opcode, key, b"", self.make.value(), opaque)
        if opcode in COUNTS:
            # As in text, nothing makes a number longer, and what makes one shorter is followed by a store.
            delta = r.choice([0, 1, 7, 10])
            ttl = r.choice([*TTLS, 0xFFFFFFFF])
            made = packet(opcode, key, struct.pack(">QQI", delta, r.choice([3_000_000, 80_000_000]), ttl), opaque=opaque)
            again = packet(0x11, key, struct.pack(">II", 7, 0), self.make.value()) if opcode in (0x06, 0x16) else b""
            return made + again
        return packet(opcode, key, opaque=opaque)

    def wrong(self):
        r, key = self.random, self.make.key()
        opcode = r.choice(READS + TOUCHES + STORES + APPENDS + COUNTS + DELETES + PLAIN)
        # A body behind an opcode that it does not know puts memcached out of step, so there is none.
        return r.choice([
            packet(r.choice(UNKNOWN), opaque=7), packet(opcode, key, b"x", b"", 7), packet(opcode, key, b"x" * 9, b"xx", 7),
            packet(opcode, b"", b"", b"", 7), packet(0x0A, key, opaque=7), packet(0x0B, b"", b"abcd"), packet(0x00, key, b"", b"surplus"),
            packet(0x04, key, b"", b"surplus"), packet(0x20), packet(0x10, b"nonsense"),
        ])

    def ending(self):
        r, key = self.random, self.make.key()
        return Request(r.choice([
            packet(0x07, opaque=9), packet(0x17, opaque=9), packet(0x0A, magic=0x81), packet(0x0A, magic=0x00),
            packet(0x00, key.ljust(300, b"x")),
        ]), "binary", ends=True)


class Step:
    """What each connection sends at the same time: number, wire, requests, and where Larder's bytes are cut."""

    def __init__(self, batches):
        self.batches = batches

    def renamed(self, old, new):
        return Step([(n, wire, [request.renamed(old, new) for request in some], cuts) for n, wire, some, cuts in self.batches])


def cuts_of(r):
    """Mostly none; sometimes some, and now and then one behind each byte of the beginning."""
    chance = r.random()
    if chance < 0.6:
        return ()
    return range(1, 200) if chance > 0.99 else [r.getrandbits(30) for _ in range(r.randint(1, 3))]


def sequence(random, number, phases):
    """The steps of a sequence in so many phases; between two phases the items may be moved to the SSD."""
    make = SequenceMaker(random, number)
    binary = BinaryMaker(make)
    wires = [random.choice(["text", "text", "binary"]) for _ in range(random.choice([1, 2, 2, 3, 4]))]
    made = []
    for phase in range(phases):
        steps = []
        for _ in range(random.randint(1, 3)):
            steps.append(Step(batches(random, make, binary, wires)))
        if phase == phases - 1:
            steps += last_steps(random, make, binary, wires)
        made.append(steps)
    return made


def batches(random, make, binary, wires):
    speaking = random.sample(range(len(wires)), random.choice([1, 1, len(wires)]))
    found = []
    for turn, at in enumerate(speaking):
        # Each connection has keys of its own in this step, so the order among them does not matter.
        make.keys = make.all_keys[turn :: len(speaking)]
        count = random.randint(1, REQUESTS_EACH // len(speaking))
        kind = binary.request if wires[at] == "binary" else make.text
        found.append((at, wires[at], [kind() for _ in range(count)], cuts_of(random)))
    make.keys = make.all_keys
    return found


def last_steps(random, make, binary, wires):
    """How a sequence may end: a flush and what is left then, or a connection that is closed."""
    steps = []
    if random.random() < 0.04:
        steps.append(Step([(0, "text", [make.flush(), Request(make.command()), Request(make.command())], ())]))
    if random.random() < 0.1:
        at = random.randrange(len(wires))
        kind, ending = (binary.request, binary.ending) if wires[at] == "binary" else (make.text, make.ending)
        steps.append(Step([(at, wires[at], [kind(), ending()], ())]))
    return steps


