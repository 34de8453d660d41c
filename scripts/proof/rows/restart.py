"""S13: a daemon is killed under load, and the next one has its items."""

import contextlib
import os
import socket
import subprocess
import time

import proof
from row import Figure, Row, Shown, hits, misses

ITEMS = 10_000_000
VALUE_BYTES = 100
MEMORY_MIB = 512
SHARED = "/dev/shm"


def measure(lab):
    items = lab.items(ITEMS)
    memory = os.path.join(SHARED if os.path.isdir(SHARED) else lab.folder, f"larder-proof-{os.getpid()}")
    ssd = lab.path("larder.ssd")
    port = proof.free_port()
    command = lab.larder_command(
        "-m", MEMORY_MIB, "--item-size", 150, "--memory-file", memory, ssd=f"{ssd}:{items * 180 >> 20}m", port=port
    )
    keys = ["-k", items, "--value-size", VALUE_BYTES]
    rounds, daemon = [], None
    try:
        daemon = proof.Daemon(lab.folder, command, None, port)
        daemon.is_larder = True
        lab.fill(daemon, items, VALUE_BYTES)
        for _ in range(lab.rounds):
            with lab.begin(daemon, *keys, "--ratio", "1:3", "-c", 16, "--pipeline", 8, seconds=60):
                time.sleep(1 + lab.seconds / 2)
                before = daemon.larder()
                daemon.kill()
            started = time.monotonic()
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=proof.clean_environment(),
            )
            daemon.process = process
            answered = first_answer(port, process) - started
            after = daemon.larder()
            check = lab.load(
                daemon, *keys, "--ratio", "0:1", "-c", 16, "--pipeline", 8, "--verify", "full", seconds=lab.seconds
            )
            rounds.append(
                {
                    "seconds_to_first_answer": answered,
                    "items_before": before["ram_items"] + before["ssd_items"],
                    "items_back": after["restart_items"],
                    "is_warm": after["restart_warm"],
                    "shards": after["shards"],
                    "shards_reset": after["shards_reset"],
                    "check": check,
                }
            )
    finally:
        if daemon:
            daemon.stop()
        for path in (memory, ssd):
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
    return {"items": items, "rounds": rounds}


def first_answer(port, process):
    """When a get was first answered."""
    while process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 60) as connection:
            connection.sendall(b"get key:1\r\n")
            if connection.recv(1 << 16):
                return time.monotonic()
        time.sleep(0.001)
    raise RuntimeError(f"larder ended with {process.returncode} when it was started again")


def show(raw):
    rounds = raw["rounds"]
    cold = [one for one in rounds if not one["is_warm"]]
    reasons = [f"{len(cold)} of {len(rounds)} starts were cold"] if cold else []
    back = Figure(
        "items back",
        [one["items_back"] / one["items_before"] * 100 for one in rounds],
        99,
        is_most=False,
        unit="%",
        digits=2,
        doubts=reasons,
    )
    answer = Figure("first answer", [one["seconds_to_first_answer"] for one in rounds], 1, unit="s", doubts=reasons)
    wrong = Figure("wrong values", [one["check"]["wrong"] for one in rounds], 0, digits=0)
    rows = [
        [
            number + 1,
            f"{one['items_before']:,.0f}",
            f"{one['items_back']:,.0f}",
            f"{one['items_back'] / one['items_before']:.2%}",
            f"{one['shards_reset']:.0f} of {one['shards']:.0f}",
            f"{one['seconds_to_first_answer'] * 1000:,.0f}",
            f"{hits(one['check']) / max(hits(one['check']) + misses(one['check']), 1):.2%}",
            f"{one['check']['verified']:,}",
            f"{one['check']['wrong']:,}",
        ]
        for number, one in enumerate(rounds)
    ]
    head = [
        "kill",
        "items before",
        "back",
        "share",
        "shards reset",
        "exec to first answer, ms",
        "hits after",
        "verified",
        "wrong",
    ]
    notes = [
        f"{raw['items']:,} items of {VALUE_BYTES} B through {MEMORY_MIB} MiB and an SSD file, killed (`kill -9`) while "
        "sets and gets run; the memory file is on tmpfs. The daemon has all cores: nothing else runs then.",
        "Each value holds its key and a checksum, so the check finds wrong and damaged values, but not older ones. "
        "`make torture` finds those, with an oracle of everything acknowledged; [GUARANTEES.md](../../GUARANTEES.md) has "
        "its last figure.",
    ]
    return Shown([back, answer, wrong], [("", head, rows)], notes)


ROWS = [
    Row(
        "S13",
        "warm restart after kill -9 under load, 10 M items: items back, first answer, wrong values",
        "99 % or more; 1 s or less; none",
        "",
        measure,
        show,
    )
]
