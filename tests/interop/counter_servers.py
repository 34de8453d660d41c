"""The servers that the suite `counter` measures: each in a folder of its own, on ports of its own."""

import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile

from larder_test import HERE, Server, Skip, can_connect, wait_until
from maven_jars import fetched_jars, needs_compiler

START_SECONDS = 60
# What the scenario counter-shootout starts too.
MONGODB = "../../crates/bench/src/scenario/counter_shootout/mongodb"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def program(name, *places):
    """The path of a server, or this one is skipped."""
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", *places]))
    if not path:
        raise Skip(f"there is no {name}")
    return path


class Child:
    """A server in a folder that is removed with the suite's scratch."""

    name = ""
    user = None

    def __init__(self, suite):
        self.folder = tempfile.mkdtemp(prefix=f"{self.name}-", dir=suite.scratch)
        self.log_path = os.path.join(suite.scratch, f"{os.path.basename(self.folder)}.log")
        self.port = free_port()
        self.process = None

    def identity(self):
        """What makes a child run as the server's own user; servers of databases refuse to run as root."""
        if os.getuid() != 0 or not self.user:
            return {}
        try:
            user = pwd.getpwnam(self.user)
        except KeyError:
            raise Skip(f"there is no user {self.user}") from None
        os.chown(self.folder, user.pw_uid, user.pw_gid)
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def prepare(self, *command):
        done = subprocess.run(
            command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False, timeout=120, **self.identity(),
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-2000:]}")

    def start(self, *command):
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                **self.identity(),
            )
        # Whatever happens, the suite stops it.
        Server.running.append(self)
        ready = wait_until(lambda: self.process.poll() is not None or self.is_ready(), START_SECONDS)
        if not ready or self.process.poll() is not None:
            self.stop()
            with open(self.log_path, encoding="utf-8", errors="replace") as log:
                raise RuntimeError(f"{' '.join(command)} did not start: {log.read()[-2000:]}")

    def is_ready(self):
        return can_connect(("127.0.0.1", self.port))

    def stop(self, number=signal.SIGKILL, seconds=30):
        """What it holds is not needed any more, and its own children go with it."""
        if self in Server.running:
            Server.running.remove(self)
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, number)
            self.process.wait(seconds)


class Memcached(Child):
    name = "memcached"

    def __init__(self, suite):
        super().__init__(suite)
        self.start(
            program("memcached"), "-p", str(self.port), "-l", "127.0.0.1", "-m", "64",
            *(["-u", "nobody"] if os.getuid() == 0 else []),
        )
        self.url = f"127.0.0.1:{self.port}"


class Redis(Child):
    name = "redis"

    def __init__(self, suite):
        super().__init__(suite)
        self.socket = os.path.join(self.folder, "s")
        self.start(
            program("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", self.socket,
            "--appendonly", "yes", "--appendfsync", "everysec", "--dir", self.folder,
        )
        self.url = f"redis://127.0.0.1:{self.port}/15"


class MariaDb(Child):
    name = "mariadb"
    user = "mysql"

    def __init__(self, suite):
        super().__init__(suite)
        daemon, install = program("mariadbd"), program("mariadb-install-db")
        data = os.path.join(self.folder, "data")
        self.socket = os.path.join(self.folder, "s")
        self.prepare(
            install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
            "--skip-test-db",
        )
        self.start(
            daemon, "--no-defaults", f"--datadir={data}", f"--socket={self.socket}", f"--port={self.port}",
            "--bind-address=127.0.0.1", f"--pid-file={self.folder}/pid", "--innodb-buffer-pool-size=32M",
        )
        self.url = f"mysql://root@127.0.0.1:{self.port}/"


class Postgres(Child):
    name = "postgres"
    user = "postgres"

    def __init__(self, suite):
        super().__init__(suite)
        # Debian keeps them out of PATH, in a folder of their version.
        places = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[-2]))[::-1]
        data = os.path.join(self.folder, "data")
        self.prepare(program("initdb", *places), "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
        self.start(
            program("postgres", *places), "-D", data, "-p", str(self.port),
            "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.folder}",
        )
        # It listens before it lets anybody in.
        ready = os.path.join(data, "postmaster.pid")
        wait_until(lambda: "ready" in read(ready), START_SECONDS)
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"


class Mongo(Child):
    """A server from Maven Central that speaks MongoDB's wire: Debian has no MongoDB."""

    name = "mongodb"

    def __init__(self, suite, mode="copying"):
        super().__init__(suite)
        java, jars = program("java"), fetched_jars(MONGODB, "mongo-java-server")
        needs_compiler(java)
        self.start(
            java, "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", os.path.join(jars, "*"),
            os.path.join(HERE, MONGODB, "MongoServer.java"), str(self.port), mode,
        )
        self.url = f"mongodb://127.0.0.1:{self.port}/"
