"""C1 to C9: the cache in shared memory, alone and in front of a server, and rate limits."""

import os
import re
import sys

from lab import printed
from proof import spread
from row import Figure, Row, Shown, middle

INTRODUCTION = """\
Each row is a target. If there is a peer, it is measured in the same run, in turns; the figures are medians, with the
lowest and the highest of all rounds. **Shared memory** is the cache that the processes of a host share; a **host** is here
a cache of its own. The machines are small, shared and virtual: rely on ratios, and take absolute figures as a rough
guide. `make bench ROW=C1` measures one row."""

HERE = os.path.dirname(os.path.abspath(__file__))
KILLS = 10_000
CLIENTS = 64


def python_ns(lab, what, value_bytes):
    script = os.path.join(HERE, "..", "l1_python.py")
    return float(printed([lab.python, script, what, value_bytes], lab.client_cpus))


# C1


def measure_get(lab):
    rounds = []
    for _ in range(lab.rounds):
        table = lab.example("l1_times", cpus=lab.client_cpus)
        rounds.append(
            {
                "rust_ns": float(re.search(r"^ +64 +([0-9.]+)", table, re.M)[1]),
                "python_ns": python_ns(lab, "larder", 64),
                "warp_cache_ns": python_ns(lab, "warp_cache", 64),
            }
        )
    return {"rounds": rounds, "table": table}


def show_get(raw):
    def values(name):
        return [one[name] for one in raw["rounds"]]

    figures = [
        Figure("a get in Rust", values("rust_ns"), 60, digits=0, unit="ns"),
        Figure("a get in Python", values("python_ns"), 150, digits=0, unit="ns"),
        Figure("warp_cache's shared cache in Python", values("warp_cache_ns"), None, digits=0, unit="ns"),
    ]
    rows = [line.split() for line in raw["table"].splitlines()[1:] if not line.split()[0] == "miss"]
    miss = float(raw["table"].split()[-1])
    notes = [f"A key that is missing takes {miss:.0f} ns."]
    return Shown(figures, [("In Rust, one round:", ["bytes", "get, ns", "set, ns"], rows)], notes)


# C2


def measure_beside_perl(lab):
    perl = ["perl", os.path.join(HERE, "..", "l1_perl.pl")]
    return {
        "rounds": [
            {
                "bytes": size,
                "python_ns": python_ns(lab, "larder", size),
                "perl_ns": float(printed([*perl, size], lab.client_cpus)),
            }
            for _ in range(lab.rounds)
            for size in (64, 9_000, 28_579)
        ]
    }


def show_beside_perl(raw):
    sizes = sorted({one["bytes"] for one in raw["rounds"]})
    of_size = {size: [one for one in raw["rounds"] if one["bytes"] == size] for size in sizes}
    figures = [
        Figure(
            f"a get of {size:,} B, relative to Perl's",
            [one["python_ns"] / one["perl_ns"] for one in rounds],
            0.33 if size == 9_000 else None,
        )
        for size, rounds in of_size.items()
    ]
    rows = [
        [f"{size:,}", *(spread([one[name] for one in rounds]) for name in ("python_ns", "perl_ns"))]
        for size, rounds in of_size.items()
    ]
    return Shown(figures, [("", ["bytes", "larder in Python, ns", "Cache::FastMmap in Perl, ns"], rows)])


# C5


def measure_together(lab):
    def calls_a_second(cpus, *words):
        return float(re.search(r": (\d+) calls", lab.example("l1_times", *words, cpus=cpus))[1])

    def a_round():
        return {"one": calls_a_second("1", 1), "two": calls_a_second("0,1", 2), "apart": calls_a_second("0,1", "apart", 2)}

    return {"rounds": [a_round() for _ in range(4 * lab.rounds)]}


def show_together(raw):
    ratios = [one["two"] / one["one"] for one in raw["rounds"]]
    rows = [
        [name, spread([one[key] / 1e6 for one in raw["rounds"]], 1)]
        for name, key in (
            ("one process", "one"),
            ("two processes on two cores", "two"),
            ("two on two cores, with a cache each", "apart"),
        )
    ]
    figures = [
        Figure("two processes, relative to one", ratios, 1.8, is_most=False),
        Figure("two with a cache each, relative to one", [one["apart"] / one["one"] for one in raw["rounds"]], None),
        Figure("two that share one, relative to those", [one["two"] / one["apart"] for one in raw["rounds"]], None),
    ]
    notes = ["Two processes with a cache each share nothing but the machine: their figure is what the host leaves of two cores."]
    return Shown(figures, [("", ["", "million calls/s"], rows)], notes)


# C6


def measure_kills(lab):
    kills = KILLS // 20 if lab.quick else KILLS
    test = "cargo test -q -p larder-client --test l1_processes processes_killed_under_load -- --nocapture"
    said = printed(test.split(), environment={"LARDER_L1_KILLS": str(kills)})
    pattern = r"^(\d+) kills, (\d+) calls, (\d+) hits; longest (\d+) us, (\d+) slow, (\d+) waits over 10 ms; (.*)$"
    line = re.search(pattern, said, re.M)
    names = ("kills", "calls", "hits", "longest_us", "slow", "over_10_ms")
    return {name: int(value) for name, value in zip(names, line.groups())} | {"stats": line[7], "wrong": 0}


def show_kills(raw):
    figures = [
        Figure("torn or wrong values", [raw["wrong"]], 0, digits=0),
        Figure("waits of more than 10 ms", [raw["over_10_ms"]], 0, digits=0),
    ]
    notes = [
        f"{raw['kills']:,} kills of one of four processes under load; {raw['calls']:,} calls, {raw['hits']:,} of them hits. "
        "The test fails at the first value that is wrong, and if a shard is emptied. "
        f"The longest call took {raw['longest_us'] / 1e3:.1f} ms. Not counted as a wait is the time for which the process was "
        "ready to run and another had its processor, the same of the one that held the lock (the kernel counts both, in "
        "`schedstat`), and the time for which its processor ran nothing, as a real-time thread on each processor notes. "
        f"{raw['slow']:,} calls took longer than 10 ms beyond the first of these. Two tests show that a wait for a holder which is "
        "stopped inside of the lock is counted, and that one for a holder which is given no processor is not.",
        f"Counts of the cache: `{raw['stats']}`.",
    ]
    return Shown(figures, [], notes)


# C7


def measure_herd(lab):
    found = []
    with lab.memcached() as memcached, lab.larder() as larder:
        for name, daemon in (("memcached", memcached), ("larder", larder)):
            for hosts in (1, 4):
                words = [f"127.0.0.1:{daemon.port}", CLIENTS, hosts, 2 * lab.rounds]
                lines = lab.example("herd", *words).splitlines()
                found += [{"server": name, "hosts": hosts, **pairs(line)} for line in lines]
    return {"rounds": found}


def pairs(line):
    """Reads `name value name value`."""
    words = line.split()
    return {name: float(value) for name, value in zip(words[::2], words[1::2])}


def show_herd(raw):
    kinds = sorted({(one["server"], one["hosts"]) for one in raw["rounds"]})
    figures, rows = [], []
    for server, hosts in kinds:
        rounds = [one for one in raw["rounds"] if (one["server"], one["hosts"]) == (server, hosts)]
        name = f"creations, {hosts} host{'s' if hosts > 1 else ''}, {server}"
        figures.append(Figure(name, [max(one["creations"] for one in rounds)], 1, digits=0))
        longest = spread([one["longest_ms"] for one in rounds])
        rows.append([server, hosts, CLIENTS, len(rounds), int(sum(one["creations"] for one in rounds)), longest])
    head = ["server", "hosts", "processes", "rounds", "creations in all", "the last has the value after, ms"]
    note = f"A creation takes {raw['rounds'][0]['creation_ms']:.0f} ms."
    return Shown(figures, [("", head, rows)], [note])


# C8


def measure_limits(lab):
    found = []
    with lab.memcached() as memcached, lab.larder() as larder:
        for name, daemon in (("memcached", memcached), ("larder", larder)):
            for kind in ("fixed", "gcra"):
                words = [f"127.0.0.1:{daemon.port}", kind, CLIENTS, 2 * lab.seconds]
                for _ in range(lab.rounds):
                    found.append({"server": name, "kind": kind, **pairs(lab.example("limit_crowd", *words))})
    return {"rounds": found, "seconds": 2 * lab.seconds}


def show_limits(raw):
    names = {"fixed": "fixed window", "gcra": "GCRA"}
    kinds = sorted({(one["server"], one["kind"]) for one in raw["rounds"]})
    figures, rows = [], []
    for server, kind in kinds:
        rounds = [one for one in raw["rounds"] if (one["server"], one["kind"]) == (server, kind)]
        beyond = [max(one["beyond"] for one in rounds)]
        lost = sum(one["failed"] for one in rounds)
        doubts = [f"{lost:.0f} requests could not be decided"] if lost else []
        figures.append(Figure(f"passed beyond the bound, {names[kind]}, {server}", beyond, 0, digits=0, doubts=doubts))
        rows.append([server, names[kind], *(spread([one[name] for one in rounds]) for name in ("asked", "passed", "beyond"))])
    head = ["server", "limit of 100 a second", f"asked in {raw['seconds']} s", "passed", "beyond"]
    note = f"{CLIENTS} processes ask for one key as fast as they can."
    return Shown(figures, [("", head, rows)], [note])


# C9


READERS, HOSTS, CHANGES = 8, 2, 300
# Distances each way in microseconds, and what the reads ask for: `exact_within` in microseconds, or two round trips.
PUSHED = ((0, "1000"), (500, "trips"))


def measure_pushed(lab):
    rounds = []
    with lab.larder() as daemon:
        for delay_us, within in PUSHED:
            for _ in range(lab.rounds):
                millions = 1 if lab.quick else 10
                words = (f"127.0.0.1:{daemon.port}", READERS, HOSTS, CHANGES, millions, delay_us, within)
                text = lab.example("pushed", *words)
                lines = {line.split()[0]: pairs(line.split(None, 1)[1]) for line in text.splitlines() if " p50 " in line}
                reads = pairs(re.search(r"^reads .*$", text, re.M)[0])
                rounds.append(
                    {
                        "delay_us": delay_us,
                        "within": within,
                        "bound_us": pairs(re.search(r"^bound_us .*$", text, re.M)[0])["bound_us"],
                        "trip_us": lines["round_trip_us"]["p50"],
                        "seen_us": lines["seen_by_all_us"]["p50"],
                        "seen_p99_us": lines["seen_by_all_us"]["p99"],
                        "late_most_us": lines["late_us"]["most"],
                        "reads": reads["reads"],
                        "of_shared_memory": reads["of_shared_memory"],
                        "marked": reads["marked_stale"],
                        "beyond": reads["beyond"],
                    }
                )
    return {"rounds": rounds}


def show_pushed(raw):
    figures, rows = [], []
    for delay_us in sorted({one["delay_us"] for one in raw["rounds"]}):
        rounds = [one for one in raw["rounds"] if one["delay_us"] == delay_us]
        where = f"{delay_us / 1000:g} ms away" if delay_us else "loopback"
        trips = [one["seen_us"] / one["trip_us"] for one in rounds]
        figures.append(Figure(f"round trips until a change is seen by all, {where}", trips, 2 if delay_us else None))
        beyond = [one["beyond"] / one["reads"] * 1e7 for one in rounds]
        bound = "two round trips" if rounds[0]["within"] == "trips" else f"{rounds[0]['bound_us'] / 1000:g} ms"
        figures.append(Figure(f"of 10 M reads, those late by more than {bound}, {where}", beyond, 0, digits=0))
        asked = [100 * (1 - one["of_shared_memory"] / one["reads"]) for one in rounds]
        names = ("trip_us", "bound_us", "seen_us", "seen_p99_us", "late_most_us")
        rows.append([where, *(spread([one[name] for one in rounds], 0) for name in names), spread(asked, 2)])
    head = ["server", "round trip, us", "exact within, us", "seen by all, p50, us", "p99, us", "latest read, us", "reads that asked, %"]
    notes = [
        f"{READERS} processes of {HOSTS} hosts read while one changes values; {CHANGES} changes are waited for. "
        f"Values that are marked as stale count as others do: there were {sum(one['marked'] for one in raw['rounds']):.0f}.",
        "The reads are exact within a time ([how](../decisions/0018-exact-reads.md)): 0.5 ms away within two round trips, as "
        "measured before. Over loopback a round trip is shorter than the kernel takes to wake a thread, and a change "
        "reaches a reader by way of three of them. So two round trips mean nothing there, and the bound is 1 ms.",
    ]
    return Shown(figures, [("", head, rows)], notes)


ROWS = [
    Row(
        "C1", "a get of 64 B from shared memory, hot", "60 ns in Rust, 150 ns in Python", "warp_cache", measure_get, show_get
    ),
    Row(
        "C2",
        "a get of 9,000 B from shared memory in Python, relative to Cache::FastMmap in Perl",
        "0.33 or less",
        "Cache::FastMmap",
        measure_beside_perl,
        show_beside_perl,
        ("perl",),
    ),
    Row(
        "C5",
        "two processes on two cores that share a cache, 99 % reads, relative to one",
        "1.8 or more",
        "itself",
        measure_together,
        show_together,
    ),
    Row("C6", "10,000 kills of random processes under load", "no wrong value, no wait over 10 ms", None, measure_kills, show_kills),
    Row("C7", "creations of a value that 64 processes miss at once", "1 on one host, 1 on four", None, measure_herd, show_herd),
    Row("C8", "what passes a limit beyond its bound, 64 processes", "0", None, measure_limits, show_limits),
    Row(
        "C9",
        "with announced changes: until 8 processes of 2 hosts have seen a change; reads later than that",
        "2 round trips; 0 of 10 M",
        None,
        measure_pushed,
        show_pushed,
    ),
]
