"""S7: the tail of gets that the SSD serves, with sets flowing and with none."""

import plot
from lab import gets
from row import Figure, Row, Shown, busiest, crowded, doubts, middle, not_from_ssd
from rows.ssd_reads import ITEMS, VALUE_BYTES, filled, flow, flowed_mb, too_slow, used_mib

CONNECTIONS = 64
# Of what the device writes at most; less where one core cannot send so much beside the gets.
SHARES = (0.30, 0.25, 0.20, 0.15, 0.10, 0.05)
# What two generators may take of their core together, so that neither waits for the other.
ROOM = 0.70


def measure_tail(lab):
    seconds = 2 * lab.seconds + 2
    items = lab.items(ITEMS), VALUE_BYTES
    raw = {"connections": CONNECTIONS, "rounds": []}
    try:
        raw["device_mb_a_second"] = lab.fio_write_mb_a_second()
    finally:
        lab.forget_fio()
    tries = [share * raw["device_mb_a_second"] for share in SHARES]
    with filled(lab, round(sum(tries) * 3.5)) as daemon:
        raw["most_gets_a_second"] = lab.load(daemon, *gets(*items, CONNECTIONS, 1), seconds=2)["rate"]
        options = [*gets(*items, CONNECTIONS), "--rate", round(raw["most_gets_a_second"] / 2)]
        # The highest that both generators reach together on their core, with room.
        for rate in tries:
            run, sets = lab.load_beside(flow(rate), daemon, *options, seconds=2)
            raw["flow_mb_a_second"] = rate
            if flowed_mb(sets) > 0.97 * rate and run["busiest_thread"] + sets["busiest_thread"] < ROOM:
                break
    try:
        for _ in range(lab.rounds):
            with filled(lab, round(raw["flow_mb_a_second"] * (seconds + 2))) as daemon:
                flowing = flow(raw["flow_mb_a_second"])
                quiet = lab.load(daemon, *options, seconds=seconds, windows=True)
                run, sets = lab.load_beside(flowing, daemon, *options, seconds=seconds, windows=True)
                fio = [
                    lab.fio(daemon.ssd_path, used_mib(items[0]), CONNECTIONS, writes, round(quiet["rate"]))
                    for writes in (None, raw["flow_mb_a_second"])
                ]
                raw["rounds"].append({"quiet": quiet, "larder": run, "sets": sets, "fio": fio})
    finally:
        lab.forget_fio()
    return raw


def show_tail(raw):
    rounds = raw["rounds"]
    kinds = {"no sets": [one["quiet"] for one in rounds], "sets": [one["larder"] for one in rounds]}
    both = [(one["larder"], one["sets"]) for one in rounds]
    share = raw["flow_mb_a_second"] / raw["device_mb_a_second"]
    too_little = [] if share > 0.295 else [f"sets flow at {share:.0%} of what the device writes, not at 30 %"]
    reasons = [reason for runs in kinds.values() for reason in doubts(runs, not_from_ssd)]
    ratio = Figure(
        "p99 beside p99",
        [one["larder"]["verbs"]["get"]["p99_us"] / one["quiet"]["verbs"]["get"]["p99_us"] for one in rounds],
        1.5,
        doubts=too_little + reasons + crowded(both) + too_slow([one["sets"] for one in rounds], raw["flow_mb_a_second"]),
    )
    rows = [
        [
            name,
            f"{middle([run['rate'] for run in runs]):,.0f}",
            *(f"{middle([run['verbs']['get'][f'{p}_us'] for run in runs]):,.0f}" for p in ("p50", "p99", "p999")),
            busiest(runs),
        ]
        for name, runs in kinds.items()
    ]
    fio = [one["fio"] for one in rounds]
    rows += [
        [name, "", "", f"{middle([pair[at]['read_p99_us'] for pair in fio]):,.0f}", "", ""]
        for at, name in enumerate(("fio's reads at that rate", "fio's reads, beside its writes at that rate"))
    ]
    fios = Figure("fio's p99 beside p99", [beside["read_p99_us"] / alone["read_p99_us"] for alone, beside in fio], None)
    notes = [
        f"The device writes {raw['device_mb_a_second']:,.0f} MB/s at most (fio, alone); the rate asked of the sets was "
        f"{raw['flow_mb_a_second']:,.0f} MB/s, {share:.0%} of that, and the rate reached was "
        f"{middle([flowed_mb(one['sets']) for one in rounds]):,.0f}. Gets come in an open loop at half of the "
        f"{raw['most_gets_a_second']:,.0f}/s that {raw['connections']} connections reached; time counts from when "
        "a get was due."
    ]
    if too_little:
        notes.append("The generators' core had no time for more sets beside the gets.")
    head = ["", "gets/s", "p50 us", "p99 us", "p99.9 us", "generator CPU"]
    return Shown([ratio, fios], [("", head, rows)], notes, {"S7-time": plot.percentiles("SSD gets", kinds)})


ROWS = [
    Row(
        "S7",
        "p99 of SSD gets during sets at 30 % of the device's write bandwidth / without sets, at a fixed rate",
        "1.5 or less",
        "itself without sets",
        measure_tail,
        show_tail,
        ("fio",),
    )
]
