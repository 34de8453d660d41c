"""A limit on the memory of a server and on the pages of files that it brings there: a control group of its own."""

import contextlib
import os

# Version 1 has a tree for memory alone, version 2 one for everything.
VERSION_1 = "/sys/fs/cgroup/memory"
VERSION_2 = "/sys/fs/cgroup"


class NoGroups(Exception):
    """The system lets us set no limit; in words."""


@contextlib.contextmanager
def limited(name, limit_bytes):
    """Answers the words that, before a command, start it in a group of so many bytes."""
    if os.path.exists(f"{VERSION_1}/memory.limit_in_bytes"):
        place, limit = VERSION_1, "memory.limit_in_bytes"
    elif "memory" in read(f"{VERSION_2}/cgroup.subtree_control").split():
        place, limit = VERSION_2, "memory.max"
    else:
        raise NoGroups("there are no control groups of memory")
    path = f"{place}/larder-proof-{name}-{os.getpid()}"
    try:
        os.mkdir(path)
    except OSError as error:
        raise NoGroups(f"no control group can be made: {error}") from error
    try:
        with open(f"{path}/{limit}", "w", encoding="ascii") as file:
            file.write(str(limit_bytes))
        yield ["sh", "-c", 'echo $$ > "$0" && exec "$@"', f"{path}/cgroup.procs"]
    finally:
        os.rmdir(path)


def read(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""
