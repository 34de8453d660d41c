"""The rows of the server's results, a module a family, in the order of the page."""

from row import Row
from rows import fairness, memory, overload, ram, restart, retention, ssd_cpu, ssd_reads, tail, writes

# Made by a script of its own, which writes a page of its own.
ELSEWHERE = {
    "S12": (
        "hit-ratio",
        "hit ratio at equal RAM, relative to memcached, and at equal RAM and SSD, relative to extstore",
        "never below; 2 points better on at least half",
        "memcached, and its extstore",
    )
}

_MODULES = (ssd_reads, ssd_cpu, memory, writes, retention, tail, ram, restart, fairness, overload)
_ROWS = [row for module in _MODULES for row in module.ROWS]
_ROWS += [Row(name, what, target, peer, None, None) for name, (_, what, target, peer) in ELSEWHERE.items()]
# S6b follows S6.
ROWS = {row.name: row for row in sorted(_ROWS, key=lambda row: (int(row.name[1:].rstrip("b")), row.name))}
