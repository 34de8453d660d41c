"""A connection that speaks TLS, for suites that send bytes of their own, and a daemon for it."""

import os
import re
import signal
import ssl
import subprocess

from larder_test import Connection, Server, free_port, ram_server


class TlsConnection(Connection):
    """A connection that speaks TLS, by the openssl in Python."""

    def __init__(self, files, port, certificate=None, version=None, context=None, session=None):
        super().__init__(("127.0.0.1", port))
        self.context = context or ssl.create_default_context(cafile=files.ca)
        if certificate:
            self.context.load_cert_chain(*certificate)
        if version:
            self.context.minimum_version = self.context.maximum_version = version
        self.socket = self.context.wrap_socket(self.socket, server_hostname="127.0.0.1", session=session)


class TlsServer:
    """A daemon that listens twice, without TLS and with it; `start` makes one of the options."""

    def __init__(self, suite, files, *more, words="", program=None, start=ram_server):
        self.files = files
        own = f"ssl_chain_cert={files.server},ssl_key={files.server_key},ssl_ca_cert={files.ca}{words}"
        plain = free_port()
        options = ["-Z", "-o", own, *more]
        if program:
            self.plain = Server(suite, "-m", 256, *options, program=program)
        else:
            self.plain = start(suite, "-v", "-l", f"notls:127.0.0.1:{plain}", *options)
        with open(os.path.join(self.plain.folder, "port"), encoding="ascii") as file:
            ports = [int(port) for port in re.findall(r"TCP INET: (\d+)", file.read())]
        self.ports = [port for port in ports if port != plain]
        self.port = self.ports[-1]

    def connect(self, port=None, **how):
        return TlsConnection(self.files, port or self.port, **how)

    def client(self, *words, asked=b"version\r\nquit\r\n", port=None):
        """openssl's client: what it got, and what it said."""
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port or self.port}", "-CAfile", self.files.ca, *words]
        ran = subprocess.run(command, input=asked, capture_output=True, timeout=30, check=False)
        return ran.stdout + ran.stderr

    def refresh(self):
        self.plain.process.send_signal(signal.SIGHUP)
