"""The recorded exchanges with memcached 1.6.18, and where memcached from 1.6.40 on, and so Larder, answers otherwise."""

import ast
import os
import re

from larder_test import HERE

TRANSCRIPT = os.path.join(HERE, "../../crates/protocol/tests/data/memcached_1.6.18_wire_probe.txt")
EXCHANGES = 75

BAD_LINE = b"CLIENT_ERROR bad command line format\r\n"
VERSION = b"VERSION #\r\n"

# Name of the exchange: why the answer differs, and what it is.
DIFFERENCES = {
    "blank line": ("a line of fewer than four bytes is a bad format", BAD_LINE),
    "space LF": ("a line of fewer than four bytes is a bad format", BAD_LINE),
    "get no key": ("too few arguments are a bad format", BAD_LINE),
    "set few args": ("too few arguments are a bad format", BAD_LINE),
    "set extra args": ("surplus arguments are ignored", b"STORED\r\nVALUE a 0 2\r\nhi\r\nEND\r\n"),
    "set bad flags": ("the data of a malformed store is swallowed", BAD_LINE + VERSION),
    "set bad flags neg": ("the data of a malformed store is swallowed", BAD_LINE + VERSION),
    "set bad exp": ("the data of a malformed store is swallowed", BAD_LINE + VERSION),
    "set long key": ("the data of a malformed store is swallowed", BAD_LINE + VERSION),
    "cas no unique": ("the data of a malformed store is swallowed", BAD_LINE + VERSION),
    "data too long": (
        "what is left over is a line of fewer than four bytes",
        b"CLIENT_ERROR bad data chunk\r\n" + BAD_LINE + VERSION,
    ),
    "ms bad chunk q": (
        "what is left over is a line of fewer than four bytes",
        b"CLIENT_ERROR bad data chunk\r\n" + BAD_LINE + VERSION,
    ),
    "incr neg": (
        "too few arguments are a bad format, surplus ones are ignored",
        b"STORED\r\n" + b"CLIENT_ERROR invalid numeric delta argument\r\n" * 2 + BAD_LINE + b"6\r\n",
    ),
    "delete 10": ("surplus arguments are ignored", b"STORED\r\nDELETED\r\nEND\r\n"),
    "delete many": ("surplus arguments are ignored", b"NOT_FOUND\r\n"),
    "touch no exp": (
        "too few arguments are a bad format",
        b"STORED\r\n" + BAD_LINE + b"CLIENT_ERROR invalid exptime argument\r\nTOUCHED\r\nNOT_FOUND\r\n",
    ),
    "gat": (
        "gat without a key is a bad format",
        b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\nVALUE a 0 1 #\r\nx\r\nEND\r\n"
        b"CLIENT_ERROR invalid exptime argument\r\n" + BAD_LINE,
    ),
    "verbosity": ("a level that is missing or no number is a bad format", BAD_LINE * 2 + b"OK\r\nOK\r\n"),
    "shutdown": ("another word in front", b"SERVER_ERROR: shutdown not enabled\r\n"),
    "mg dup/unknown": (
        "mg without a key is a bad format",
        b"CLIENT_ERROR duplicate flag\r\n" + b"CLIENT_ERROR invalid flag\r\n" * 2 + BAD_LINE * 2,
    ),
    "ms": (
        "the flag s answers with the size, and a missing item can be appended to with N",
        b"HD\r\nHD c# km Ox s2\r\nNS\r\nCLIENT_ERROR invalid mode for ms M token\r\n" + BAD_LINE + b"ERROR\r\n"
        + BAD_LINE + b"HD s4\r\nNS\r\nHD\r\nCLIENT_ERROR invalid flag\r\n" + VERSION,
    ),
    "key ctrl chars": (
        "a NUL is a byte of the key like any other",
        b"".join(b"STORED\r\nVALUE a%bb 0 1\r\nx\r\nEND\r\n" % byte for byte in (b"\x01", b"\x00", b"\t")),
    ),
    "stats cachedump": (
        "the key with a NUL is there too",
        b"CLIENT_ERROR bad command line\r\n"
        + b"".join(b"ITEM %b [1 b; 0 s]\r\n" % key for key in sorted([b"a", b"b", b"a\tb", b"a\x01b", b"a\x00b", b"dumpk"]))
        + b"END\r\n" + b"CLIENT_ERROR Illegal slab id\r\n" * 2,
    ),
    # In these two it is Larder that differs. memcached drops the answers of all requests that came in one piece with the
    # one it refuses, and the client is out of step from then on.
    "get ok+long key": ("the answer to what came before is kept", b"STORED\r\n" + BAD_LINE + VERSION),
    # There is no such thread, so nothing can fail to start.
    "lru_crawler": ("the thread is always there", b"OK\r\nOK\r\nOK\r\nERROR\r\nOK\r\n"),
}

# Exchanges that the transcript shows only the beginning of.
ELIDED = {
    "too large noreply": b"set big 0 0 2000000 noreply\r\n" + b"x" * 2_000_000 + b"\r\nversion\r\n",
    "too large": b"set big 0 0 2\r\nhi\r\nset big 0 0 2000000\r\n" + b"x" * 2_000_000 + b"\r\nget big\r\n",
    "line 2049 no NL": b"set " + b"k" * 2045,
    "get 3000 no NL": b"get " + b"k " * 1498,
}

# Nothing can be sent behind a line that has no end yet.
NO_BARRIER = {"line 2049 no NL", "get 3000 no NL"}
# memcached lists only what its background thread has moved to a certain queue by then, so any of these items may be there.
LISTS_SOME = {"stats cachedump"}


def exchanges():
    """Name, request, answer as 1.6.18 gave it, and whether it closed the connection."""
    with open(TRANSCRIPT, encoding="ascii") as file:
        text = file.read()
    found = []
    pattern = r"^### (.+)\n>>> (b'.*'|b\".*\")\n<<< (b'.*'|b\".*\") closed=(True|False)$"
    for name, request, answer, closed in re.findall(pattern, text, re.MULTILINE):
        request = ELIDED[name] if request.endswith("...'") else ast.literal_eval(request)
        found.append((name, request, ast.literal_eval(answer), closed == "True"))
    return found


def normalised(answer):
    """What differs from run to run, replaced."""
    answer = re.sub(rb"^VERSION \d+\.\d+\.\d+\r", b"VERSION #\r", answer, flags=re.M)
    answer = re.sub(rb"^(VALUE \S+ \d+ \d+) [1-9]\d*\r", rb"\1 #\r", answer, flags=re.M)
    answer = re.sub(rb"^((?:HD|VA|EX|NS|NF|EN)\b.*? c)[1-9]\d*", rb"\1#", answer, flags=re.M)
    answer = re.sub(rb"\bla=\d+ cas=[1-9]\d* fetch=(yes|no) cls=\d+ size=\d+", rb"la=# cas=# fetch=\1 cls=# size=#", answer)
    return answer


def listed(answer):
    """The items of a list, and the answer without them."""
    items = re.findall(rb"^ITEM [^\r]*\r\n", answer, re.M)
    return set(items), re.sub(rb"^ITEM [^\r]*\r\n", b"", answer, flags=re.M)
