"""S1, S2, S5: gets that the SSD serves, beside fio on the same file, alone and while sets flow."""

import contextlib

import proof
from lab import UNVERIFIED, gets
from row import (
    Figure,
    Row,
    Shown,
    both_busiest,
    busiest,
    crowded,
    doubts,
    hits,
    kernel_reads_a_hit,
    middle,
    misses,
    not_from_ssd,
    ram_share,
    reads_a_hit,
)

# Connections, and requests in flight on each; the bound of S1.
LOADS = {"32 x 1": (32, 1, 0.75), "64 x 1": (64, 1, 0.75), "128 x 1": (128, 1, 0.95), "32 x 4": (32, 4, 0.95)}
ITEMS = 1_200_000
# Four records fill a page, so that a get reads one page, as fio does: of 1 KiB values a quarter lies over a page's end.
VALUE_BYTES = 960
# What such an item takes on the SSD.
RECORD_BYTES = 1024
# What sets flow in: few large values, so that bytes and not requests are what costs.
FLOW_BYTES = 65_536
FLOW_RATES_MB = (100, 300)


@contextlib.contextmanager
def filled(lab, room_mib=0):
    """A larder whose items are on the SSD, which has so much room beside them that nothing has to go."""
    items = lab.items(ITEMS)
    with lab.larder("-m", 52, "--index-memory", "14m", ssd_mib=used_mib(items) * 5 // 4 + room_mib + 256) as daemon:
        lab.fill(daemon, items, VALUE_BYTES)
        yield daemon


def used_mib(items):
    return items * RECORD_BYTES >> 20


def flow(mb_a_second):
    """larder-bench's words for sets of ever new keys, at a rate in bytes."""
    rate = round(mb_a_second * 1e6 / FLOW_BYTES)
    keys = f"-k 10m --key-prefix flow: --key-pattern seq --value-size {FLOW_BYTES}"
    return f"{keys} --ratio 1:0 -c 8 --rate {rate} --arrival const".split()


def flowed_mb(run):
    return run["rate"] * FLOW_BYTES / 1e6


# S1: gets beside fio.


def measure_efficiency(lab):
    pairs = {name: [] for name in LOADS}
    items = lab.items(ITEMS)
    with filled(lab) as daemon, lab.bare(used_mib(items), VALUE_BYTES) as bare:
        for _ in range(lab.rounds):
            for name, load in LOADS.items():
                options = gets(items, VALUE_BYTES, *load[:2])
                pairs[name].append(
                    {
                        "fio": lab.fio(daemon.ssd_path, used_mib(items), load[0] * load[1]),
                        "larder": lab.load(daemon, *options, seconds=lab.seconds),
                        "bare": lab.load(bare, *options, *UNVERIFIED, seconds=lab.seconds),
                    }
                )
    return pairs


def show_efficiency(raw):
    figures, rows = [], []
    for name, pairs in raw.items():
        runs = [pair["larder"] for pair in pairs]
        ratio = Figure(
            name,
            [pair["larder"]["rate"] / pair["fio"]["reads_a_second"] for pair in pairs],
            LOADS[name][2],
            is_most=False,
            doubts=doubts(runs, not_from_ssd),
        )
        figures.append(ratio)
        bare = [pair["bare"] for pair in pairs]
        rows.append(
            [
                name,
                fio_reads(pairs),
                f"{middle([run['rate'] for run in runs]):,.0f}",
                ratio.text(),
                f"{middle([run['rate'] for run in bare]):,.0f}",
                proof.spread([run["rate"] / beside["rate"] for run, beside in zip(runs, bare)], 2),
                *columns(runs),
            ]
        )
    head = ["connections x depth", "fio reads/s", "SSD gets/s", "ratio", "bare server, gets/s", "ratio", *COLUMNS]
    notes = [
        "For 32 x 1 and 64 x 1 the target is 0.75 now and 0.85 later.",
        "The bare server reads one page for each get and does nothing else, so it is the most that this machine can serve "
        "through a socket (`crates/server/examples/bare.rs`).",
    ]
    return Shown(figures, [("", head, rows)], notes)


COLUMNS = ["server CPU us/get", "p99 us", "from RAM", "device reads/hit, by the kernel", "generator CPU"]


def columns(runs):
    kernel = [reads for run in runs if (reads := kernel_reads_a_hit(run)) is not None]
    return [
        f"{middle([run['server_cpu_us'] for run in runs]):.1f}",
        f"{middle([run['verbs']['get']['p99_us'] for run in runs]):,.0f}",
        f"{middle([ram_share(run) for run in runs]):.1%}",
        f"{middle(kernel):.3f}" if kernel else "not seen",
        busiest(runs),
    ]


def fio_reads(pairs):
    return f"{middle([pair['fio']['reads_a_second'] for pair in pairs]):,.0f}"


# S2: the same while sets flow.

FLOW_LOADS = {name: LOADS[name] for name in ("32 x 1", "32 x 4")}


def measure_beside_sets(lab):
    pairs = {rate: {name: [] for name in FLOW_LOADS} for rate in FLOW_RATES_MB}
    room_mib = round(sum(FLOW_RATES_MB) * len(FLOW_LOADS) * (lab.seconds + 2))
    try:
        for _ in range(lab.rounds):
            # A full SSD would push out what is read: each round begins with a fresh one.
            with filled(lab, room_mib) as daemon:
                for rate in FLOW_RATES_MB:
                    for name, load in FLOW_LOADS.items():
                        fio = lab.fio(daemon.ssd_path, used_mib(lab.items(ITEMS)), load[0] * load[1], rate)
                        run, sets = lab.load_beside(
                            flow(rate), daemon, *gets(lab.items(ITEMS), VALUE_BYTES, *load[:2]), seconds=lab.seconds
                        )
                        pairs[rate][name].append({"fio": fio, "larder": run, "sets": sets})
    finally:
        lab.forget_fio()
    return pairs


def show_beside_sets(raw):
    figures, rows = [], []
    for rate, loads in raw.items():
        for name, pairs in loads.items():
            runs = [pair["larder"] for pair in pairs]
            sets = [pair["sets"] for pair in pairs]
            both = list(zip(runs, sets))
            # A device that takes less from fio beside as many reads has no more to give.
            fio_mb = middle([pair["fio"]["written_mb_a_second"] for pair in pairs])
            ratio = Figure(
                f"{name}, {rate} MB/s",
                [pair["larder"]["rate"] / pair["fio"]["reads_a_second"] for pair in pairs],
                0.80,
                is_most=False,
                doubts=doubts(runs, not_from_ssd) + crowded(both) + too_slow(sets, min(float(rate), fio_mb)),
            )
            figures.append(ratio)
            rows.append(
                [
                    name,
                    rate,
                    f"{middle([flowed_mb(run) for run in sets]):.0f}",
                    f"{middle([written_mb_a_second(run) for run in sets]):.0f}",
                    f"{fio_mb:.0f}",
                    fio_reads(pairs),
                    f"{middle([run['rate'] for run in runs]):,.0f}",
                    ratio.text(),
                    both_busiest(both),
                ]
            )
    head = [
        "connections x depth",
        "MB/s asked for",
        "set",
        "written to the SSD",
        "written by fio",
        "fio reads/s",
        "SSD gets/s",
        "ratio",
        "both generators' CPU",
    ]
    notes = [
        f"Sets are of {FLOW_BYTES // 1024} KiB under new keys, by a second larder-bench on the same core; fio "
        "writes at the same rate, 256 KiB at a time. The target is 0.80 now and 0.90 later."
    ]
    return Shown(figures, [("", head, rows)], notes)


def too_slow(sets, mb_a_second):
    """For `Figure.doubts`: in most of these runs sets did not flow, or did not get to the SSD, as they should have."""
    set_mb, written_mb = middle([flowed_mb(run) for run in sets]), middle([written_mb_a_second(run) for run in sets])
    if set_mb < 0.95 * mb_a_second:
        return [f"sets flowed at {set_mb:.0f} MB/s only"]
    return [f"{written_mb:.0f} MB/s were written to the SSD only"] if written_mb < 0.90 * mb_a_second else []


def written_mb_a_second(run):
    return run["growth"].get("larder.ssd_bytes_written", 0) / run["seconds"] / 1e6


# S5: device reads a hit and a miss.


def measure_reads(lab):
    runs = {"hits": [], "misses": []}
    with filled(lab) as daemon:
        for _ in range(lab.rounds):
            runs["hits"].append(lab.load(daemon, *gets(lab.items(ITEMS), VALUE_BYTES, 32, 4), seconds=lab.seconds))
            absent = [*gets(lab.items(ITEMS), VALUE_BYTES, 32, 4), "--key-prefix", "absent:", "--expect-misses"]
            runs["misses"].append(lab.load(daemon, *absent, seconds=lab.seconds))
    return runs


def show_reads(raw):
    found, absent = raw["hits"], raw["misses"]
    a_miss = [run["growth"].get("larder.ssd_device_reads", 0) / max(misses(run), 1) for run in absent]
    figures = [
        Figure("a hit", [reads_a_hit(run) for run in found], 1.001, digits=4, doubts=doubts(found, not_from_ssd)),
        Figure("a miss", a_miss, 0.001, digits=5, doubts=some_hit(absent)),
    ]
    kernel = [reads for run in found if (reads := kernel_reads_a_hit(run)) is not None]
    rows = [
        [
            "a hit on the SSD",
            figures[0].text(),
            f"{middle(kernel):.4f}" if kernel else "not seen",
            f"{sum(run['growth'].get('larder.get_hits_ssd', 0) for run in found):,.0f} hits",
        ],
        ["a miss", figures[1].text(), "", f"{sum(misses(run) for run in absent):,} misses"],
    ]
    return Shown(
        figures,
        [("", ["device reads", "by Larder's count", "by the kernel's", "over"], rows)],
        ["The kernel's count includes the reads of all programs."],
    )


def some_hit(runs):
    found = sum(hits(run) for run in runs)
    return [f"{found:,} keys that were never set were found"] if found else []


ROWS = [
    Row(
        "S1",
        "SSD gets a second / fio's random reads of the same file with as many in flight, same core",
        "0.95 with 128 in flight; 0.75 with 32 and 64 unpipelined",
        "fio, io_uring with registered files and buffers",
        measure_efficiency,
        show_efficiency,
        ("fio",),
    ),
    Row(
        "S2",
        "the same during sets at 100 and at 300 MB/s, relative to fio's reads during the same paced writes",
        "0.80",
        "fio: random reads and paced sequential writes",
        measure_beside_sets,
        show_beside_sets,
        ("fio",),
    ),
    Row("S5", "device reads an SSD hit; a miss", "1.00 a hit; 0.001 or less a miss", "", measure_reads, show_reads),
]
