"""Certificates for one suite, made by openssl."""

import os
import subprocess


class Certificates:
    """A CA, and two certificates of it, for a server and a client."""

    def __init__(self, suite):
        self.folder = os.path.join(suite.scratch, "tls")
        os.mkdir(self.folder)
        self.ca, self.ca_key = self.path("ca.pem"), self.path("ca.key")
        self.make("-x509", "-days", "2", "-keyout", self.ca_key, "-out", self.ca, "-subj", "/CN=ca")
        self.server, self.server_key = self.signed("server")
        self.client, self.client_key = self.signed("client")
        self.other_ca = self.path("other.pem")
        self.make("-x509", "-days", "2", "-keyout", self.path("other.key"), "-out", self.other_ca, "-subj", "/CN=other")

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self, *words):
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        subprocess.run(["openssl", "req", *curve, *words], check=True, capture_output=True, timeout=60)

    def by_another(self):
        """A client's certificate, and its key, of another CA."""
        return self.signed("stranger", self.other_ca, self.path("other.key"))

    def renew(self):
        """Puts a new certificate in the place of the server's."""
        self.signed("server")

    def signed(self, name, ca=None, ca_key=None):
        certificate, key = self.path(f"{name}.pem"), self.path(f"{name}.key")
        request, extensions = self.path("request"), self.path("extensions")
        self.make("-keyout", key, "-out", request, "-subj", f"/CN={name}")
        with open(extensions, "w", encoding="ascii") as file:
            file.write("subjectAltName=DNS:cache.test,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        words = ["-req", "-in", request, "-CA", ca or self.ca, "-CAkey", ca_key or self.ca_key, "-CAcreateserial", "-days", "2"]
        words += ["-extfile", extensions, "-out", certificate]
        subprocess.run(["openssl", "x509", *words], check=True, capture_output=True, timeout=60)
        return certificate, key
