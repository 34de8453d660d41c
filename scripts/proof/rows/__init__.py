"""The rows of all results, a module a family; and the pages they are on, in the page's order."""

import dataclasses

from row import Row
from rows import client, fairness, memory, overload, ram, restart, retention, ssd_cpu, ssd_reads, tail, tiers, writes

_INTRODUCTION = """\
Each row is a target. If there is a peer, the figure is a ratio to it, measured in one run: five pairs, interleaved; the
median with the lowest and the highest. The server has one core, unless a row says otherwise, and the generator has
others. A figure **does not count** if the generator was the limit, if RAM or the page cache served gets that the SSD
should have served, or if misses were counted as reads.

The machines are small, shared and virtual: rely on ratios, and take absolute figures as a rough guide. `make bench`
measures all rows, `make bench ROW=S7` one of them."""

# Made by a script of its own, of the same name, which writes this page; and what makes the figures of its raw data.
ELSEWHERE = {
    "S12": (
        "hit-ratio",
        "hit ratio at equal RAM, relative to memcached, and at equal RAM and SSD, relative to extstore",
        "never below; 2 points better on at least half",
        "memcached, and its extstore",
        None,
    ),
    "C3": (
        "scenarios/perl-tiers",
        "the read-heavy loop of 28,579 B: both tiers, relative to the remote one alone; to the cache in shared memory alone",
        "50 times as fast; 1.10 or less",
        "the remote server, and shared memory",
        tiers.reads,
    ),
    "C4": (
        "scenarios/perl-tiers",
        "the write-heavy loop: set and get in both tiers, beyond a set in the remote one alone",
        "10 us or less",
        "the remote server",
        tiers.writes,
    ),
}

_MODULES = (ssd_reads, ssd_cpu, memory, writes, retention, tail, ram, restart, fairness, overload)
_ROWS = [row for module in _MODULES for row in module.ROWS]
_ELSEWHERE = [Row(name, what, target, peer, None, None) for name, (_, what, target, peer, _) in ELSEWHERE.items()]


def _in_order(letter, rows):
    """Rows by their names, with those made elsewhere; S6b follows S6."""
    rows = [*rows, *(row for row in _ELSEWHERE if row.name.startswith(letter))]
    return {row.name: row for row in sorted(rows, key=lambda row: (int(row.name[1:].rstrip("b")), row.name))}


@dataclasses.dataclass
class Page:
    """A page of results: `name.md`, with the raw data of its rows in the folder `name` beside it."""

    name: str
    title: str
    introduction: str
    rows: dict


PAGES = [
    Page("server", "The server's results", _INTRODUCTION, _in_order("S", _ROWS)),
    Page("client", "The client's results", client.INTRODUCTION, _in_order("C", client.ROWS)),
]
ROWS = {name: row for page in PAGES for name, row in page.rows.items()}


def page_of(name):
    """Returns the page of a row."""
    return next(page for page in PAGES if name in page.rows)
