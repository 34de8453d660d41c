"""How long a client waits for a daemon beside others, as far as that is the daemon's doing."""

import contextlib
import os
import time

from larder_test import expect_that, value_of

# What `bounds` allows beside its crowds.
FAIR_MS = 300
GETS_MIN = 100
EVERY_S = 0.004
VALUE = value_of(100)


def delays(pid):
    """For how long each thread of a process, and this thread, has waited for a processor, in ns."""
    paths = {name: f"/proc/{pid}/task/{name}/schedstat" for name in os.listdir(f"/proc/{pid}/task")}
    paths["own"] = "/proc/thread-self/schedstat"
    found = {}
    for name, path in paths.items():
        # A thread may end meanwhile.
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            found[name] = int(file.read().split()[1])
    return found


class Waits:
    """The waits for gets of a small item, in ms. The time for which a thread of the daemon, or the client, was ready and got no
    processor is taken off: on a busy machine that is most of it, and none of the daemon's doing."""

    def __init__(self, pid, connection, seconds, each=lambda: None):
        self.times = []
        end = time.monotonic() + seconds
        while time.monotonic() < end or len(self.times) < GETS_MIN:
            before, began = delays(pid), time.monotonic()
            expect_that(connection.get(b"probe") == VALUE, "another value")
            took, after = time.monotonic() - began, delays(pid)
            waited = {name: after[name] - before.get(name, 0) for name in after}
            own = waited.pop("own", 0)
            self.times.append(max(0.0, took * 1e3 - (max(waited.values()) + own) / 1e6))
            each()
            time.sleep(EVERY_S)
        self.times.sort()

    @property
    def p99(self):
        return self.times[len(self.times) * 99 // 100 - 1]

    def __str__(self):
        return f"p50 {self.times[len(self.times) // 2]:.1f} ms, p99 {self.p99:.1f} ms, most {self.times[-1]:.0f} ms"

    def expect_fair(self, name):
        """Fails if others are made to wait."""
        print(f"# {name}: {self}", flush=True)
        expect_that(self.p99 <= FAIR_MS, f"{name}: {self}")
