"""Plays systemd for one service: a socket for its notifications, a store for its descriptors, its starts and ends.

As systemd does, it starts the daemon with the stored descriptors from number 3 on, with their names in LISTEN_FDNAMES
and the daemon's process id in LISTEN_PID, and it keeps them while no daemon runs.
"""

import array
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from larder_test import clean_environment, expect_that, wait_until

# Moves the descriptors named by its first argument to 3 and up, and becomes the program of the others.
LAUNCHER = """
import fcntl, os, sys
passed = [int(number) for number in sys.argv[1].split(",") if number]
high = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 200) for number in passed]
for at, number in enumerate(high):
    os.dup2(number, 3 + at)
os.closerange(3 + len(passed), 200)
if passed:
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(passed)))
if "WATCHDOG_USEC" in os.environ:
    os.environ["WATCHDOG_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


def same_file(one, other):
    """Whether two descriptors are of one file, as systemd compares them before it stores another."""
    one, other = os.fstat(one), os.fstat(other)
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


class Manager:
    """One service with its descriptors. `store_max` is FileDescriptorStoreMax, `watchdog_us` WatchdogSec."""

    running = []

    def __init__(self, folder, *arguments, store_max=64, watchdog_us=None, program=None, root=None, user=None):
        """With `root` the program runs in that folder as if it were the whole file system, as `user`; `folder` lies in it."""
        self.arguments = [str(argument) for argument in arguments]
        self.program = program or os.environ["LARDER"]
        self.root, self.user = root, user
        self.store_max, self.watchdog_us = store_max, watchdog_us
        self.path = os.path.join(folder, f"notify-{time.monotonic_ns()}")
        self.log_path = self.path + ".log"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o777)
        self.stored, self.told, self.process = [], [], None
        # All that it started: a test that fails may leave one running when the next starts another.
        self.processes = []
        threading.Thread(target=self._listen, daemon=True).start()
        Manager.running.append(self)

    def _listen(self):
        while True:
            room = socket.CMSG_SPACE(16 * 4)
            text, beside, _, _ = self.socket.recvmsg(1 << 16, room)
            descriptors = array.array("i")
            for level, kind, data in beside:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
            lines = dict(line.split("=", 1) for line in text.decode().splitlines())
            name = lines.get("FDNAME", "stored")
            if lines.get("FDSTOREREMOVE") == "1":
                for _, descriptor in [one for one in self.stored if one[0] == name]:
                    os.close(descriptor)
                self.stored = [one for one in self.stored if one[0] != name]
            for descriptor in descriptors:
                is_new = not any(same_file(descriptor, other) for _, other in self.stored)
                if lines.get("FDSTORE") == "1" and is_new and len(self.stored) < self.store_max:
                    self.stored.append((name, descriptor))
                else:
                    os.close(descriptor)
            self.told.append(lines)

    def names(self):
        return sorted(name for name, _ in self.stored)

    def put(self, name, descriptor):
        """Stores a descriptor as a socket unit does."""
        self.stored.append((name, descriptor))

    def lines(self, name):
        """The values that were told under a name, since the last start."""
        return [lines[name] for lines in list(self.told) if name in lines]

    def spawn(self, *more):
        """Starts the daemon, and does not wait for it."""
        self.told.clear()
        environment = {**clean_environment(), "NOTIFY_SOCKET": self.path.removeprefix(self.root or "")}
        if self.watchdog_us:
            environment["WATCHDOG_USEC"] = str(self.watchdog_us)
        environment["LISTEN_FDNAMES"] = ":".join(name for name, _ in self.stored)
        numbers = [descriptor for _, descriptor in self.stored]
        words = [self.program, *self.arguments, *map(str, more)]
        if self.root:
            words = [shutil.which("chroot"), f"--userspec={self.user}:{self.user}", self.root, *words]
        elif os.getuid() == 0:
            words += ["-u", "root"]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", LAUNCHER, ",".join(map(str, numbers)), *words],
                pass_fds=numbers, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        self.processes.append(self.process)
        return self.process

    def start(self, *more):
        """Starts the daemon, and waits for READY=1, as `systemctl start` does."""
        self.spawn(*more)
        wait_until(lambda: "1" in self.lines("READY") or self.process.poll() is not None, 60)
        expect_that("1" in self.lines("READY"), f"it does not get ready: {self.log()}")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()

    def status(self):
        """The line that `systemctl status` would show."""
        return (self.lines("STATUS") or [""])[-1]

    def end(self, number=signal.SIGTERM):
        """Ends the daemon and returns its exit code, or minus the signal."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)

    def restart(self, number=signal.SIGTERM):
        self.end(number)
        self.start()

    def forget_all(self):
        """Closes what is stored, as `systemctl stop` does."""
        stored, self.stored = self.stored, []
        for _, descriptor in stored:
            os.close(descriptor)

    @classmethod
    def stop_all(cls):
        for manager in cls.running:
            for process in manager.processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            manager.forget_all()
