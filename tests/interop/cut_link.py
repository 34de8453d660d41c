"""Two hosts on one machine, and the link between them, which can be cut: peers vanish without a word."""

import contextlib
import ctypes
import os
import subprocess

from larder_test import Skip, needs

SERVER, CLIENTS = "198.18.1.1", "198.18.1.2"
CLONE_NEWNET = 0x40000000


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    if done.returncode != 0:
        raise Skip(f"{' '.join(command[1:4])}: {done.stderr.strip()}")


class CutLink:
    """Network namespaces of a server and of its clients. They end with the block."""

    def __init__(self):
        self.names = [f"larder-cut-{os.getpid()}-{end}" for end in ("server", "clients")]

    def __enter__(self):
        self.ip = needs("ip", "ip (iproute2)")
        server, clients = self.names
        try:
            for name in self.names:
                run(self.ip, "netns", "add", name)
                run(self.ip, "-n", name, "link", "set", "lo", "up")
            run(self.ip, "-n", server, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", clients)
            for name, address in ((server, SERVER), (clients, CLIENTS)):
                run(self.ip, "-n", name, "address", "add", f"{address}/24", "dev", "eth0")
                run(self.ip, "-n", name, "link", "set", "eth0", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run([self.ip, "netns", "delete", name], check=False, capture_output=True)

    @property
    def before(self):
        """The words that run a command as the server."""
        return self.ip, "netns", "exec", self.names[0]

    @property
    def before_client(self):
        """The words that run a command as a client."""
        return self.ip, "netns", "exec", self.names[1]

    def as_server(self):
        return self.inside(self.names[0])

    def as_client(self):
        return self.inside(self.names[1])

    @contextlib.contextmanager
    def inside(self, name):
        """Sockets that are made in the block belong to this host."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/self/ns/net", "rb") as own, open(f"/run/netns/{name}", "rb") as other:
            if libc.setns(other.fileno(), CLONE_NEWNET) != 0:
                raise Skip(f"setns: {os.strerror(ctypes.get_errno())}")
            try:
                yield
            finally:
                libc.setns(own.fileno(), CLONE_NEWNET)

    def cut(self):
        run(self.ip, "-n", self.names[1], "link", "set", "eth0", "down")
