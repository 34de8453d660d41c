"""Where Larder answers as memcached 1.6.45 does, and memcached 1.6.18 otherwise. Each row makes requests, and says what
Larder replies, or which request it takes this one for. A row whose requests 1.6.18 answers as Larder does is a fault.
"""

import base64
import re

from conformance_pair import Request

BAD_LINE = b"CLIENT_ERROR bad command line format\r\n"
UNKNOWN = b"ERROR\r\n"
WORD = b"hello"


def store(verb, key, *more, data=WORD):
    return b" ".join([verb, key, *more]) + b"\r\n" + data + b"\r\n"


def replies(data, reply):
    return Request(data, reply=reply)


def means(data, instead):
    return Request(data, instead=instead)


def too_few(make):
    verb = make.random.choice([
        b"get", b"gets", b"set", b"set %b" % make.key(), b"set %b 0 0" % make.key(), b"add %b 0" % make.key(), b"touch",
        b"touch %b" % make.key(), b"incr %b" % make.key(), b"decr", b"delete", b"gat", b"gat 0", b"gats", b"mg", b"ms", b"md",
        b"ma", b"verbosity",
    ])
    return replies(verb + b"\r\n", BAD_LINE)


def too_many(make):
    key, more = make.key(), make.random.choice([b" x y", b" 1 2", b" noreply noreply x", b" x " + b"z" * 50])
    length = b"%d" % len(WORD)
    if make.random.random() < 0.5:
        verb = make.random.choice([b"set", b"add", b"replace", b"append", b"prepend"])
        line = b"%b %b 3 0 %b" % (verb, key, length)
        quiet = b" noreply" if more.endswith(b"noreply") else b""
        return means(line + more + b"\r\n" + WORD + b"\r\n", line + quiet + b"\r\n" + WORD + b"\r\n")
    line = make.random.choice([b"incr %b 1" % key, b"decr %b 1" % key, b"touch %b 10000" % key])
    return means(line + more + b" x\r\n", line + b"\r\n")


def deletes(make):
    key = make.key()
    return means(b"delete %b %b\r\n" % (key, make.random.choice([b"10", b"x", b"-1", b"0 x y", b"x 0 z"])), b"delete %b\r\n" % key)


def short_line(make):
    return replies(make.random.choice([b"\r\n", b"\n", b" \n", b"x\r\n", b"  \n", b"x\n", b"xy\n"]), BAD_LINE)


def swallowed(make):
    key, long = make.key(), make.key().ljust(251, b"x")
    verb = make.random.choice([b"set", b"add", b"replace", b"append", b"prepend"])
    rest = make.random.choice([
        (long, b"0", b"0", b"5"), (key, b"x", b"0", b"5"), (key, b"-1", b"0", b"5"), (key, b"0", b"x", b"5"),
        (long, b"x", b"x", b"5"),
    ])
    return replies(store(verb, *rest), BAD_LINE)


def no_unique(make):
    return replies(store(b"cas", make.key(), b"0", b"0", b"5"), BAD_LINE)


def bad_unique(make):
    return replies(store(b"cas", make.key(), b"0", b"0", b"5", make.random.choice([b"x", b"-1x", b"1x"])), BAD_LINE)


def left_over(make):
    verb = make.random.choice([b"set", b"append", b"replace"])
    data = b"%b %b 0 0 5\r\nhellox" % (verb, make.key())
    return replies(data + make.random.choice([b"\r\n", b"y\n"]), b"CLIENT_ERROR bad data chunk\r\n" + BAD_LINE)


def sizes(make):
    value = make.value()
    plain = b"ms %b %d\r\n%b\r\n" % (make.key(), len(value), value)
    reply = b"HD s%d\r\n" % len(value)
    if len(value) > 1 << 20:
        return replies(plain.replace(b"\r\n", b" s\r\n", 1), b"SERVER_ERROR object too large for cache\r\n")
    return replies(plain.replace(b"\r\n", b" s\r\n", 1), reply)


def appended(make):
    key, mode = make.key(), make.random.choice([b"MA", b"MP"])
    fresh = b"delete %b noreply\r\n" % key
    made = b"ms %b 5 T10000\r\n%b\r\n" % (key, WORD)
    return means(fresh + b"ms %b 5 %b N10000\r\n%b\r\n" % (key, mode, WORD), fresh + made)


def bget(make):
    return replies(b"bget %b-\r\n" % make.key(), UNKNOWN)


def shutdown(_):
    return replies(b"shutdown\r\n", b"SERVER_ERROR: shutdown not enabled\r\n")


def unique_of_mine(make):
    # A key of its own: what else is stored there would get uniques that seem older.
    key = make.key() + b"-"
    return means(b"ms %b 5 E123456789012\r\n%b\r\n" % (key, WORD), b"ms %b 5\r\n%b\r\n" % (key, WORD))


def emptied(make):
    key = make.key()
    return means(
        b"set %b 9 100000 5\r\n%b\r\nmd %b x\r\n" % (key, WORD, key),
        b"set %b 9 100000 5\r\n%b\r\nms %b 0\r\n\r\n" % (key, WORD, key),
    )


def mode_of_many(make):
    key = make.key()
    return make.random.choice([
        replies(b"ms %b 5 Mset\r\nhello\r\n" % key, b"CLIENT_ERROR invalid mode for ms M token\r\n"),
        replies(b"ma %b Minc\r\n" % key, b"CLIENT_ERROR invalid mode for ma M token\r\n"),
        replies(b"ma %b M\r\n" % key, b"CLIENT_ERROR invalid mode for ma M token\r\n"),
        means(b"ms %b 5 MReplace\r\nhello\r\n" % key, b"ms %b 5 MR\r\nhello\r\n" % key),
    ])


def many_flags(make):
    line = make.random.choice([b"mg %b", b"md %b", b"ma %b"]) % make.key()
    flags = b"".join(b" O%d" % i for i in range(make.random.choice([21, 25, 60])))
    return replies(line + flags + b"\r\n", b"CLIENT_ERROR options flags are too long\r\n")


def opaque_of_ma(make):
    key = make.key()
    data = b"set %b 0 0 1 noreply\r\nx\r\nma %b O%b\r\n" % (key, key, b"o" * make.random.choice([32, 40]))
    return replies(data, b"CLIENT_ERROR opaque token too long\r\n")


def time_of_me(make):
    return replies(b"me %b\r\n" % make.key(), lambda reply: re.sub(rb" exp=-(?=\d\d)", b" exp=", reply))


def no_base64(make):
    # The key has a colon, which is no digit of base64, and otherwise as many digits as make whole bytes.
    return replies(b"mg %b= b\r\n" % make.key(), b"CLIENT_ERROR error decoding key\r\n")


def time_in_between(make):
    return replies(
        b"mg %b-%d N100000 t T10000\r\n" % (make.key(), make.random.getrandbits(40)),
        lambda reply: reply.replace(b" t100000 ", b" t10000 ").replace(b" t99999 ", b" t10000 "),
    )


def longer_number(make):
    key = make.key()
    end = b"delete %b noreply\r\n" % key
    return make.random.choice([
        replies(b"ms %b 1\r\n9\r\nmd %b I\r\nma %b\r\nmg %b\r\n" % (key, key, key, key) + end, b"HD\r\nHD\r\nHD\r\nHD X W\r\n"),
        replies(
            b"ms %b 1 T100000\r\n9\r\nma %b T10000\r\nmg %b t\r\n" % (key, key, key) + end,
            lambda reply: reply.replace(b" t100000\r", b" t10000\r").replace(b" t99999\r", b" t10000\r"),
        ),
    ])


def created_by_base64(make):
    coded = make.coded_key()
    create = make.random.choice([
        b"ma %b b N10000 J5\r\n" % coded, b"mg %b b N10000\r\n" % coded,
        b"ms %b 5 b\r\nhello\r\nms %b 5 b MA\r\nhello\r\n" % (coded, coded),
    ])
    data = b"md %b b\r\n" % coded + create + b"mg %b b k\r\n" % coded + b"md %b b q\r\n" % coded
    in_base64 = lambda key: b" k" + base64.b64encode(key[1]) + b" b"  # noqa: E731
    return replies(data, lambda reply: re.sub(rb" k([0-9a-f]{8}:b\d\d)", in_base64, reply))


# Name of the row: why Larder's reply is another, and what makes its requests.
DIFFERENCES = {
    "too few arguments": ("since 1.6.40 a known command without its arguments is a bad format", too_few),
    "too many arguments": ("since 1.6.40 surplus arguments are ignored", too_many),
    "arguments of delete": ("since 1.6.40 surplus arguments are ignored", deletes),
    "short lines": ("since 1.6.40 a line of fewer than four bytes is a bad format", short_line),
    "data of a malformed store": ("since 1.6.40 the data is swallowed, so the client stays in step", swallowed),
    "cas without a unique": ("since 1.6.40 the data is swallowed", no_unique),
    "cas with a wrong unique": ("since 1.6.40 the data is swallowed", bad_unique),
    "rest of a line": ("what is left over is a line of fewer than four bytes", left_over),
    "flag s of ms": ("since 1.6.20 it returns the size", sizes),
    "append that creates": ("since 1.6.20 N creates a missing item", appended),
    "bget": ("since 1.6.40 there is no such command", bget),
    "shutdown": ("since 1.6.40 the refusal begins with another word", shutdown),
    "flag E": ("since 1.6.27 the client may name the unique", unique_of_mine),
    "flag x of md": ("since 1.6.27 it keeps the item without its value", emptied),
    "mode of several letters": ("since 1.6.40 the first letter of M decides", mode_of_many),
    "too many flags": ("since 1.6.40 the refusal has another word", many_flags),
    "long opaque of ma": ("memcached first counts, and then looks at the flags; Larder does nothing that it refuses", opaque_of_ma),
    "time left in me": ("a later version shows it without the minus sign", time_of_me),
    "keys that are not base64": (
        "memcached skips what is not base64 and takes the rest for a key, so two keys may be one; Larder refuses", no_base64
    ),
    "time left between N and T": ("Larder shows what both have made of it, memcached what the first of them has", time_in_between),
    "a number that gets longer": (
        "memcached puts a new item in its place, which is not stale, and gives the new time to live to the old item", longer_number
    ),
    "base64 keys of created items": (
        "memcached forgets that the key of an item which ma or mg creates, or ms extends, was base64, and shows it raw", created_by_base64
    ),
}


HITS_ON_SSD = (
    "an item on the SSD is shown as fetched if its index entry counts accesses, in flag h of mg and fetch of me: a refused add "
    "counts there, and a read under way does not yet; its last access is that in RAM"
)

# What the suite shows by itself, since sequences meet it once in ten thousands.
REPLACED_WHILE_READ = (
    "a stale item on the SSD that is replaced while it is read, as by a pipeline, is not to be recached any more: its reader "
    "gets Z X and not X W"
)


def request(make, name):
    """A request of one row."""
    made = DIFFERENCES[name][1](make)
    made.difference = name
    return made
