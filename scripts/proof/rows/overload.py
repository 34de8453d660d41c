"""S16: what a server still answers when twice as many gets are due as it can serve."""

from lab import gets
from row import Figure, Row, Shown, busiest, doubts, middle, not_from_ssd
from rows.ssd_reads import ITEMS, VALUE_BYTES, filled

CONNECTIONS = 32
SHALLOW, CAPACITY, DEEP = 4, 32, 256
CLOSED = [f"{CONNECTIONS} x {depth}" for depth in (SHALLOW, CAPACITY, DEEP)]
OFFERED = 2.0
# Requests in flight of clients that wait without end, and of those that give up.
ENDLESS = 100_000_000
BOUNDED = CONNECTIONS * CAPACITY
OPEN = {
    "clients wait": ["--max-in-flight", ENDLESS],
    "clients give up": ["--max-in-flight", BOUNDED, "--when-full", "drop"],
}
# Of its core. Beyond, the generator may have offered less than it should have.
GENERATOR_MAX = 0.95


def measure(lab):
    items = lab.items(ITEMS)
    # The first second is left out.
    seconds = lab.seconds + 2
    rounds = []
    with filled(lab) as daemon:
        for round_number in range(lab.rounds):
            # Keys in another order in each round: an item that is read twice may be copied to RAM.
            seed = ["--seed", round_number + 1]
            one = {
                f"{CONNECTIONS} x {depth}": lab.load(
                    daemon, *gets(items, VALUE_BYTES, CONNECTIONS, depth), *seed, seconds=lab.seconds
                )
                for depth in (SHALLOW, CAPACITY, DEEP)
            }
            rate = round(OFFERED * one[f"{CONNECTIONS} x {CAPACITY}"]["rate"])
            for name, words in OPEN.items():
                options = [*gets(items, VALUE_BYTES, CONNECTIONS), "--rate", rate, *words, *seed]
                run = lab.load(daemon, *options, seconds=seconds, warmup=0)
                one[name] = run | {"offered": rate, "due_seconds": seconds}
            rounds.append(one)
    return rounds


def goodput(run):
    """Hits answered a second while gets were due, without the first second; none after a connection was closed."""
    seconds = run["due_seconds"]
    return sum(run["hits_by_second"][1:seconds]) / (seconds - 1)


def capacity(one):
    return one[f"{CONNECTIONS} x {CAPACITY}"]["rate"]


def show(rounds):
    figures, rows = [], []
    closed = {name: [one[name] for one in rounds] for name in CLOSED}
    no_capacity = [f"the capacity: {why}" for why in doubts(closed[f"{CONNECTIONS} x {CAPACITY}"], not_from_ssd)]
    for name, runs in closed.items():
        rate = f"{middle([run['rate'] for run in runs]):,.0f}"
        rows.append([f"closed loop, {name}", "", rate, "", *columns(runs), ""])
    for name in OPEN:
        runs = [one[name] for one in rounds]
        figure = Figure(
            f"goodput, {name}",
            [goodput(one[name]) / capacity(one) for one in rounds],
            0.95,
            is_most=False,
            doubts=no_capacity + doubts([expected(run) for run in runs], not_from_ssd, generator_full),
        )
        figures.append(figure)
        rows.append(
            [
                f"open loop, {name}",
                f"{middle([run['offered'] for run in runs]):,.0f}",
                f"{middle([goodput(run) for run in runs]):,.0f}",
                figure.text(),
                *columns(runs),
                f"{sum(run['growth'].get('larder.conn_memory_kicks', 0) for run in runs):,.0f}",
            ]
        )
    shallow, deep = closed[CLOSED[0]], closed[CLOSED[-1]]
    figures.append(
        Figure(
            f"user CPU, {CLOSED[-1]} / {CLOSED[0]}",
            [one["server_user_us"] / beside["server_user_us"] for one, beside in zip(deep, shallow)],
            1.2,
            doubts=doubts(shallow, not_from_ssd) + doubts(deep, not_from_ssd),
        )
    )
    head = [
        "load",
        "gets/s due",
        "answered/s",
        "of the capacity",
        "p50 ms",
        "p99 ms",
        "user CPU us/get",
        "CPU us/get",
        "generator CPU",
        "connections closed",
    ]
    return Shown(figures, [("", head, rows)], NOTES)


def columns(runs):
    # A run that the server cut short at once has none.
    answered = [run["verbs"]["get"] for run in runs if "get" in run["verbs"]] or [{"p50_us": 0, "p99_us": 0}]
    return [
        *(f"{middle([get[name] for get in answered]) / 1e3:,.1f}" for name in ("p50_us", "p99_us")),
        *(f"{middle([run[name] for run in runs]):.1f}" for name in ("server_user_us", "server_cpu_us")),
        busiest(runs),
    ]


def expected(run):
    """In overload requests are left over and late: these checks say nothing here."""
    return run | {"failed": {}}


def generator_full(run):
    """For `doubts`."""
    if run["busiest_thread"] > GENERATOR_MAX:
        return f"the generator filled its core: {run['busiest_thread']:.0%}"
    return None


NOTES = [
    f"The capacity is the rate of a closed loop of {CAPACITY} requests in flight on each of {CONNECTIONS} connections, "
    f"in the same round. In the open loop {OFFERED:g} times as many gets are due, at random times (Poisson).",
    "**Goodput** is hits answered a second while gets are due, whatever their age; the first second is left out. There "
    "is no deadline, since load generators (memtier, wrk2, larder-bench) keep a request until its answer. When more is "
    "due than can be served, the queue grows with every second, and no server can make its end come sooner. So there "
    "are two kinds of clients:",
    "- Clients that **wait** send each get when it is due, however many have no answer yet. The queue grows until the "
    "end of the run, in the clients, in the sockets and in the server.\n"
    f"- Clients that **give up** drop a get that is due while {BOUNDED:,} have no answer, before it is sent. So the "
    "p99 of the answers is bounded by the server alone.",
    "When the server closes a connection, the run ends, and the seconds after it count as no answer.",
]


ROWS = [
    Row(
        "S16",
        "goodput in an open loop at twice the capacity / the capacity; user CPU of an SSD get with 32 x 256 / with 32 x 4",
        "0.95 or more; 1.2 or less",
        "itself in a closed loop",
        measure,
        show,
    )
]
