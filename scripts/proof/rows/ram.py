"""S8, S9, S10: gets that RAM serves, beside memcached with one thread on the same core."""

import contextlib

from lab import gets
from row import Figure, Row, Shown, busiest, doubts, hits, middle

VALUE_BYTES = 100
ITEMS = 300_000


@contextlib.contextmanager
def both(lab, items, *options):
    """Larder and memcached side by side with the same items; idle, neither is in the other's way."""
    with contextlib.ExitStack() as stack:
        servers = {
            "larder": stack.enter_context(lab.larder(*options)),
            "memcached": stack.enter_context(lab.memcached(*options)),
        }
        for daemon in servers.values():
            lab.fill(daemon, items, VALUE_BYTES)
        yield servers


def measure(lab, servers, loads):
    """Pairs for each load: larder-bench's words by name."""
    pairs = {name: [] for name in loads}
    for _ in range(lab.rounds):
        for name, words in loads.items():
            runs = {server: lab.load(daemon, *words, seconds=lab.seconds) for server, daemon in servers.items()}
            pairs[name].append(runs)
    return pairs


def sides(pairs):
    return [pair["larder"] for pair in pairs], [pair["memcached"] for pair in pairs]


def p99_us(run):
    return run["verbs"]["get"]["p99_us"]


def ratios(pairs, value):
    """Larder's over memcached's, pair by pair."""
    return [value(pair["larder"]) / value(pair["memcached"]) for pair in pairs]


HEAD = [
    "load",
    "larder CPU us/get",
    "memcached CPU us/get",
    "CPU ratio",
    "larder p99 us",
    "memcached p99 us",
    "p99 ratio",
    "larder gets/s",
    "memcached gets/s",
    "generator CPU",
]


def show(raw, cpu_most, p99_most=None):
    figures, rows = [], []
    for name, pairs in raw.items():
        larder, memcached = sides(pairs)
        reasons = doubts(larder) + doubts(memcached)
        cpu = Figure(f"CPU, {name}", ratios(pairs, lambda run: run["server_cpu_us"]), cpu_most, doubts=reasons)
        p99 = Figure(f"p99, {name}", ratios(pairs, p99_us), p99_most, doubts=reasons)
        figures += [cpu] if p99_most is None else [cpu, p99]
        rows.append(
            [
                name,
                *(f"{middle([run['server_cpu_us'] for run in runs]):.2f}" for runs in (larder, memcached)),
                cpu.text(),
                *(f"{middle([p99_us(run) for run in runs]):,.0f}" for runs in (larder, memcached)),
                p99.text(),
                *(f"{middle([run['rate'] for run in runs]):,.0f}" for runs in (larder, memcached)),
                f"{busiest(larder)}, {busiest(memcached)}",
            ]
        )
    return Shown(figures, [("", HEAD, rows)])


# S8: deep pipelines.


def measure_deep(lab):
    items = lab.items(ITEMS)
    with both(lab, items, "-m", 1024) as servers:
        # A thread for each of the generator's cores: one alone cannot fill such a server.
        threads = len(lab.client_cpus.split(",")) if lab.client_cpus else 1
        words = [*gets(items, VALUE_BYTES, 16, 32), "-t", threads]
        return measure(lab, servers, {protocol: [*words, "-P", protocol] for protocol in ("text", "meta")})


def show_deep(raw):
    shown = show(raw, 0.60)
    shown.notes.append(
        "memcached 1.6.18 answers each pipelined text get with a system call of its own, and meta commands in one "
        "piece: quote the ratio of meta."
    )
    return shown


# S9: one at a time.


# Few enough connections that a generator on one core has room beside a server on another, and so many as keep both busy.
SINGLE_CONNECTIONS = (4, 16)
SINGLE_RATE = 10_000


def measure_single(lab):
    items = lab.items(ITEMS)
    loads = {f"closed loop, {count} x 1": gets(items, VALUE_BYTES, count, 1) for count in SINGLE_CONNECTIONS}
    # Awake between requests: a generator that sleeps is late by what it takes a virtual core to wake.
    open_loop = ["--rate", SINGLE_RATE, "--arrival", "const", "--spin"]
    loads[f"open loop, {SINGLE_RATE:,}/s"] = [*gets(items, VALUE_BYTES, 16), *open_loop]
    with both(lab, items, "-m", 1024) as servers:
        return measure(lab, servers, loads)


def show_single(raw):
    shown = show(raw, 1.00, 1.00)
    shown.notes.append(
        "In a closed loop each server gets as many requests as it answers. 16 connections fill the generator's core, so "
        "that load is shown and does not count. In the open loop both get the same rate, at which they sleep between "
        "requests: most of a request's CPU time is waking up."
    )
    return shown


# S10: a hundred keys at once, of more than the processor's caches hold.

MULTI = 100


def measure_multi(lab):
    # memcached takes some 200 bytes an item.
    items = lab.items(10_000_000)
    loads = {f"16 x {depth}": [*gets(items, VALUE_BYTES, 16, depth), "--multi-key-get", MULTI] for depth in (1, 4)}
    with both(lab, items, "-m", items * 240 >> 20) as servers:
        return measure(lab, servers, loads)


def show_multi(raw):
    figures, rows = [], []
    for name, pairs in raw.items():
        larder, memcached = sides(pairs)
        reasons = doubts(larder) + doubts(memcached)
        rate = Figure(
            f"rate, {name}", ratios(pairs, lambda run: hits(run) / run["seconds"]), 2.0, is_most=False, doubts=reasons
        )
        cpu = Figure(f"CPU a key, {name}", ratios(pairs, lambda run: run["server_cpu_us"]), None)
        figures += [rate, cpu]
        rows.append(
            [
                name,
                *(f"{middle([hits(run) / run['seconds'] for run in runs]):,.0f}" for runs in (larder, memcached)),
                rate.text(),
                *(f"{middle([run['server_cpu_us'] / MULTI for run in runs]):.3f}" for runs in (larder, memcached)),
                cpu.text(),
                f"{busiest(larder)}, {busiest(memcached)}",
            ]
        )
    head = [
        "connections x depth",
        "larder keys/s",
        "memcached keys/s",
        "ratio",
        "larder CPU us/key",
        "memcached CPU us/key",
        "CPU ratio",
        "generator CPU",
    ]
    return Shown(
        figures,
        [("", head, rows)],
        ["Where the generator is full, the ratio of processor time is what is left to see."],
    )


ROWS = [
    Row(
        "S8",
        "RAM gets pipelined 32 deep: server CPU a request, relative to memcached",
        "0.60 of memcached or less",
        "memcached",
        measure_deep,
        show_deep,
        ("memcached",),
    ),
    Row(
        "S9",
        "RAM gets unpipelined: server CPU a request, and p99",
        "1.00 of memcached or less, each",
        "memcached",
        measure_single,
        show_single,
        ("memcached",),
    ),
    Row(
        "S10",
        "multi-get of 100 keys over 10 M RAM-resident items",
        "2 times memcached's rate",
        "memcached",
        measure_multi,
        show_multi,
        ("memcached",),
    ),
]
