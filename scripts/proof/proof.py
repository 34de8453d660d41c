"""What the proof scripts share: starting daemons, machine facts, tables, and raw figures beside them."""

import argparse
import json
import os
import platform
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/interop"))

from larder_test import Connection, clean_environment, numbers, wait_until  # noqa: E402  (found by the line above)

MIB = 1 << 20


def options(description):
    """The options every proof has. The script's own come on top."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--larder", default=os.environ.get("LARDER"), help="the daemon (default: $LARDER)")
    parser.add_argument("--folder", required=True, help="where the SSD file goes: on the device to be measured")
    parser.add_argument("--out", default=".", help="where the table and the raw figures go (default: here)")
    parser.add_argument("--server-cpus", help="pin daemons to these cores, as in 0 or 0,1")
    parser.add_argument("--client-cpus", help="pin clients to these cores")
    return parser


def need(path, name):
    if not path or not shutil.which(path):
        sys.exit(f"{name} is needed: {path or 'give its path'} is no program")
    return shutil.which(path)


def pinned(cpus, command):
    return ["taskset", "-c", cpus, *command] if cpus else command


class Daemon:
    """A server started for a proof, on a port of its own."""

    def __init__(self, folder, command, cpus=None, port=None):
        self.command = [str(word) for word in command]
        port_file = os.path.join(folder, f"port-{os.getpid()}-{time.monotonic_ns()}")
        environment = clean_environment() | ({"MEMCACHED_PORT_FILENAME": port_file} if port is None else {})
        # The message of a daemon that does not start belongs on the screen.
        self.process = subprocess.Popen(
            pinned(cpus, self.command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment
        )
        ready = (lambda: os.path.exists(port_file)) if port is None else (lambda: accepts(port))
        if not wait_until(lambda: self.process.poll() is not None or ready(), 120) or self.process.poll() is not None:
            self.stop()
            raise RuntimeError(f"{' '.join(self.command)} did not start")
        if port is None:
            with open(port_file, encoding="ascii") as file:
                port = int(re.search(r"TCP INET: (\d+)", file.read())[1])
            os.remove(port_file)
        self.port = port

    @property
    def pid(self):
        return self.process.pid

    def stats(self, what=b""):
        with Connection(("127.0.0.1", self.port), 60) as connection:
            return connection.stats(what)

    def larder(self):
        """The lines of `stats larder` that are numbers."""
        return numbers(self.stats(b"larder"))

    def memory(self):
        """Lines of /proc/PID/status that are sizes, in bytes."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return {name: int(kib) * 1024 for name, kib in re.findall(r"^(\w+):\s+(\d+) kB$", file.read(), re.M)}

    def cpu_seconds(self):
        """User and system time of the process."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        """Ends it as a crash would, at once."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def device_of(folder):
    """The name of the block device below a folder; None where there is none to be seen."""
    number = os.stat(folder).st_dev
    with open("/proc/diskstats", encoding="ascii") as file:
        for line in file:
            fields = line.split()
            if (int(fields[0]), int(fields[1])) == (os.major(number), os.minor(number)):
                return fields[2]
    return None


def lines_of(command):
    """What a command says, line by line; nothing if it cannot be run."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return []
    return (ran.stdout + ran.stderr).strip().splitlines()


def first_line(command):
    return next(iter(lines_of(command)), None)


def machine(folder):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    with open("/proc/meminfo", encoding="ascii") as file:
        memory = int(re.search(r"MemTotal:\s+(\d+)", file.read())[1]) * 1024
    return {
        "cpu": model[1] if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30, 1),
        "kernel": platform.release(),
        "device": device_of(folder) or "not seen",
        "file_system": first_line(["stat", "-f", "-c", "%T", folder]),
        "date": time.strftime("%Y-%m-%d"),
    }


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def spread(values, digits=0):
    """The median, and the least and the largest beside it."""
    middle, least, most = (f"{value:,.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least}-{most})" if len(values) > 1 else middle


def publish(name, out, title, body, raw, facts):
    """Prints the page, writes it, and the raw figures beside it. Paths in the command are left as they were given."""
    command = " ".join([os.path.join("scripts/proof", os.path.basename(sys.argv[0])), *sys.argv[1:]])
    about = "; ".join(f"{key.replace('_', ' ')} {value}" for key, value in facts.items())
    # The comment is for tests/interop/pages, which runs the commands of all pages.
    made_by = f"<!-- not run: it takes minutes to an hour of a machine that does nothing else -->\n```sh\n{command}\n```"
    page = f"# {title}\n\n{body}\n\nMachine: {about}.\n\nMade by:\n\n{made_by}\n"
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, f"{name}.md"), "w", encoding="utf-8") as file:
        file.write(page)
    with open(os.path.join(out, f"{name}.json"), "w", encoding="utf-8") as file:
        json.dump({"command": sys.argv, "machine": facts, **raw}, file, indent=1)
        file.write("\n")
    print(page)
