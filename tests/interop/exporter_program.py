"""Prometheus' memcached_exporter: built from the Go module proxy, and running in front of a server."""

import os
import re
import subprocess
import urllib.error
import urllib.request

from larder_test import HERE, Skip, expect_that, needs, wait_until

EXPORTER = "github.com/prometheus/memcached_exporter/cmd/memcached_exporter"
GO_MIN = (1, 21)
# Where a module can't be had there is no exporter here; a program that does not compile is a failure.
UNREACHABLE = (
    "dial tcp", "no such host", "module lookup disabled", "connection refused", "i/o timeout", "403 Forbidden",
    "404 Not Found", "502 Bad Gateway", "503 Service Unavailable", "TLS handshake timeout",
)


def build(suite):
    go = needs("go")
    version = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout.strip()
    number = re.match(r"go(\d+)\.(\d+)", version)
    if not number or (int(number[1]), int(number[2])) < GO_MIN:
        raise Skip(f"{version or 'this Go'} is older than the exporter asks for")
    program = os.path.join(suite.scratch, "memcached_exporter")
    # The versions and sums are pinned, so nothing is looked up, only fetched where it is not cached.
    try:
        built = subprocess.run(
            [go, "build", "-mod=readonly", "-o", program, EXPORTER],
            cwd=f"{HERE}/exporter_go", capture_output=True, text=True, check=False, timeout=600,
        )
    except subprocess.TimeoutExpired as late:
        raise Skip("its module is not fetched in ten minutes") from late
    if built.returncode != 0:
        if any(word in built.stderr for word in UNREACHABLE):
            raise Skip(f"its module cannot be fetched: {built.stderr.strip().splitlines()[-1]}")
        raise AssertionError(f"the exporter does not compile: {built.stderr}")
    return program


def memcached_samples(text):
    """The samples of memcached's metrics in a text of metrics, by name with sorted labels."""
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("memcached_"))
    return {sorted_labels(name): float(value) for name, value in lines}


def sorted_labels(name):
    """The name of a sample with its labels, none of whose values has a comma, in the order of their names."""
    name, brace, labels = name.partition("{")
    return name + brace + ",".join(sorted(labels.rstrip("}").split(","))) + ("}" if brace else "")


class Exporter:
    """A running exporter; `metrics` scrapes it."""

    def __init__(self, suite, program, server):
        self.log_path = os.path.join(suite.scratch, f"exporter-{server.port}.log")
        arguments = [f"--memcached.address=127.0.0.1:{server.port}", "--web.listen-address=127.0.0.1:0"]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.address = None
        expect_that(wait_until(self.is_ready, 20), f"the exporter does not start: {self.log()}")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def is_ready(self):
        address = re.search(r'Listening on" address=(\S+)', self.log())
        self.address = address and address[1]
        return bool(address)

    def metrics(self):
        """The metrics of memcached, by name with labels."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=20) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{refused}: {refused.read().decode()[:1000]}") from refused
        return memcached_samples(text)

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
