"""S4, S14: memory an item on the SSD costs, and resident memory against what was allowed."""

import proof
from row import Figure, Row, Shown, doubts, hits, misses

# S4: memory an SSD item.

ITEMS = 20_000_000
VALUE_BYTES = 100
# With a key of 16 bytes, a record of 148 and its share of the page.
RECORD_BYTES = 150
KEYS = ["--key-size", 16]


def measure_item(lab):
    items = lab.items(ITEMS)
    # The index has to fit with a RAM tier beside it, at 94 % of its entries.
    memory_mib = 80 + (items * 9 >> 20)
    ssd_mib = items * 155 >> 20
    with lab.larder("-m", memory_mib, "--item-size", RECORD_BYTES, ssd_mib=ssd_mib) as daemon:
        empty = daemon.memory()["VmRSS"]
        lab.fill(daemon, items, VALUE_BYTES, *KEYS)
        full = {"stats": daemon.larder(), "resident_bytes": daemon.memory()["VmRSS"]}
        # Items count only if they can be read: a tenth of them shows whether they can.
        sample = lab.load(
            daemon,
            "-k",
            items,
            *KEYS,
            "--value-size",
            VALUE_BYTES,
            "--ratio",
            "0:1",
            "-c",
            8,
            "--pipeline",
            16,
            "-n",
            items // 10,
            "--verify",
            "full",
            warmup=0,
        )
    return {"items": items, "empty_resident_bytes": empty, **full, "sample": sample}


def show_item(raw):
    stats, sample = raw["stats"], raw["sample"]
    beside = stats["ram_tier_bytes"] + stats["buffer_bytes"]
    on_ssd = stats["ssd_items"]
    reasons = doubts([sample])
    if on_ssd < 0.8 * raw["items"]:
        reasons.append(f"only {on_ssd:,.0f} of {raw['items']:,} items are on the SSD")
    figure = Figure("an item", [(raw["resident_bytes"] - beside) / max(on_ssd, 1)], 10, unit="B", doubts=reasons)
    mib = proof.MIB
    rows = [
        ["items stored, on the SSD, in RAM", f"{raw['items']:,}, {on_ssd:,.0f}, {stats['ram_items']:,.0f}"],
        [
            "a tenth read back",
            f"{hits(sample):,} hits, {misses(sample):,} misses; {sample['verified']:,} verified, "
            f"{sample['wrong']:,} wrong",
        ],
        ["index evictions, SSD errors", f"{stats['index_evictions']:,.0f}, {stats['ssd_errors']:,.0f}"],
        [
            "resident memory, empty and full",
            f"{raw['empty_resident_bytes'] / mib:.1f} MiB, {raw['resident_bytes'] / mib:.1f} MiB",
        ],
        [
            "of it the RAM tier, and the fixed buffers",
            f"{stats['ram_tier_bytes'] / mib:.1f} MiB, {stats['buffer_bytes'] / mib:.1f} MiB",
        ],
        ["**the rest, an item on the SSD**", f"**{figure.text()}**"],
    ]
    return Shown(
        [figure],
        [("", ["what", "figure"], rows)],
        [
            "Resident memory beyond the memory limit is charged to the items in full: an upper bound. Memory is "
            "no timing: one run."
        ],
    )


# S14: resident memory over the budget.

MEMORY_MIB = 256
CONNECTIONS_MIB = 64
CONNECTIONS = 10_000
# Options of larder-bench, one load after another on the same daemon; what they need is small enough for 10,000 at once.
LOADS = {
    "10,000 connections, 100 B to 16 KiB": [
        "-c",
        CONNECTIONS,
        "--value-size",
        "list:100:60,1024:30,16384:10",
        "-k",
        "500k",
    ],
    "10,000 connections, 4 deep": [
        "-c",
        CONNECTIONS,
        "--pipeline",
        4,
        "--value-size",
        "list:100:60,1024:40",
        "-k",
        "1m",
    ],
    "256 connections, 100 KiB to 1,000 KiB": ["-c", 256, "--value-size", "list:102400:3,1024000:1", "-k", "2k"],
    "256 connections, 32 deep, 100 B": ["-c", 256, "--pipeline", 32, "-k", "4m"],
}


def measure_budget(lab):
    raw = {"memory_bytes": MEMORY_MIB << 20, "connections_bytes": CONNECTIONS_MIB << 20, "loads": {}}
    options = ["-m", MEMORY_MIB, "--conn-memory", f"{CONNECTIONS_MIB}m", "-c", CONNECTIONS + 100]
    with lab.larder(*options, ssd_mib=2048) as daemon:
        for name, words in LOADS.items():
            run = lab.load(daemon, "--ratio", "1:2", "--look-aside", "--expect-misses", *words, seconds=3 * lab.seconds)
            stats = daemon.larder()
            raw["loads"][name] = {
                "run": run,
                "peak_bytes": daemon.memory()["VmHWM"],
                "kicks": stats["conn_memory_kicks"],
            }
    return raw


def show_budget(raw):
    budget = raw["memory_bytes"] + raw["connections_bytes"]
    rows = [
        [
            name,
            f"{one['run']['rate']:,.0f}",
            f"{one['run']['verbs']['get']['errors']:,}",
            f"{one['kicks']:,.0f}",
            f"{one['peak_bytes'] / proof.MIB:.1f} MiB",
            f"{one['peak_bytes'] / budget:.3f}",
        ]
        for name, one in raw["loads"].items()
    ]
    wrong = sum(one["run"]["wrong"] for one in raw["loads"].values())
    figure = Figure(
        "the most of it",
        [max(one["peak_bytes"] for one in raw["loads"].values()) / budget],
        1.10,
        doubts=[f"{wrong:,} WRONG VALUES"] if wrong else [],
    )
    head = [
        "load, one after another",
        "requests/s",
        "errors",
        "connections closed for their memory",
        "peak so far",
        "over the budget",
    ]
    notes = [
        f"The budget is `-m` ({raw['memory_bytes'] >> 20} MiB) and `--conn-memory` "
        f"({raw['connections_bytes'] >> 20} MiB). The peak is the kernel's (VmHWM). Loads are sets and gets, and some "
        "of the keys exist. One run, since memory does not vary as times do."
    ]
    return Shown([figure], [("", head, rows)], notes)


ROWS = [
    Row(
        "S4",
        "RAM for each item on the SSD, everything counted, with 20 M items of 100 B",
        "10 B or less",
        "",
        measure_item,
        show_item,
    ),
    Row(
        "S14",
        "peak resident memory / configured budget, with 10,000 connections and mixed loads",
        "1.10 or less",
        "",
        measure_budget,
        show_budget,
    ),
]
