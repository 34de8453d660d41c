"""S3: what a get that the SSD serves costs the server, beside memcached's extstore."""

import contextlib

import memory_group
from lab import UNVERIFIED, gets
from row import DEVICE_READS_MIN, RAM_SHARE_MAX, Figure, Row, Shown, doubts, kernel_reads_a_hit, middle, not_from_ssd
from rows.ssd_reads import VALUE_BYTES, used_mib

CPU_LOADS = {"32 x 1": (32, 1), "32 x 4": (32, 4)}
CPU_ITEMS = 1_200_000
# Room for extstore's headers of all items and for what is on its way to the SSD; the group's limit leaves a few
# percent of the data to the page cache.
EXTSTORE_MIB = 256
LARDER_MIB = 52
GROUP_MIB = 320


def measure_cpu(lab):
    pairs = {name: [] for name in CPU_LOADS}
    items = lab.items(CPU_ITEMS)
    ssd_mib = used_mib(items) * 5 // 4 + 256
    with contextlib.ExitStack() as stack:
        groups = {
            name: stack.enter_context(memory_group.limited(name, GROUP_MIB << 20)) for name in ("larder", "extstore")
        }
        servers = {
            "larder": stack.enter_context(
                lab.larder("-m", LARDER_MIB, "--index-memory", "14m", ssd_mib=ssd_mib, group=groups["larder"])
            ),
            "extstore": stack.enter_context(
                lab.extstore("-m", EXTSTORE_MIB, ssd_mib=ssd_mib, group=groups["extstore"])
            ),
        }
        servers["bare"] = stack.enter_context(lab.bare(used_mib(items), VALUE_BYTES))
        lab.fill(servers["larder"], items, VALUE_BYTES)
        lab.fill_extstore(servers["extstore"], items, VALUE_BYTES)
        for _ in range(lab.rounds):
            for name, load in CPU_LOADS.items():
                options = gets(items, VALUE_BYTES, *load)
                pair = {}
                for server, daemon in servers.items():
                    more = UNVERIFIED if server == "bare" else ()
                    pair[server] = lab.load(daemon, *options, *more, seconds=lab.seconds)
                pairs[name].append(pair)
    return pairs


def not_from_extstore(run):
    """For `doubts`: memcached's RAM or the page cache answered where the SSD should have."""
    found = run["growth"].get("get_hits", 0)
    ssd = run["growth"].get("get_extstore", 0)
    if found - ssd > RAM_SHARE_MAX * found:
        return f"extstore's RAM answered: {1 - ssd / max(found, 1):.0%} of the hits"
    reads = kernel_reads_a_hit(run, ssd)
    if reads is not None and reads < DEVICE_READS_MIN:
        return f"the page cache answered for extstore: {reads:.2f} device reads a hit"
    return None


def show_cpu(raw):
    figures, rows = [], []
    for name, pairs in raw.items():
        larder, extstore, bare = ([pair[server] for pair in pairs] for server in ("larder", "extstore", "bare"))
        ratio = Figure(
            f"{name}, of extstore",
            ratios(larder, extstore),
            0.85,
            doubts=doubts(larder, not_from_ssd) + doubts(extstore, not_from_extstore),
        )
        of_bare = Figure(f"{name}, of bare", ratios(larder, bare), 1.15, doubts=doubts(larder, not_from_ssd))
        figures += [ratio, of_bare]
        kernel = [
            kernel_reads_a_hit(run, run["growth"].get("get_extstore", 0)) for run in extstore if run.get("device")
        ]
        rows.append(
            [
                name,
                *(f"{middle([run['server_cpu_us'] for run in runs]):.1f}" for runs in (larder, extstore, bare)),
                ratio.text(),
                of_bare.text(),
                *(f"{middle([run['rate'] for run in runs]):,.0f}" for runs in (larder, extstore, bare)),
                f"{middle(kernel):.2f}" if kernel else "not seen",
            ]
        )
    head = [
        "connections x depth",
        "larder CPU us/get",
        "extstore",
        "bare",
        "of extstore",
        "of bare",
        "larder gets/s",
        "extstore",
        "bare",
        "extstore's device reads/hit, by the kernel",
    ]
    notes = [
        f"{CPU_ITEMS:,} items of 1 KiB; both servers in control groups of {GROUP_MIB} MiB, which bounds the page "
        "cache that extstore reads through. extstore uses all of it, for its headers, and 8 threads; Larder uses "
        f"{LARDER_MIB} MiB, since with more RAM would serve the gets.",
        "The bare server reads a page for each get and does nothing else (`crates/server/examples/bare.rs`).",
    ]
    return Shown(figures, [("", head, rows)], notes)


def ratios(ours, theirs):
    return [run["server_cpu_us"] / beside["server_cpu_us"] for run, beside in zip(ours, theirs)]


ROWS = [
    Row(
        "S3",
        "server CPU of a get from the SSD, both under one memory limit",
        "0.85 of extstore; 1.15 of a bare server",
        "memcached with extstore; a server that only reads a page a get",
        measure_cpu,
        show_cpu,
        ("memcached",),
    )
]
