"""S6, S11: an SSD tier that is full: what is written for what was admitted, and how fast sets go."""

import dataclasses
import time

import plot
from row import Figure, Row, Shown, both_busiest, crowded, hits, middle, misses

# Larder takes no SSD smaller than four segments.
SSD_MIB_MIN = 96


def ssd_mib_of(lab, full):
    """A quarter for a trial, as of the items."""
    return max(lab.items(full), SSD_MIB_MIN)


def filled(daemon):
    """Of a larder: how many segments its SSD has, and how many have been filled."""
    stats = daemon.larder()
    return {"segments": stats["ssd_segments"], "segments_used": stats["ssd_segments_used"]}


def not_full(one):
    """For `Figure.doubts`."""
    if one["segments_used"] < 0.9 * one["segments"] - 1:
        return [f"the SSD was not full: {one['segments_used']:.0f} of {one['segments']:.0f} segments"]
    return []


# S6: write amplification.


@dataclasses.dataclass
class Churn:
    """Values as larder-bench takes them, what one takes on the SSD, and how long to go on at most."""

    values: str
    record_bytes: int
    ssd_mib: int
    turns: int
    seconds_max: int


# The target is about all sizes together; the others show what that is made of.
ALL = "100 B, 1 KiB, 4 KiB"
CHURNS = {
    ALL: Churn("list:100:1,1024:1,4096:1", 1800, 512, 3, 120),
    "100 B, 1 KiB": Churn("list:100:1,1024:1", 620, 256, 1, 45),
    "4 KiB": Churn("4096", 4160, 256, 1, 45),
}


def measure_churn(lab):
    raw = {}
    for name, one in CHURNS.items():
        ssd_mib = ssd_mib_of(lab, one.ssd_mib)
        capacity = (ssd_mib << 20) // one.record_bytes
        # The index grows as items get smaller; the RAM tier beside it stays some 20 MiB.
        memory_mib = 32 + (capacity * 9 >> 20)
        with lab.larder("-m", memory_mib, "--item-size", one.record_bytes, ssd_mib=ssd_mib) as daemon:
            lab.fill(daemon, capacity * 5 // 4, one.values, "--pipeline", 4)
            raw[name] = filled(daemon) | {
                "ssd_bytes": ssd_mib << 20,
                "pieces": churn(lab, daemon, one, 3 * capacity, one.turns * ssd_mib << 20),
            }
    return raw


def churn(lab, daemon, one, keys, bytes_wanted):
    """Gets of popular and rare keys; what is missed is stored, and some is stored anew: until enough was written."""
    words = ["-k", keys, "--value-size", one.values, "--key-pattern", "zipf:0.6", "--ratio", "1:2", "--look-aside"]
    pieces, written, end = [], 0, time.monotonic() + one.seconds_max
    while written < bytes_wanted and time.monotonic() < end:
        run = lab.load(daemon, *words, "-c", 32, "--pipeline", 8, seconds=lab.seconds, warmup=0, windows=True)
        written += grown(run, "ssd_bytes_written")
        pieces.append(run)
    return pieces


def turns_of(pieces, ssd_bytes):
    """Bytes written and admitted in each turn of the SSD; what is left over counts as one if there is no other."""
    turns, written, admitted = [], 0, 0
    for run in pieces:
        written += grown(run, "ssd_bytes_written")
        admitted += grown(run, "ssd_bytes_admitted")
        if written >= ssd_bytes:
            turns.append((written, admitted))
            written = admitted = 0
    return turns or [(written, max(admitted, 1))]


def grown(run, name):
    return run["growth"].get(f"larder.{name}", 0)


def show_churn(raw):
    figures, rows = [], []
    for name, one in raw.items():
        pieces, churn = one["pieces"], CHURNS[name]
        admitted, written = (sum(grown(run, f"ssd_bytes_{what}") for run in pieces) for what in ("admitted", "written"))
        turns = written / one["ssd_bytes"]
        reasons = not_full(one)
        if turns < churn.turns:
            reasons.append(f"{turns:.1f} turns of the SSD in {churn.seconds_max} s, not {churn.turns}")
        if wrong := sum(run["wrong"] for run in pieces):
            reasons.append(f"{wrong:,} WRONG VALUES")
        values = [written / admitted for written, admitted in turns_of(pieces, one["ssd_bytes"])]
        figure = Figure(name, values, 1.10 if name == ALL else None, doubts=reasons)
        figures.append(figure)
        device = sum(run.get("device", {}).get("written_bytes", 0) for run in pieces)
        found, missed = sum(map(hits, pieces)), sum(map(misses, pieces))
        rows.append(
            [
                name,
                f"{turns:.1f}",
                f"{admitted / 1e6:,.0f}",
                f"{written / 1e6:,.0f}",
                figure.text(),
                f"{device / max(admitted, 1):.2f}" if device else "not seen",
                f"{found / max(found + missed, 1):.0%}",
                f"{sum(grown(run, 'ssd_admissions_refused') for run in pieces):,.0f}",
                f"{sum(grown(run, 'ssd_admissions_dropped') for run in pieces):,.0f}",
            ]
        )
    head = [
        "values",
        "turns of the SSD",
        "MB admitted",
        "MB written",
        "written / admitted",
        "by the device's count / admitted",
        "hits",
        "refused",
        "dropped",
    ]
    notes = [
        "`ssd_bytes_written` / `ssd_bytes_admitted`; each turn of the SSD gives one figure. Items that are written again "
        "count as written and not as admitted. The device's count includes all programs."
    ]
    times = {"gets and sets": raw[ALL]["pieces"]}
    return Shown(figures, [("", head, rows)], notes, {"S6-time": plot.percentiles(f"{ALL}, 32 x 8 in flight", times)})


# S11: sets into a full tier.

GETS_A_SECOND = 2_000
# Bytes of a value, MiB of SSD, items (more than fit), MiB of RAM for extstore, whose headers of all items have to fit.
SETS = {"100 B": (100, 128, 1_600_000, 224), "1 KiB": (1024, 512, 600_000, 192)}
LARDER_MIB = 40


def measure_sets(lab):
    raw = {}
    for name, (value_bytes, ssd_mib, items, extstore_mib) in SETS.items():
        items, ssd_mib = lab.items(items), ssd_mib_of(lab, ssd_mib)
        common = ["-k", items, "--value-size", value_bytes]
        gets = [*common, "--ratio", "0:1", "-c", 4, "--rate", GETS_A_SECOND, "--expect-misses"]
        sets = [*common, "--ratio", "1:0", "-c", 16, "--pipeline", 16]
        larder = lab.larder("-m", LARDER_MIB, "--item-size", 150 if value_bytes == 100 else 1400, ssd_mib=ssd_mib)
        with larder as larder, lab.extstore("-m", max(lab.items(extstore_mib), 64), ssd_mib=ssd_mib) as extstore:
            servers = {"larder": larder, "extstore": extstore}
            lab.fill(larder, items, value_bytes)
            lab.fill_extstore(extstore, items, value_bytes)
            raw[name] = filled(larder) | {"rounds": []}
            for _ in range(lab.rounds):
                one = {}
                for server, daemon in servers.items():
                    alone = lab.load(daemon, *gets, seconds=lab.seconds)
                    beside, flow = lab.load_beside(sets, daemon, *gets, seconds=lab.seconds)
                    one[server] = {"alone": alone, "gets": beside, "sets": flow}
                raw[name]["rounds"].append(one)
    return raw


def show_sets(raw):
    figures, rows = [], []
    for name, both in raw.items():
        rounds = both["rounds"]
        runs = {server: [one[server] for one in rounds] for server in rounds[0]}
        reasons = [
            f"{server}: {reason}"
            for server, ones in runs.items()
            for reason in crowded([(one["gets"], one["sets"]) for one in ones])
        ]
        wrong = sum(run["wrong"] for ones in runs.values() for one in ones for run in one.values())
        reasons += not_full(both) + ([f"{wrong:,} WRONG VALUES"] if wrong else [])
        rate = Figure(
            f"sets/s, {name}",
            [one["larder"]["sets"]["rate"] / one["extstore"]["sets"]["rate"] for one in rounds],
            1.0,
            is_most=False,
            doubts=reasons,
        )
        tail = Figure(
            f"p99 of gets beside them, {name}",
            [p99(one["larder"]["gets"]) / p99(one["extstore"]["gets"]) for one in rounds],
            None,
        )
        figures += [rate, tail]
        for server, ones in runs.items():
            drops = [
                one["sets"]["growth"].get("larder.ssd_admissions_dropped" if server == "larder" else "evictions", 0)
                for one in ones
            ]
            refused = [grown(one["sets"], "ssd_admissions_refused") for one in ones]
            found = [hits(one["gets"]) / max(hits(one["gets"]) + misses(one["gets"]), 1) for one in ones]
            written = [
                one["sets"].get("device", {}).get("written_bytes", 0) / one["sets"]["seconds"] / 1e6 for one in ones
            ]
            rows.append(
                [
                    name,
                    server,
                    f"{middle([one['sets']['rate'] for one in ones]):,.0f}",
                    f"{middle(written):,.0f}",
                    *(f"{middle([p99(one[when]) for one in ones]):,.0f}" for when in ("alone", "gets")),
                    f"{middle(found):.0%}",
                    f"{middle(drops):,.0f}",
                    f"{middle(refused):,.0f}" if server == "larder" else "",
                    both_busiest([(one["gets"], one["sets"]) for one in ones]),
                ]
            )
    head = [
        "values",
        "server",
        "sets/s",
        "MB/s written to the device",
        "p99 of gets alone, us",
        "beside sets, us",
        "gets that hit",
        "dropped a run",
        "refused a run",
        "both generators' CPU",
    ]
    memory = ", ".join(f"{mib} MiB for {name}" for name, (*_, mib) in SETS.items())
    notes = [
        f"Sets in a closed loop of 16 connections, 16 deep; {GETS_A_SECOND:,} gets a second beside them in an open "
        f"loop. Larder has {LARDER_MIB} MiB of RAM, extstore what its headers need: {memory}. Dropped: by Larder "
        "because the SSD had no room in time; by extstore because they left RAM before they were written. Refused: by "
        "Larder's admission rule, since they had not been read."
    ]
    return Shown(figures, [("", head, rows)], notes)


def p99(run):
    return run["verbs"]["get"]["p99_us"]


ROWS = [
    Row(
        "S6",
        "application write amplification in steady churn, three turns of a full SSD",
        "1.10 or less",
        "",
        measure_churn,
        show_churn,
    ),
    Row(
        "S11",
        "set rate into a full SSD tier (100 B, 1 KiB), relative to extstore, with gets",
        "1.0 of extstore or more; no get delayed",
        "memcached with extstore",
        measure_sets,
        show_sets,
        ("memcached",),
    ),
]
