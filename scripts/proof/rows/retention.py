"""S6b: which items are still there after the SSD was written over and over, and what keeping them costs."""

import time

import proof
from row import Figure, Row, Shown, hits, misses
from rows.writes import filled, grown, not_full, turns_of

SSD_MIB = 2048
# Of the SSD, as a user's RAM would be.
RAM_SHARE = 1 / 16
VALUE_BYTES = 2000
# With a key of up to 16 bytes, its head, and its share of a page's.
RECORD_BYTES = 2060
# Live data in percent of the SSD: how many percent of the items stay at least, and bytes written for each byte stored.
LIVE = {35: (99.99, 1.10), 50: (99.9, 1.30)}
TURNS = 4
SECONDS_MAX = 120
# Items of both halves that are written and never read, in percent of the SSD each.
HALF = 80
NEWEST_MIN = 95


def measure(lab):
    ssd_mib = lab.items(SSD_MIB)
    raw = {"ssd_mib": ssd_mib, "live": {}}
    for percent in LIVE:
        with larder(lab, ssd_mib) as daemon:
            items = items_of(ssd_mib, percent)
            lab.store(daemon, items, VALUE_BYTES, "--key-prefix", "live:")
            # The first turn only fills the SSD.
            overwrite(lab, daemon, items, 1, ssd_mib << 20)
            pieces = overwrite(lab, daemon, items, TURNS, ssd_mib << 20)
            raw["live"][str(percent)] = filled(daemon) | {
                "items": items,
                "pieces": pieces,
                "found": ask(lab, daemon, "live:", items),
                "stats": daemon.larder(),
            }
    with larder(lab, ssd_mib) as daemon:
        items = items_of(ssd_mib, HALF)
        for prefix in ("old:", "new:"):
            lab.store(daemon, items, VALUE_BYTES, "--key-prefix", prefix)
        raw["halves"] = filled(daemon) | {"items": items}
        # The newest first: what is read may be copied to RAM.
        raw["halves"] |= {prefix: ask(lab, daemon, prefix, items) for prefix in ("new:", "old:")}
    return raw


def larder(lab, ssd_mib):
    return lab.larder("-m", round(ssd_mib * RAM_SHARE), "--item-size", RECORD_BYTES, ssd_mib=ssd_mib)


def items_of(ssd_mib, percent):
    return (ssd_mib << 20) * percent // 100 // RECORD_BYTES


def keys(prefix, items):
    return ["-k", items, "--key-prefix", prefix, "--value-size", VALUE_BYTES, "-c", 16, "--pipeline", 8]


def overwrite(lab, daemon, items, turns, ssd_bytes):
    """Stores keys at random until so many times the SSD's bytes were written to it."""
    pieces, written, end = [], 0, time.monotonic() + SECONDS_MAX
    while written < turns * ssd_bytes and time.monotonic() < end:
        # Each run with other keys than the one before.
        options = [*keys("live:", items), "--ratio", "1:0", "--seed", len(pieces) + 1 + 1000 * turns]
        pieces.append(lab.load(daemon, *options, seconds=lab.seconds, warmup=0))
        written += grown(pieces[-1], "ssd_bytes_written")
    proof.wait_until(lambda: daemon.larder()["ssd_writes_pending"] == 0, 30)
    return pieces


def ask(lab, daemon, prefix, items):
    """Asks for every item once, and verifies each value."""
    words = [*keys(prefix, items), "--key-pattern", "seq", "--ratio", "0:1", "-n", items]
    return lab.load(daemon, *words, "--verify", "full", "--expect-misses", warmup=0)


def show(raw):
    figures, rows = [], []
    segments = None
    for percent, (kept_min, written_max) in LIVE.items():
        one = raw["live"][str(percent)]
        pieces, found = one["pieces"], one["found"]
        segments = one["segments"]
        admitted, written = (sum(grown(run, f"ssd_bytes_{what}") for run in pieces) for what in ("admitted", "written"))
        turns = written / (raw["ssd_mib"] << 20)
        reasons = not_full(one) + wrong([*pieces, found])
        if turns < TURNS:
            reasons.append(f"{turns:.1f} turns of the SSD in {SECONDS_MAX} s, not {TURNS}")
        missing = not_all(one["items"], found)
        kept = Figure(f"kept, {percent} % live", [share(found)], kept_min, False, 3, "%", reasons + missing)
        values = [written / admitted for written, admitted in turns_of(pieces, raw["ssd_mib"] << 20)]
        cost = Figure(f"written / stored, {percent} % live", values, written_max, doubts=reasons)
        figures += [kept, cost]
        rows.append(
            [
                f"{percent} %",
                f"{one['items']:,}",
                f"{sum(run['requests'] for run in pieces) / one['items']:.1f}",
                f"{turns:.1f}",
                f"{misses(found):,}",
                kept.text(),
                f"{admitted / 1e6:,.0f}",
                f"{written / 1e6:,.0f}",
                cost.text(),
                f"{sum(grown(run, 'ssd_admissions_dropped') for run in pieces):,.0f}",
                f"{one['stats']['evictions_ssd']:,.0f}, {one['stats']['index_evictions']:,.0f}",
            ]
        )
    head = [
        "live data, of the SSD",
        "items",
        "times that each was overwritten",
        "turns of the SSD",
        "lost",
        "kept",
        "MB stored on the SSD",
        "MB written",
        "written / stored",
        "dropped",
        "evictions from the SSD, from the index",
    ]
    halves = raw["halves"]
    newest, oldest = halves["new:"], halves["old:"]
    reasons = not_full(halves) + wrong([newest, oldest]) + not_all(halves["items"], newest)
    figures.append(Figure("newest half found", [share(newest)], NEWEST_MIN, False, 2, "%", reasons))
    halves_rows = [
        ["stored last", f"{halves['items']:,}", f"{share(newest):.2f} %"],
        ["stored before them", f"{halves['items']:,}", f"{share(oldest):.2f} %"],
    ]
    notes = [
        f"Items of {VALUE_BYTES:,} B, an SSD of {raw['ssd_mib']:,} MiB in {segments:.0f} segments, and {RAM_SHARE:.1%} "
        "of that as RAM. Keys are overwritten uniformly at random, which is the worst case, and none is read meanwhile. A "
        "turn is as many bytes written as the SSD has; the first one is not counted, and each of the others gives one "
        "figure of written / stored. At the end every item is read once and verified. On an SSD of few segments more "
        "is written, since the free one and the open ones are a larger part of it."
    ]
    title = f"Two halves, each {HALF} % of the SSD, stored one after the other and not read until both were"
    return Shown(figures, [("", head, rows), (title + ":", ["half", "items", "found"], halves_rows)], notes)


def share(run):
    """Percent of the keys that were found."""
    return 100 * hits(run) / max(hits(run) + misses(run), 1)


def wrong(runs):
    count = sum(run["wrong"] for run in runs)
    return [f"{count:,} WRONG VALUES"] if count else []


def not_all(items, run):
    """For `Figure.doubts`."""
    return [] if run["requests"] == items else [f"{run['requests']:,} of {items:,} items were asked for"]


ROWS = [
    Row(
        "S6b",
        "items kept while live data is 35 % and 50 % of the SSD, overwritten at random for four turns, and bytes "
        "written for each byte stored; newest half of an SSD full of unread items",
        "99.99 % at 1.10; 99.9 % at 1.30; 95 % of the newest half",
        "",
        measure,
        show,
    )
]
