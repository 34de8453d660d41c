"""What a row is, and when a figure counts."""

import dataclasses
import statistics
from typing import Callable

import proof

# More than this from RAM is no test of an SSD; fewer device reads a get than this, and a page cache answered.
RAM_SHARE_MAX = 0.05
DEVICE_READS_MIN = 0.90
# More misses than this, and it was not reads that were measured.
MISS_SHARE_MAX = 0.01
# Of the generators' core, when two share it.
BUSY_MAX = 0.90
# Longer than this the generator could have run and was not let: somebody else was on its core.
WAITING_MAX = 0.25


@dataclasses.dataclass
class Row:
    """A target: `measure(lab)` makes the raw data, `show(raw)` what is said of them."""

    name: str
    what: str
    target: str
    peer: str
    measure: Callable | None
    show: Callable | None
    # Programs that it cannot do without.
    needs: tuple = ()


@dataclasses.dataclass
class Figure:
    """The values of one figure, a round each, and the bound that their median has to keep (None: for orientation)."""

    name: str
    values: list
    bound: float | None
    is_most: bool = True
    digits: int = 2
    unit: str = ""
    # Why it does not count, if it does not.
    doubts: list = dataclasses.field(default_factory=list)

    def verdict(self):
        if self.doubts:
            return "does not count"
        if self.bound is None:
            return ""
        middle = statistics.median(self.values)
        return "met" if (middle <= self.bound if self.is_most else middle >= self.bound) else "**missed**"

    def text(self):
        return proof.spread(self.values, self.digits) + (f" {self.unit}" if self.unit else "")


@dataclasses.dataclass
class Shown:
    """Figures with their verdicts, tables as (title, head, rows), notes, and plots as {name: SVG}."""

    figures: list
    tables: list
    notes: list = dataclasses.field(default_factory=list)
    plots: dict = dataclasses.field(default_factory=dict)


def middle(values):
    return statistics.median(values)


def hits(run):
    return sum(verb["hits"] for verb in run["verbs"].values())


def misses(run):
    return sum(verb["misses"] for verb in run["verbs"].values())


def ram_share(run):
    """Of a larder's hits, how many RAM served."""
    ram, ssd = (run["growth"].get(f"larder.get_hits_{tier}", 0) for tier in ("ram", "ssd"))
    return ram / max(ram + ssd, 1)


def reads_a_hit(run):
    """Of a larder, by its own count."""
    return run["growth"].get("larder.ssd_device_reads", 0) / max(run["growth"].get("larder.get_hits_ssd", 0), 1)


def kernel_reads_a_hit(run, ssd_hits=None):
    """The same by the kernel's count, of everything that read the device; None where no device is seen."""
    if not run.get("device"):
        return None
    ssd_hits = run["growth"].get("larder.get_hits_ssd", 0) if ssd_hits is None else ssd_hits
    return run["device"]["reads"] / max(ssd_hits, 1)


def doubts(runs, *more):
    """What makes most of these runs worthless, each reason once; and a wrong value in any of them.

    `more` are further reasons to look for: functions of a run that answer one, or None.
    """
    found = {}
    for run in runs:
        reasons = {name: says for name, says in run["failed"].items() if name != "values"}
        if misses(run) > MISS_SHARE_MAX * (hits(run) + misses(run)):
            reasons["misses"] = f"{misses(run) / (hits(run) + misses(run)):.1%} of the keys were missed"
        if run["waiting_thread"] > WAITING_MAX:
            reasons["waiting"] = f"the generator waited for its core for {run['waiting_thread']:.0%} of the time"
        for reason in filter(None, (look(run) for look in more)):
            reasons[reason.split(":")[0]] = reason
        for name, says in reasons.items():
            found.setdefault(name, []).append(says)
    kept = [f"{says[0]} ({len(says)} of {len(runs)} runs)" for says in found.values() if 2 * len(says) > len(runs)]
    wrong = sum(run["wrong"] for run in runs)
    return kept + ([f"{wrong:,} WRONG VALUES"] if wrong else [])


def not_from_ssd(run):
    """For `doubts`, of a larder: RAM or the page cache answered where the SSD should have."""
    if ram_share(run) > RAM_SHARE_MAX:
        return f"RAM answered: {ram_share(run):.0%} of the hits"
    reads = kernel_reads_a_hit(run)
    if reads is not None and reads < DEVICE_READS_MIN:
        return f"a page cache answered: {reads:.2f} device reads a hit"
    return None


def busiest(runs):
    """How much of its core the generator's thread took, for tables."""
    return f"{middle([run['busiest_thread'] for run in runs]):.0%}"


def both_busiest(pairs):
    """The same of two generators that share a core."""
    return f"{_both_busy(pairs):.0%}"


def crowded(pairs):
    """For `Figure.doubts`: in most of these pairs of runs at once, the generators filled their core."""
    return [f"the two generators filled their core ({both_busiest(pairs)})"] if _both_busy(pairs) >= BUSY_MAX else []


def _both_busy(pairs):
    return middle([run["busiest_thread"] + beside["busiest_thread"] for run, beside in pairs])
