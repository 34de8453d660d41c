"""What the interop suites share: a daemon on a port of its own, items pushed to its SSD, and the count at the end.

The daemon under test is the program that the environment variable LARDER names. With INTEROP_REFERENCE=/path/to/memcached
the suites run against that memcached instead, to see whether what they expect is what memcached does: options that only
Larder has are left out, and what is about the SSD is skipped.
"""

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
REFERENCE = os.environ.get("INTEROP_REFERENCE")
MIB = 1 << 20

# From an empty value to one of most of a megabyte: a record within a page, one of several pages, one near the limit.
SIZES = [0, 100, 3 * 1024, 20 * 1024, 100 * 1024, 700 * 1024]
SSD_MIB = 256
# Small enough for the filler to push everything else out, large enough for the index of the SSD file.
SMALL_RAM_MIB = 8
FILLER_MIB = 40
FILLER_BYTES = 12_000


def value_of(size):
    """Bytes of every kind, line ends and NUL among them. The clients' scripts make the same ones."""
    return bytes((i * 31 + size) % 256 for i in range(256)) * (size // 256) + bytes(
        (i * 31 + size) % 256 for i in range(size % 256)
    )


class Skip(Exception):
    """Raised in a test that cannot be run here; the message says why."""


class Suite:
    """Counts tests, and ends with the line that scripts/test reads."""

    def __init__(self):
        self.name = os.path.basename(sys.argv[0])
        self.passed = self.failed = self.skipped = 0
        self.scratch = tempfile.mkdtemp(prefix="larder-interop-")
        # A suite that is told to stop still stops its servers and removes its files.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: sys.exit(128 + number))

    def ok(self, name):
        self.passed += 1
        if os.environ.get("INTEROP_VERBOSE"):
            print(f"ok {name}", flush=True)

    def fail(self, name, why):
        self.failed += 1
        print(f"FAILED {name}: {why}", flush=True)

    def skip(self, name, why):
        self.skipped += 1
        print(f"SKIPPED {self.name}: {name}: {why}", flush=True)

    def check(self, name, got, want):
        """One test: `got` is `want`."""
        if got == want:
            self.ok(name)
        else:
            self.fail(name, f"got {short(got)}, want {short(want)}")

    @contextlib.contextmanager
    def test(self, name):
        """One test: the block raises nothing. Use `expect` within."""
        try:
            yield
        except Skip as skip:
            self.skip(name, str(skip))
        except AssertionError as failure:
            self.fail(name, str(failure) or traceback.format_exc())
        except Exception as failure:  # A broken connection is a failed test, and the next one gets its chance.
            where = traceback.extract_tb(failure.__traceback__)
            own = [frame for frame in where if frame.filename == os.path.abspath(sys.argv[0])] or where
            self.fail(name, f"{type(failure).__name__}: {failure} (line {own[-1].lineno})")
        else:
            self.ok(name)

    def run(self, body):
        """Runs `body(self)`, prints the count and ends the process."""
        try:
            if need := missing_daemon():
                self.skip("everything", need)
            else:
                body(self)
        except Skip as skip:
            self.skip("everything", str(skip))
        except Exception as failure:
            traceback.print_exc()
            self.fail("the suite itself", repr(failure))
        finally:
            Server.stop_all()
            shutil.rmtree(self.scratch, ignore_errors=True)
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        sys.exit(1 if self.failed else 0)


def missing_daemon():
    program = REFERENCE or os.environ.get("LARDER")
    if not program:
        return "the environment variable LARDER does not name a daemon"
    if not os.access(program, os.X_OK):
        raise RuntimeError(f"{program} is no program")
    return None


def short(value, limit=160):
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 2 :]} ({len(text)} characters)"


def expect(got, want, about=""):
    if got != want:
        raise AssertionError(f"{about}{': ' if about else ''}got {short(got)}, want {short(want)}")


def expect_that(condition, about):
    if not condition:
        raise AssertionError(about)


def wait_until(condition, seconds=10.0, every=0.02):
    """True as soon as `condition()` is, False when the time is up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(every)
    return bool(condition())


def needs(program, name=None):
    """The path of a program, or the suite is skipped."""
    path = shutil.which(program)
    if not path:
        raise Skip(f"there is no {name or program}")
    return path


def free_port():
    """A port of the loopback that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def use_python_with(module):
    """Starts over with Debian's Python if only that one has the module."""
    if not importlib.util.find_spec(module):
        with contextlib.suppress(Skip):
            python = python_with(module)
            os.execv(python, [python, *sys.argv])


class Connection:
    """A raw connection that reads lines and blocks."""

    def __init__(self, address, timeout=30.0):
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(address)
        else:
            self.socket = socket.create_connection(address, timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def more(self):
        """Reads once; false at the end of the stream."""
        data = self.socket.recv(1 << 18)
        self.buffer += data
        return bool(data)

    def until(self, end):
        """Everything up to and with `end`."""
        while (at := self.buffer.find(end)) < 0:
            if not self.more():
                raise ConnectionError(f"closed after {short(self.buffer)}, before {end!r}")
        at += len(end)
        data, self.buffer = self.buffer[:at], self.buffer[at:]
        return data

    def line(self):
        return self.until(b"\r\n")[:-2]

    def exactly(self, size):
        while len(self.buffer) < size:
            if not self.more():
                raise ConnectionError(f"closed after {len(self.buffer)} of {size} bytes")
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def rest(self):
        """Everything until the peer closes."""
        with contextlib.suppress(ConnectionResetError):
            while self.more():
                pass
        data, self.buffer = self.buffer, b""
        return data

    def ask(self, request):
        """Sends, and reads one line."""
        self.send(request)
        return self.line()

    def get(self, key):
        """The value of a key, or None."""
        self.send(b"get " + key + b"\r\n")
        head = self.line()
        if head == b"END":
            return None
        expect_that(head.startswith(b"VALUE "), f"get answers {short(head)}")
        value = self.exactly(int(head.split()[3]) + 2)[:-2]
        expect(self.line(), b"END")
        return value

    def set(self, key, value, flags=0, exptime=0):
        return self.ask(b"set %b %d %d %d\r\n%b\r\n" % (key, flags, exptime, len(value), value))

    def ttl(self, key):
        """Seconds left, -1 for ever, None for no item."""
        answer = self.ask(b"mg " + key + b" t\r\n")
        return None if answer == b"EN" else int(answer.removeprefix(b"HD t"))

    def stats(self, what=b""):
        """The lines of `stats` as a dictionary of strings."""
        self.send(b"stats" + (b" " + what if what else b"") + b"\r\n")
        found = {}
        while (line := self.line()) != b"END":
            expect_that(line.startswith(b"STAT "), f"stats {what.decode()} answers {short(line)}")
            name, _, value = line[5:].decode().partition(" ")
            found[name] = value
        return found


# Options of Larder's own, and whether a value follows: what memcached must not be given.
OWN_OPTIONS = {
    "--ssd": True,
    "--ssd-format": False,
    "--ssd-write-wait": True,
    "--conn-memory": True,
    "--item-size": True,
    "--io": True,
}


def reference_arguments(arguments):
    kept = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument in OWN_OPTIONS:
            if OWN_OPTIONS[argument]:
                next(waiting)
        else:
            kept.append(argument)
    # memcached keeps everything in RAM, so it needs room for what Larder would move to the SSD.
    if "-m" in kept:
        at = kept.index("-m") + 1
        kept[at] = str(max(int(kept[at]), 1024))
    return [*kept, "-U", "0"]


def clean_environment():
    """The developer's own settings must not reach a daemon under test."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LARDER_", "MEMCACHED_"))}
    # Without a home of its own a daemon started without --ssd would use the developer's cache directory.
    environment["XDG_CACHE_HOME"] = "/nonexistent"
    return environment


def stated_mib(*arguments):
    """The bound on resident memory that the daemon states for these options."""
    ran = subprocess.run(
        [os.environ["LARDER"], *map(str, arguments), "--print-config"], capture_output=True, text=True, check=True, timeout=30,
        env=clean_environment(),
    )
    return int(re.search(r"^# +=? *(\d+) MiB$", ran.stdout, re.M)[1])


class Server:
    """A daemon on a port of its own, or on `port`; `program` is another memcached to compare with, `before` the words of a command
    that runs it."""

    running = []

    def __init__(self, suite, *arguments, program=None, unix=None, port="-1", before=()):
        self.folder = tempfile.mkdtemp(dir=suite.scratch)
        self.program = program or REFERENCE or os.environ["LARDER"]
        self.is_reference = bool(program or REFERENCE)
        arguments = [str(argument) for argument in arguments]
        if self.is_reference:
            arguments = reference_arguments(arguments)
        if os.getuid() == 0 and "-u" not in arguments:
            arguments += ["-u", "root"]
        self.log_path = os.path.join(self.folder, "log")
        port_file = os.path.join(self.folder, "port")
        environment = clean_environment()
        if unix:
            arguments += ["-s", unix]
        else:
            arguments += ["-p", str(port), "-l", "127.0.0.1"]
            environment["MEMCACHED_PORT_FILENAME"] = port_file
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*before, self.program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        Server.running.append(self)
        self.arguments = arguments
        started = (lambda: can_connect(unix)) if unix else (lambda: os.path.exists(port_file))
        ready = wait_until(lambda: self.process.poll() is not None or started(), 60)
        if not ready or self.process.poll() is not None:
            self.stop()
            raise RuntimeError(f"{self.program} {' '.join(arguments)} did not start: {self.log()}")
        if unix:
            self.address = unix
        else:
            with open(port_file, encoding="ascii") as file:
                port = re.search(r"TCP INET: (\d+)", file.read())
            self.address = ("127.0.0.1", int(port[1]))

    @property
    def port(self):
        return self.address[1]

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()

    def connect(self, timeout=30.0):
        return Connection(self.address, timeout)

    def is_alive(self):
        return self.process.poll() is None

    def larder_stats(self):
        """The lines of `stats larder` that are numbers."""
        with self.connect() as connection:
            return numbers(connection.stats(b"larder"))

    def rss_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1]) * 1024

    def stop(self, number=signal.SIGTERM, seconds=30):
        """Sends the signal and returns the exit code; a daemon that does not go is killed, and None is returned."""
        if self in Server.running:
            Server.running.remove(self)
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    @classmethod
    def stop_all(cls):
        for server in list(cls.running):
            server.stop(seconds=10)


def numbers(stats):
    return {name: float(value) for name, value in stats.items() if re.fullmatch(r"-?\d+(\.\d+)?", value)}


def can_connect(address):
    try:
        Connection(address, 5).close()
    except OSError:
        return False
    return True


def ram_server(suite, *more):
    """A daemon with room for everything in RAM; it has an SSD file too, as an installed one has."""
    path = os.path.join(suite.scratch, f"ram-{time.monotonic_ns()}.ssd")
    return Server(suite, "-m", 256, "--ssd", f"{path}:{SSD_MIB}m", *more)


def ssd_server(suite, *more):
    """A daemon whose RAM holds next to nothing. A set waits for the SSD for as long as it takes: an item that is
    dropped instead, as one may be in overload, would make these tests depend on the speed of the disk."""
    path = os.path.join(suite.scratch, f"ssd-{time.monotonic_ns()}.ssd")
    options = ["-m", SMALL_RAM_MIB, "--ssd", f"{path}:{SSD_MIB}m", "--ssd-write-wait", 30000]
    return Server(suite, *options, *more)


class Pusher:
    """Pushes what is in RAM out to the SSD, and proves it. `mebibytes` of filler do that."""

    def __init__(self, server, mebibytes=FILLER_MIB):
        self.server, self.mebibytes = server, mebibytes
        self.turn = 0

    def control(self, name):
        with self.server.connect() as connection:
            expect(connection.set(b"control:" + name, name), b"STORED")

    def hits_ssd(self):
        return self.server.larder_stats()["get_hits_ssd"]

    def is_on_ssd(self, name):
        before = self.hits_ssd()
        with self.server.connect() as connection:
            expect(connection.get(b"control:" + name), name, "the control key")
        return self.hits_ssd() > before

    def fill(self, mebibytes):
        """Sets items under new keys, and reads each once, so that they push out what stays longer than the unread, too. The
        barrier behind each batch lets the daemon slow this down.

        The items are not small, so that they are few: a key that is set may push another out of the index that looks the
        same there. That is rare, and a cache may do it, but ten thousands of keys would make it happen to a test.
        """
        self.turn += 1
        value = value_of(FILLER_BYTES)
        with self.server.connect(120) as connection:
            for start in range(0, mebibytes * MIB // FILLER_BYTES, 64):
                numbers = range(start, start + 64)
                batch = b"".join(
                    b"set filler:%d:%d 0 0 %d noreply\r\n%b\r\n" % (self.turn, i, FILLER_BYTES, value) for i in numbers
                )
                reads = b"".join(b"mg filler:%d:%d\r\n" % (self.turn, i) for i in numbers)
                connection.send(batch + reads + b"mn\r\n")
                while (line := connection.line()) != b"MN":
                    expect_that(line in (b"HD", b"EN"), f"the filler gets {short(line)}")

    def push(self, mebibytes=None):
        """Everything that was set before this call is on the SSD after it, or an AssertionError says so."""
        mebibytes = mebibytes or self.mebibytes
        last = b"last:%d" % self.turn
        self.control(last)
        self.fill(mebibytes)
        expect_that(self.is_on_ssd(last), f"after {mebibytes} MiB of filler a key set before is read from RAM")
        dropped = self.server.larder_stats()["ssd_admissions_dropped"]
        expect(dropped, 0.0, "items dropped on the way to the SSD")


def users_file(suite, text, mode=0o600):
    """The path of a file for `-Y`."""
    handle, path = tempfile.mkstemp(dir=suite.scratch)
    with os.fdopen(handle, "wb") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def python_with(module):
    """The path of a Python that has a module, or the test is skipped."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0:
            return python
    raise Skip(f"there is no {module}")


def fetched_python(pins):
    """The folder of Python packages that Debian does not have, pinned in a file of `python`; fetched once and kept beside
    the build."""
    with open(os.path.join(HERE, "python", pins), "rb") as file:
        name = hashlib.sha256(file.read() + sys.version.encode()).hexdigest()[:12]
    beside = os.path.dirname(os.path.abspath(os.environ["LARDER"]))
    folder = os.path.join(beside, f"interop-python-{name}")
    if not os.path.isdir(folder):
        partial = tempfile.mkdtemp(prefix="interop-python.", dir=beside)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target", partial]
        done = subprocess.run(
            [*command, "--requirement", file.name], capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode != 0:
            shutil.rmtree(partial, ignore_errors=True)
            lines = [line for line in done.stderr.splitlines() if "ERROR" in line or "No module" in line]
            raise Skip(f"pip cannot fetch it: {(lines or ['no reason given'])[0][:200]}")
        os.rename(partial, folder)
    return folder


def fetched_node(folder):
    """The folder of Node's packages that the lock file in `folder` pins; fetched once and kept beside the build."""
    lock = os.path.join(HERE, folder, "package-lock.json")
    with open(lock, "rb") as file:
        name = hashlib.sha256(file.read()).hexdigest()[:12]
    beside = os.path.dirname(os.path.abspath(os.environ["LARDER"]))
    kept = os.path.join(beside, f"interop-node-{name}")
    if not os.path.isdir(kept):
        npm = needs("npm")
        partial = tempfile.mkdtemp(prefix="interop-node.", dir=beside)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(HERE, folder, file), partial)
        done = subprocess.run(
            [npm, "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=partial, capture_output=True, text=True, timeout=300, check=False,
        )
        if done.returncode != 0:
            shutil.rmtree(partial, ignore_errors=True)
            lines = (done.stderr + done.stdout).strip().splitlines() or ["no reason given"]
            raise Skip(f"npm cannot fetch them: {lines[-1][:200]}")
        os.rename(partial, kept)
    return kept


def gomemcache(suite):
    """Builds the program that drives gomemcache, and returns its path."""
    program = os.path.join(suite.scratch, "gomemcache-client")
    # The versions and sums are pinned, so nothing is looked up, only fetched where it is not cached.
    built = subprocess.run(
        [needs("go"), "build", "-mod=readonly", "-o", program, "."],
        cwd=f"{HERE}/go", capture_output=True, text=True, check=False, timeout=300,
    )
    # Without the module there is no client here; a program that does not compile is a failure.
    unreachable = ("dial tcp", "no such host", "module lookup disabled", "connection refused", "i/o timeout")
    if any(word in built.stderr for word in unreachable):
        raise Skip(f"its module cannot be fetched: {built.stderr.strip().splitlines()[-1]}")
    expect_that(built.returncode == 0, f"the client does not compile: {built.stderr}")
    return program


def run_client(suite, name, command, variant=""):
    """Runs a client's script twice: its items in RAM, then on the SSD.

    The script gets host and port as its last arguments, writes lines to its standard output and reads answers:
      `ok NAME`, `not ok NAME: WHY`, `skip NAME: WHY`    the result of one test
      `settle`         answered with `settled` when what it has set is where this phase wants it
      `ttl KEY`        answered with the seconds left of the key as the wire says it, -1 for ever, `none` for no item
    """
    for tier in ("ram", "ssd"):
        label = f"{variant + ' ' if variant else ''}{tier}"
        if tier == "ssd" and REFERENCE:
            suite.skip(label, "the reference has no SSD")
            continue
        server = ram_server(suite, "-A") if tier == "ram" else ssd_server(suite, "-A")
        run_script(suite, server, [*command, "127.0.0.1", str(server.port)], label, Pusher(server), tier)
        server.stop()


def run_script(suite, server, command, label, pusher, tier):
    errors_path = os.path.join(server.folder, "client-errors")
    with open(errors_path, "wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1
        )
    # A client that hangs is a failure of its own: without this the suite would hang with it.
    alarm = threading.Timer(300, process.kill)
    alarm.start()
    results = 0
    try:
        if not REFERENCE and tier == "ssd":
            pusher.control(b"first")
        for line in process.stdout:
            line = line.rstrip("\n")
            if line == "settle":
                if tier == "ssd":
                    with suite.test(f"{label}: what was set is on the SSD"):
                        pusher.push()
                        if pusher.turn == 1:
                            expect_that(pusher.is_on_ssd(b"first"), "a key set before all others is read from RAM")
                process.stdin.write("settled\n")
            elif line.startswith("ttl "):
                with server.connect() as connection:
                    left = connection.ttl(line[4:].encode())
                process.stdin.write(("none" if left is None else str(left)) + "\n")
            elif line.startswith("ok "):
                results += 1
                suite.ok(f"{label}: {line[3:]}")
            elif line.startswith("not ok "):
                results += 1
                test, _, why = line[7:].partition(": ")
                suite.fail(f"{label}: {test}", why)
            elif line.startswith("skip "):
                test, _, why = line[5:].partition(": ")
                suite.skip(f"{label}: {test}", why)
            else:
                print(f"# {line}", flush=True)
    except BrokenPipeError:
        pass
    finally:
        process.stdin.close()
        process.stdout.close()
        code = process.wait()
        alarm.cancel()
    with open(errors_path, encoding="utf-8", errors="replace") as file:
        errors = file.read().strip()
    if code != 0 or results == 0:
        suite.fail(f"{label}: the client's script", f"ended with {code} after {results} tests: {errors[-2000:]}")
    if not REFERENCE:
        with suite.test(f"{label}: gets were answered from where the phase wants them"):
            hits = pusher.hits_ssd()
            expect_that((hits > 0) == (tier == "ssd"), f"get_hits_ssd is {hits:.0f}")
            expect(server.larder_stats()["ssd_errors"], 0.0, "ssd_errors")
    if not server.is_alive():
        suite.fail(f"{label}: the daemon lives", f"it is gone: {server.log()[-2000:]}")
