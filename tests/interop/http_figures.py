"""A daemon's HTTP interface, and what is in a text of metrics: samples, and the series that an expression asks for."""

import http.client
import re
import socket

from larder_test import expect_that, wait_until

# A name of a metric with its labels, as an expression has it. Functions and labels have other first parts.
SELECTOR = re.compile(r"\b((?:larder|memcached|process)(?:_|:)[a-z0-9_:]+|up\b)\s*(\{[^}]*\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|=)\s*"([^"]*)"')
SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# What Prometheus adds to each sample.
ADDED = {"instance", "job"}


class Unix(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


class Figures:
    """The HTTP interface of a server that was started with --http."""

    def __init__(self, server):
        self.server = server
        self.address = None
        expect_that(wait_until(self.is_announced), f"the daemon names its HTTP address: {server.log()}")

    def is_announced(self):
        found = re.search(r"^  HTTP +(\S+)$", self.server.log(), re.MULTILINE)
        self.address = found and found[1]
        return bool(found)

    def connection(self):
        return Unix(self.address) if self.address.startswith("/") else http.client.HTTPConnection(self.address, timeout=20)

    def ask(self, path, method="GET", **fields):
        """The status, the fields and the text of an answer. Underscores in the names of fields stand for hyphens."""
        connection = self.connection()
        try:
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in fields.items()})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def text(self, path="/metrics", **fields):
        status, _, text = self.ask(path, **fields)
        expect_that(status == 200, f"{path}: {status} {text[:200]}")
        return text

    def samples(self):
        """The samples of a scrape: pairs of a name with its labels, and values."""
        return samples(self.text())


def samples(text):
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            match = SAMPLE.match(line)
            expect_that(match, f"no sample: {line}")
            found.append((match[1], dict(LABEL.findall(match[2] or "")), float(match[3])))
    return found


def value(found, name, **labels):
    """The value of the only sample with this name and these labels."""
    values = [number for other, with_labels, number in found if other == name and with_labels == labels]
    expect_that(len(values) == 1, f"{name} {labels}: {values}")
    return values[0]


def missing_series(expression, found, recorded=()):
    """The selectors of an expression that no sample satisfies. `recorded` are names that rules make."""
    missing = []
    for name, matchers in SELECTOR.findall(expression):
        wanted = [matcher for matcher in MATCHER.findall(matchers) if matcher[0] not in ADDED]
        if name == "up" or name in recorded:
            continue
        if not any(other == name and all(fits(labels, *matcher) for matcher in wanted) for other, labels, _ in found):
            missing.append(name + matchers)
    return missing


def fits(labels, label, operator, wanted):
    got = labels.get(label, "")
    return got == wanted if operator == "=" else bool(re.fullmatch(wanted, got))
