"""S15: the tail of a modest reader while hundreds of other clients ask for as much as they can."""

import itertools
import os
import shutil
import time

import proof
from crowd import GREEDY, crowd_apart
from lab import gets
from larder_test import Connection, value_of
from row import Figure, Row, Shown, doubts, middle, not_from_ssd

# The modest reader: one connection, an open loop.
ITEMS = 500_000
VALUE_BYTES = 1000
GETS_A_SECOND = 100
# The clients that are greedy, and those beside which the reader's p99 is the baseline.
CROWD = 600
FEW = 1
# Requests that a greedy client pipelines. It reads whatever arrives, and asks again.
BATCH = 50
READ_BYTES = 1 << 18
LARGE_ITEMS, LARGE_BYTES = 100, 1_000_000
SMALL_ITEMS, SMALL_BYTES = 700, 3_000
# Small items that push the others out of RAM, four times as many as it holds.
FILLER_ITEMS = 80_000

MULTI_GET = b"get " + b" ".join(b"small:%d" % i for i in range(SMALL_ITEMS)) + b"\r\n"
COMMANDS = {
    "get of 1 MB": GREEDY["get"],
    "add to 1 MB": GREEDY["add"],
    "gat of 1 MB": GREEDY["gat"],
    "multi-get of 2 MB": MULTI_GET,
    "all kinds": b"".join(GREEDY.values()),
    # The last, since what was asked for is served for seconds after its clients have gone.
    "stats cachedump": b"stats cachedump 1 0\r\n",
}
LARDER = ["-m", 64, "--conn-memory", "32m", "-I", "8m"]
SSD_MIB = 1536
# Room for everything in RAM.
MEMCACHED = ["-m", 1024, "-I", "8m"]
FIRST_GET_SECONDS_MAX = 5
SETTLE_SECONDS_MAX = 5
# How long larder-bench waits for answers after its window.
DRAIN_SECONDS = 2
SERVED = ("bytes_written", "larder.ssd_bytes_read")
# Keys in another order each time: an item that is read twice may be copied to RAM.
SEEDS = itertools.count(1)


def measure(lab):
    raw = {"larder": [], "memcached": {}}
    with lab.larder(*LARDER, ssd_mib=SSD_MIB) as daemon:
        fill(lab, daemon)
        for _ in range(lab.rounds):
            one = {"alone": read(lab, daemon), "commands": {}}
            for name, request in COMMANDS.items():
                one["commands"][name] = {
                    str(clients): beside(lab, daemon, request, clients) for clients in (FEW, CROWD)
                }
            raw["larder"].append(one)
    # For comparison, and with too little time for more.
    if shutil.which(lab.memcached_program) and not lab.quick:
        with lab.memcached(*MEMCACHED) as daemon:
            fill(lab, daemon)
            raw["memcached"] = {name: beside(lab, daemon, request, CROWD) for name, request in COMMANDS.items()}
    return raw


def fill(lab, daemon):
    with Connection(("127.0.0.1", daemon.port), 60) as connection:
        for prefix, count, size in ((b"large", LARGE_ITEMS, LARGE_BYTES), (b"small", SMALL_ITEMS, SMALL_BYTES)):
            for i in range(count):
                connection.set(b"%b:%d" % (prefix, i), value_of(size))
    lab.store(daemon, ITEMS, VALUE_BYTES)
    lab.store(daemon, FILLER_ITEMS, SMALL_BYTES, "--key-prefix", "filler:")


def read(lab, daemon):
    """The modest reader's run."""
    seconds = 1.2 if lab.quick else 2.0
    words = [*gets(ITEMS, VALUE_BYTES, 1), "--rate", GETS_A_SECOND, "--arrival", "const", "--seed", next(SEEDS)]
    # A generator that sleeps is late by what it takes a virtual core to wake; without a core of its own it must sleep.
    words += ["--spin"] if crowd_cpus(lab) != cores_of(lab.client_cpus) else []
    return lab.load(daemon, *words, seconds=seconds) | {"due_seconds": seconds}


def beside(lab, daemon, request, clients):
    """The same beside greedy clients, and what a new connection meets before."""
    numbers = request.count(b"%d")

    def batch(client):
        return b"".join(
            request % tuple((client + i * 7 + j) % LARGE_ITEMS for j in range(numbers)) for i in range(BATCH)
        )

    before, cpus = connections(daemon), crowd_cpus(lab)
    with crowd_apart(("127.0.0.1", daemon.port), clients, batch, READ_BYTES, seconds=60, cpus=cpus, nice=10):
        first_get_ms = first_get(daemon)
        run = read(lab, daemon)
    # What the crowd has asked for is served until an answer finds that its client has gone.
    proof.wait_until(lambda: connections(daemon) <= before, SETTLE_SECONDS_MAX)
    return {"run": run, "first_get_ms": first_get_ms}


def connections(daemon):
    return int(daemon.stats()["curr_connections"])


def first_get(daemon):
    """The time that the first get of a new connection takes, in ms. A closed connection counts as no answer in time."""
    since = time.monotonic()
    try:
        with Connection(("127.0.0.1", daemon.port), FIRST_GET_SECONDS_MAX) as connection:
            connection.get(b"small:1")
    except OSError:
        return FIRST_GET_SECONDS_MAX * 1000
    return (time.monotonic() - since) * 1000


def crowd_cpus(lab):
    """The cores that neither the server nor the reader has; the reader's where there are no others; None for all."""
    server, reader = cores_of(lab.server_cpus), cores_of(lab.client_cpus)
    return os.sched_getaffinity(0) - server - reader or reader or None


def cores_of(words):
    """The set of cores that taskset means by words such as 1 or 0,2-3."""
    cores = set()
    for word in filter(None, (words or "").split(",")):
        first, _, last = word.partition("-")
        cores |= set(range(int(first), int(last or first) + 1))
    return cores


def p99_ms(run):
    """The reader's. Gets without an answer count as answered when the wait for them ended."""
    get = run["verbs"].get("get", {"count": 0})
    if get["count"] < 0.99 * GETS_A_SECOND * run["due_seconds"]:
        return (run["due_seconds"] + DRAIN_SECONDS) * 1e3
    return get["p99_us"] / 1e3


def p50_ms(run):
    return run["verbs"]["get"]["p50_us"] / 1e3 if "get" in run["verbs"] else p99_ms(run)


def served(run):
    """A run for `doubts`: gets that the server left unanswered are no doubt, they are late."""
    late = {"cut short", "rate"} if "get" in run["verbs"] else set(run["failed"])
    return run | {"failed": {name: says for name, says in run["failed"].items() if name not in late}}


def show(raw):
    rounds = raw["larder"]
    figures, rows, highest = [], [], []
    alone = doubts([one["alone"] | {"failed": {}} for one in rounds], not_from_ssd)
    for name in COMMANDS:
        both = {clients: [one["commands"][name][str(clients)] for one in rounds] for clients in (FEW, CROWD)}
        few, many = ([one["run"] for one in both[clients]] for clients in (FEW, CROWD))
        ratio = Figure(
            name,
            [p99_ms(crowd) / p99_ms(one) for one, crowd in zip(few, many)],
            10,
            digits=1,
            doubts=alone + doubts([served(run) for run in few + many]),
        )
        figures.append(ratio)
        highest += map(p99_ms, many)
        memcached = raw["memcached"].get(name)
        rows.append(
            [
                name,
                proof.spread(list(map(p99_ms, few)), 1),
                proof.spread(list(map(p99_ms, many)), 1),
                ratio.text(),
                f"{middle(list(map(p50_ms, many))):.1f}",
                f"{max(one['first_get_ms'] for one in both[CROWD]):,.0f}",
                *(f"{middle([mb_a_second(run, what) for run in many]):,.0f}" for what in SERVED),
                f"{sum(run['growth'].get('larder.conn_memory_kicks', 0) for run in many):,.0f}",
                f"{p99_ms(memcached['run']):,.1f}" if memcached else "not run",
            ]
        )
    figures.append(Figure("the highest p99 of all", [max(highest)], 100, digits=0, unit="ms"))
    head = [
        "greedy for",
        f"p99 beside {FEW}, ms",
        f"p99 beside {CROWD}, ms",
        "ratio",
        f"p50 beside {CROWD}, ms",
        "first get of a new connection, longest, ms",
        "MB/s sent to all",
        "MB/s read from the SSD",
        "connections closed",
        f"memcached's p99 beside {CROWD}, ms, one run",
    ]
    alone_ms = proof.spread([p99_ms(one["alone"]) for one in rounds], 1)
    notes = [
        f"The reader asks for {GETS_A_SECOND} of {ITEMS:,} items of {VALUE_BYTES:,} B a second, in an open loop on one "
        f"connection: a get's time counts from when it was due, and one without an answer counts as answered "
        f"{DRAIN_SECONDS} s after the run. Alone its p99 is {alone_ms} ms. Each greedy client "
        f"pipelines {BATCH} requests again and again and reads all replies, in a process of lower priority on "
        "other cores if there are any. Before the reader begins, a new connection asks for one item and waits at "
        f"most {FIRST_GET_SECONDS_MAX} s. Larder has one thread, `{' '.join(map(str, LARDER))}`, and everything on the "
        "SSD; memcached has one thread and everything in RAM."
    ]
    return Shown(figures, [("", head, rows)], notes)


def mb_a_second(run, what):
    return run["growth"].get(what, 0) / run["seconds"] / 1e6


ROWS = [
    Row(
        "S15",
        f"p99 of a reader of SSD items at {GETS_A_SECOND} gets/s with {CROWD} greedy connections / with one",
        "10 or less for any command; never over 100 ms",
        "itself beside one greedy connection; memcached for comparison",
        measure,
        show,
    )
]
