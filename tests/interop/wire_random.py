"""Commands at random over few keys, for two servers side by side; a seed makes the same ones again.

What memcached answers differently from 1.6.40 on is not made here: too few or too many arguments, lines of fewer than
four bytes, headers of stores that are wrong behind the length, ms with the flag s, appends that make an item, the
flags E and x, mg with C, bget. The rest is to be equal to the byte.

Nor is what memcached 1.6.18 itself does not answer the same way twice, or only because of how it keeps items:
- A number that gets shorter keeps its length, filled with blanks, while nothing else holds the item. One that gets
  longer is a new item, which was never fetched nor marked stale. So what makes a number shorter is followed by a set
  of the same key, and nothing makes one longer; the recorded exchanges and the clients' suites look at both.
- Numbers of 2^63 and more: looking for a minus sign in one, it reads on behind the item, and what is there is chance.
- Whether an item is still the one that was there (h, and the leases of N, R and I) where requests are pipelined: an
  answer that waits to be sent holds its item.
"""

import re

KEYS = [b"k%d" % i for i in range(8)]
# Far from the next power of ten either way, so that arithmetic leaves the length as it is.
NUMBERS = [b"5000000", b"70000000", b"18446744073709551616", b"", b"x"]
LARGEST_NUMBER = b"18446744073709551615"
# Far from one another and from now, so that a second more or less shows which one is meant.
TTLS = [0, 10_000, 100_000, 1_000_000, 2_592_000]
DELTAS = [b"0", b"1", b"7", b"10", LARGEST_NUMBER, b"-1", b"x"]


class Maker:
    def __init__(self, random, largest, pipelined):
        self.random = random
        self.pipelined = pipelined
        self.largest = largest

    def key(self):
        return self.random.choice(KEYS)

    def ttl(self):
        return self.random.choice([*TTLS, -1, 2**32 - 1, 2**32 + 100_000, 2**63 - 1] if self.random.random() < 0.2 else TTLS)

    def value(self):
        r = self.random
        if r.random() < 0.5:
            return r.choice(NUMBERS)
        size = r.choice([0, 1, 30, 100, 900, 5000, self.largest])
        return (b"%08x" % r.getrandbits(32) * (size // 8 + 1))[:size]

    def maybe(self, word, chance=0.3):
        return word if self.random.random() < chance else b""

    def flags(self, choices, most=4):
        """Some of the flags, each at most once, in any order."""
        some = self.random.sample(choices, self.random.randint(0, min(most, len(choices))))
        return b"".join(b" " + (flag() if callable(flag) else flag) for flag in some)

    def number(self, letter, values):
        return lambda: letter + b"%d" % self.random.choice(values)

    def classic(self):
        r = self.random
        verb = r.choice(["get"] * 4 + ["store"] * 5 + ["arithmetic"] * 4 + ["delete", "touch", "gat", "gat", "gets"])
        quiet = self.maybe(b" noreply", 0.1)
        if verb in ("get", "gets"):
            return verb.encode() + b"".join(b" " + self.key() for _ in range(r.randint(1, 5))) + b"\r\n"
        if verb == "store":
            word = r.choice([b"set", b"set", b"add", b"replace", b"append", b"prepend"])
            value = self.value()
            if r.random() < 0.005:
                # More than an item may have, so that the old value goes.
                value = b"z" * 1_200_000
            return b"%b %b %d %d %d%b\r\n%b\r\n" % (
                word, self.key(), r.choice([0, 5, 0xFFFFFFFF, 2**32 + 9]), self.ttl(), len(value), quiet, value
            )
        if verb == "arithmetic":
            return self.arithmetic(quiet)
        if verb == "delete":
            return b"delete %b%b%b\r\n" % (self.key(), self.maybe(b" 0"), quiet)
        if verb == "touch":
            return b"touch %b %d%b\r\n" % (self.key(), self.ttl(), quiet)
        keys = b"".join(b" " + self.key() for _ in range(r.randint(1, 4)))
        return b"%b %d%b\r\n" % (r.choice([b"gat", b"gats"]), self.ttl(), keys)

    def set(self, key, value):
        return b"set %b 7 0 %d\r\n%b\r\n" % (key, len(value), value)

    def arithmetic(self, quiet):
        r = self.random
        verb, key, delta = r.choice([b"incr", b"decr"]), self.key(), r.choice(DELTAS)
        command = b"%b %b %b%b\r\n" % (verb, key, delta, quiet)
        if verb == b"decr" or delta == LARGEST_NUMBER:
            return command + self.set(key, self.value())
        return command

    def meta(self):
        r = self.random
        opaque = b"O%d" % r.randint(0, 999)
        ttl = self.number(b"T", TTLS)
        common = [b"k", opaque, b"q"]
        verb = r.choice([b"mg"] * 5 + [b"ms"] * 4 + [b"md"] * 2 + [b"ma"] * 3)
        if verb == b"mg":
            vivify = [self.number(b"N", TTLS[1:])] if r.random() < 0.2 and not self.pipelined else []
            recache = [self.number(b"R", [30, 50_000, 2**32 + 30])] if r.random() < 0.3 and not self.pipelined else []
            touch = [ttl] if r.random() < 0.3 else []
            # A hit's age counts seconds, and two servers may see different ones; so l is not asked for.
            hit = [] if self.pipelined else [b"h", b"c"]
            flags = self.flags([b"v", b"v", b"f", b"s", b"t", *hit, *common, *vivify, *recache, *touch], 6)
            return b"mg " + self.key() + without_duplicates(flags) + b"\r\n"
        if verb == b"ms":
            value = self.value()
            mode = r.choice([[], [], [b"MS"], [b"ME"], [b"MR"], [b"MA"], [b"MP"]])
            invalidate = [b"I"] if r.random() < 0.1 and not self.pipelined else []
            flags = self.flags([b"c", b"F7", ttl, *common, *mode, *mode, *invalidate], 5)
            return b"ms %b %d%b\r\n%b\r\n" % (self.key(), len(value), without_duplicates(flags), value)
        if verb == b"md":
            stale = [b"I", ttl] if r.random() < 0.5 and not self.pipelined else []
            return b"md " + self.key() + self.flags([*common, *stale], 4) + b"\r\n"
        mode = r.choice([[], [b"MI"], [b"MD"], [b"M+"], [b"M-"]])
        vivify = b" N%d J%d" % (r.choice(TTLS[1:]), r.choice([3_000_000, 80_000_000])) if r.random() < 0.4 else b""
        flags = self.flags([b"v", b"t", b"c", self.number(b"D", [0, 1, 10, 2**64 - 1]), *common, *mode], 5)
        key = self.key()
        command = b"ma " + key + flags + vivify + b"\r\n"
        if any(flag in flags for flag in (b"MD", b"M-", b"D%d" % (2**64 - 1))):
            command += self.set(key, self.value())
        return command

    def command(self):
        if self.random.random() < 0.006:
            return self.random.choice([b"flush_all\r\n", b"flush_all 0\r\n", b"flush_all noreply\r\n"])
        return self.classic() if self.random.random() < 0.55 else self.meta()


def without_duplicates(flags):
    """The flags again, each letter once: choices are repeated only to make them likelier."""
    seen = {}
    for flag in flags.split():
        seen.setdefault(flag[:1], flag)
    return b"".join(b" " + flag for flag in seen.values())


def has_ttl(match):
    seconds = int(match[2])
    near = min(TTLS[1:], key=lambda ttl: abs(ttl - seconds))
    return match[1] + (b"%d" % near if near - 900 <= seconds <= near else match[2])


class Eyes:
    """Reads one server's answers: uniques become the number of times their key showed a new one."""

    def __init__(self):
        self.seen = {}

    def unique(self, key, unique):
        if unique == b"0":
            return b"0"
        known = self.seen.setdefault(key, {})
        return b"#%d" % known.setdefault(unique, len(known))

    def read(self, command, answer):
        verb, key = command.split()[:2] if len(command.split()) > 1 else (command, b"")
        if verb in (b"gets", b"gats"):
            return re.sub(
                rb"^(VALUE (\S+) \d+ \d+) (\d+)\r", lambda m: m[1] + b" " + self.unique(m[2], m[3]) + b"\r", answer, flags=re.M
            )
        if verb in (b"mg", b"ms", b"md", b"ma"):
            head, end, rest = answer.partition(b"\r\n")
            head = re.sub(rb"( t)(\d+)", has_ttl, head)
            head = re.sub(rb" c(\d+)", lambda m: b" c" + self.unique(key, m[1]), head)
            return head + end + rest
        return answer
