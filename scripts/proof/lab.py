"""What rows are measured with: servers on one core, larder-bench on the other, fio on the servers' own."""

import contextlib
import csv
import json
import os
import shutil
import subprocess
import time

import proof

# Of a run's windows, what is kept for plots.
PERCENTILES = ("p50_ns", "p99_ns", "p999_ns")
# fio's paced writes: depth 1, so that they do not stand in the way of reads more than they must.
WRITE_KIB = 256
WRITE_FILE_MIB = 1024
EXTSTORE_SETS_A_SECOND = 50_000
# For a server that makes its values up.
UNVERIFIED = ("--verify", "off")


class Lab:
    """A folder on the device to be measured, the programs, the cores, and how long and how often to measure.

    `quick` is for trying the rows: fewer rounds, shorter runs, a quarter of the items.
    """

    def __init__(self, args):
        self.folder = os.path.abspath(args.folder)
        self.larder_program, self.bench, self.memcached_program = args.larder, args.bench, args.memcached
        self.bare_program, self.examples, self.python = args.bare, args.examples, args.python
        self.server_cpus, self.client_cpus = args.server_cpus, args.client_cpus
        self.quick = args.quick
        self.rounds = 2 if self.quick else 5
        self.seconds = 1 if self.quick else 3
        self.device = proof.device_of(self.folder)
        self.as_root = ["-u", "root"] if os.getuid() == 0 else []

    def items(self, full):
        return full // 4 if self.quick else full

    def path(self, name):
        return os.path.join(self.folder, f"{name}-{os.getpid()}")

    # Servers. Each is a context: it and its files are gone at the end.

    def larder_command(self, *options, ssd=None, port=-1):
        """`ssd` is the SSD file's path and size, as in /folder/file:4g."""
        fixed = f"-t 1 -p {port} -l 127.0.0.1 --ssd-write-wait 30000 --ssd".split()
        return [self.larder_program, *self.as_root, *fixed, ssd or "none", *options]

    @contextlib.contextmanager
    def larder(self, *options, ssd_mib=None, group=()):
        path = self.path("larder.ssd")
        command = self.larder_command(*options, ssd=f"{path}:{ssd_mib}m" if ssd_mib else None)
        with self._serve([*group, *command], path) as daemon:
            yield daemon

    @contextlib.contextmanager
    def memcached(self, *options):
        with self._serve(self._memcached_command(options)) as daemon:
            yield daemon

    @contextlib.contextmanager
    def extstore(self, *options, ssd_mib, group=()):
        """memcached with its SSD tier, told to move items there soon and small ones too, and with threads to spare."""
        path = self.path("extstore")
        tier = f"ext_page_size=8,ext_wbuf_size=4,ext_path={path}:{ssd_mib}m,"
        tier += "ext_item_size=64,ext_item_age=1,ext_threads=8"
        with self._serve([*group, *self._memcached_command(["-o", tier, *options])], path) as daemon:
            yield daemon

    @contextlib.contextmanager
    def bare(self, mib, value_bytes):
        """A server that only reads a page for each get: see crates/server/examples/bare.rs."""
        path = self.path("bare")
        with self._serve([self.bare_program, path, mib, value_bytes], path) as daemon:
            yield daemon

    def _memcached_command(self, options):
        return [self.memcached_program, "-t", 1, "-p", "-1", "-l", "127.0.0.1", *self.as_root, *options]

    @contextlib.contextmanager
    def _serve(self, command, path=None):
        daemon = None
        try:
            daemon = proof.Daemon(self.folder, command, self.server_cpus)
            daemon.ssd_path, daemon.is_larder = path, self.larder_program in command
            yield daemon
        finally:
            if daemon:
                daemon.stop()
            if path and os.path.exists(path):
                os.remove(path)

    # The client.

    def example(self, name, *words, cpus=None, environment=None):
        """Runs one of the client's examples and returns what it prints."""
        return printed([os.path.join(self.examples, name), *words], cpus, environment)

    # Load.

    def begin(self, daemon, *options, seconds=None, warmup=0.5, windows=False, nice=0):
        """Starts larder-bench against a server; `seconds` may be left to the options (as -n)."""
        words = f"-s 127.0.0.1 -p {daemon.port} --no-calibrate --warmup {round(warmup * 1000)}ms".split()
        words += options
        if seconds:
            words += ["-d", f"{round(seconds * 1000)}ms"]
        if self.device:
            words += ["--iostat", self.folder]
        if self.client_cpus:
            words += ["--cpus", self.client_cpus]
        return Load(self.bench, self.path("load"), words, windows, nice)

    def load(self, daemon, *options, **more):
        """Runs larder-bench to its end and answers what it saw (see `seen`)."""
        with self.begin(daemon, *options, **more) as load:
            return load.end()

    def load_beside(self, flow, daemon, *options, seconds, **more):
        """The same while another larder-bench does `flow` for longer, on the same core. Answers both.

        The other one is nice, so that the times seen here are not those of waiting for the core.
        """
        with self.begin(daemon, *flow, seconds=seconds + 1.5, warmup=0, nice=10) as beside:
            time.sleep(0.4)
            return self.load(daemon, *options, seconds=seconds, **more), beside.end()

    def fill(self, daemon, items, value_bytes, *options):
        """Stores every key once, each confirmed, and waits until what is to be written is."""
        words = f"-k {items} --value-size {value_bytes} --prefill --ratio 0:1 --expect-misses".split()
        self.load(daemon, *words, *options, seconds=0.2, warmup=0)
        if daemon.is_larder:
            proof.wait_until(lambda: daemon.larder()["ssd_writes_pending"] == 0, 30)

    def store(self, daemon, items, value_bytes, *options):
        """Stores every key once and reads none, so that nothing counts as popular."""
        words = f"-k {items} --value-size {value_bytes} --key-pattern seq --ratio 1:0 -n {items}".split()
        words += "-c 16 --pipeline 8".split()
        run = self.load(daemon, *words, *options, warmup=0)
        if run["requests"] != items:
            raise RuntimeError(f"{run['requests']:,} of {items:,} items were stored")
        if daemon.is_larder:
            proof.wait_until(lambda: daemon.larder()["ssd_writes_pending"] == 0, 30)

    def fill_extstore(self, daemon, items, value_bytes):
        """The same for extstore, which drops items when they come faster than it can make room for their headers."""
        words = f"-k {items} --value-size {value_bytes} --key-pattern seq --ratio 1:0 -n {items}".split()
        self.load(daemon, *words, "--rate", EXTSTORE_SETS_A_SECOND, warmup=0)
        time.sleep(3)

    # The device itself.

    def fio(self, path, mib, depth, write_mb_a_second=None, reads_a_second=None):
        """4 KiB reads at random in `mib` MiB of a file, as many as there can be or so many a second, beside paced writes
        to another if a rate is given."""
        reads = [
            "--name=reads",
            f"--filename={path}",
            "--rw=randread",
            "--bs=4k",
            "--registerfiles",
            "--fixedbufs",
            f"--iodepth={depth}",
            "--offset=1m",
            f"--size={mib}m",
            *([f"--rate_iops={reads_a_second}"] if reads_a_second else []),
        ]
        if write_mb_a_second:
            reads += [
                "--name=writes",
                f"--filename={self.path('fio')}",
                "--rw=write",
                f"--bs={WRITE_KIB}k",
                "--iodepth=1",
                f"--size={WRITE_FILE_MIB}m",
                f"--rate=,{round(write_mb_a_second * 1_000_000)}",
            ]
        jobs = self._fio(reads)
        found = {"reads_a_second": jobs["reads"]["read"]["iops"], "read_p99_us": p99_us(jobs["reads"]["read"])}
        if write_mb_a_second:
            found["written_mb_a_second"] = jobs["writes"]["write"]["bw_bytes"] / 1e6
        return found

    def fio_write_mb_a_second(self):
        """What the device writes at most: sequential pieces of 1 MiB, four at once."""
        jobs = self._fio(
            [
                "--name=writes",
                f"--filename={self.path('fio')}",
                "--rw=write",
                "--bs=1m",
                "--iodepth=4",
                f"--size={WRITE_FILE_MIB}m",
            ]
        )
        return jobs["writes"]["write"]["bw_bytes"] / 1e6

    def _fio(self, jobs):
        command = [
            "fio",
            "--output-format=json",
            "--direct=1",
            "--ioengine=io_uring",
            "--time_based",
            f"--runtime={self.seconds}",
            *jobs,
        ]
        ran = subprocess.run(proof.pinned(self.server_cpus, command), stdout=subprocess.PIPE, text=True, check=True)
        return {job["jobname"]: job for job in json.loads(ran.stdout[ran.stdout.index("{") :])["jobs"]}

    def forget_fio(self):
        """Removes the file that fio has written."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path("fio"))


def gets(items, value_bytes, connections, depth=None):
    """larder-bench's words for gets of keys that were filled; `depth` is of a closed loop."""
    words = f"-k {items} --value-size {value_bytes} --ratio 0:1 -c {connections}".split()
    return [*words, "--pipeline", depth] if depth else words


def printed(command, cpus=None, environment=None):
    """Runs a command and returns what it prints; `environment` is added to this process's own."""
    command = proof.pinned(cpus, [str(word) for word in command])
    environment = os.environ | (environment or {})
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout


def p99_us(direction):
    return direction.get("clat_ns", {}).get("percentile", {}).get("99.000000", 0) / 1e3


class Load:
    """A larder-bench that runs. As a context it is ended with it."""

    def __init__(self, program, base, words, windows, nice):
        self.program, self.windows = program, windows
        self.out = f"{base}-{time.monotonic_ns()}"
        command = ["nice", "-n", nice, program, "run", "--quiet", "--json", self.out, *words]
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.out)

    def end(self):
        """Waits for it. A run that was cut short (status 1), saw a wrong value (4) or is not certified (5) says so."""
        said, _ = self.process.communicate()
        if self.process.returncode not in (0, 1, 4, 5) or not os.path.exists(self.out):
            raise RuntimeError(f"larder-bench ended with {self.process.returncode}: {said}")
        with open(self.out, encoding="utf-8") as file:
            found = seen(json.load(file)["runs"][0])
        if self.windows:
            found["windows"] = self._windows()
        return found

    def _windows(self):
        folder = f"{self.out}.report"
        subprocess.run([self.program, "report", self.out, "-o", folder], stdout=subprocess.DEVNULL, check=True)
        with open(os.path.join(folder, "timeseries.csv"), encoding="utf-8") as file:
            rows = [
                {"second": float(row["second"]), **{name: int(row[name]) for name in PERCENTILES}}
                for row in csv.DictReader(file)
            ]
        shutil.rmtree(folder)
        return rows


def seen(run):
    """Of a run, what rows need: rates, times, the server's CPU, and everything that could make it worthless."""
    verbs = {
        verb["name"]: {name: verb[name] for name in ("count", "hits", "misses", "errors")}
        | {f"{name}_us": verb["response_ns"][name] / 1e3 for name in ("p50", "p99", "p999")}
        for verb in run["verbs"]
    }
    requests = sum(verb["count"] for verb in verbs.values())
    watch = run["watch"]
    user_us, system_us = (sum(sample[f"cpu_{kind}_us"] for sample in watch["process"]) for kind in ("user", "system"))
    found = {
        "seconds": run["seconds"],
        "requests": requests,
        "rate": requests / run["seconds"],
        "verbs": verbs,
        "hits_by_second": [second["hits"] for second in run["intervals"]],
        "server_cpu_us": (user_us + system_us) / max(requests, 1),
        "server_user_us": user_us / max(requests, 1),
        "busiest_thread": run["generator"]["busiest_thread"],
        "waiting_thread": run["generator"]["most_waiting_thread"],
        "verified": run["verified"]["checked"],
        "wrong": run["verified"]["wrong"],
        "failed": {check["name"]: check["says"] for check in run["checks"] if check["verdict"] == "fail"},
        "growth": {name: value for name, value in watch["stats_growth"].items() if value},
    }
    if run["cut_short"]:
        found["failed"]["cut short"] = run["cut_short"]
    if watch["device"]:

        def total(name):
            return sum(sample[name] * sample["interval_ms"] / 1000 for sample in watch["device"])

        found["device"] = {"reads": round(total("reads")), "written_bytes": round(total("written_bytes"))}
    return found
