"""Shared memory: L1 alone, in front of a server, in threads, in forked children, and with one of them killed."""

import os
import signal
import threading
import time

import larder
import pytest

KEYS = 50


def value_of(n, version=0):
    return b"%d.%d:" % (n, version) * (1 + n * 20)


def fork(work):
    """Returns the id of a child that runs `work` and exits with 0 if that raised nothing."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode() + b"\n")
            os._exit(1)
    return pid


def all_end_well(pids):
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * len(pids)


def test_caches_of_one_name_in_front_of_different_servers_share_nothing(server):
    name = os.environ["LARDER_SHARED_MEMORY"] + "-of-two"
    one, same = (larder.Tiered(name, larder.Client(server)) for _ in range(2))
    large = os.environ["LARDER_LARGE_SERVER"]
    other = larder.Tiered(name, larder.Client(large, breakers=name))
    one.set("k", b"one")
    assert same.peek("k") == b"one" and other.get("k") is None
    other.set("k", b"other")
    assert one.get("k") == b"one"
    assert one.l1.path.endswith(name) and os.path.basename(other.l1.path).startswith(f"{name}-")
    assert larder.L1(name, servers=other.servers).path == other.l1.path
    other.delete("k")
    assert larder.L1.remove(os.path.basename(other.l1.path)) and larder.L1.remove(name)


def test_times_differ_by_prefix_and_by_call(server, l1):
    other = larder.Client(server, default_noreply=False)
    tiered = larder.Tiered(l1, larder.Client(server), fresh=0.3).with_prefix("long:", fresh=600)
    tiered = tiered.with_prefix(b"long:not:", fresh=0.0, negative=600)
    keys = ["short:k", "long:k", "long:not:k"]
    for value in (b"old", b"new"):
        other.set_many(dict.fromkeys(keys, value))
        if value == b"old":
            assert [tiered.get(key) for key in keys] == [b"old"] * 3
    time.sleep(0.4)
    assert [tiered.get(key) for key in keys] == [b"new", b"old", b"new"]
    assert tiered.get("long:not:none") is None
    other.set("long:not:none", b"new")
    assert tiered.get("long:not:none") is None, "it is known that there is none"
    assert tiered.get_many(keys)["long:k"] == b"old"
    now = tiered.using(fresh=0.0)
    assert isinstance(now, larder.Tiered) and now.l1.path == tiered.l1.path
    assert now.peek("long:k") is None and tiered.peek("long:k") == b"old"
    assert now.get("long:k") == b"new" and tiered.get("long:k") == b"new"
    for words in ({"fresh": -1}, {"stale": float("nan")}):
        with pytest.raises(ValueError, match="give seconds, 0 or more"):
            tiered.using(**words)
        with pytest.raises(ValueError, match="give seconds, 0 or more"):
            tiered.with_prefix("long:", **words)


def test_an_l1_keeps_bytes_of_all_sizes(l1):
    for size in (0, 1, 100, 9_000, 1_000_000):
        assert l1.set("k", b"x" * size)
        assert l1.get("k") == l1.get(b"k") == b"x" * size
    assert not l1.set("k", b"x" * (l1.value_bytes_max + 1000))
    assert l1.get("k") is None and l1.get("k", 7) == 7 and "k" not in l1
    with pytest.raises(TypeError):
        l1.set("k", "text")
    with pytest.raises(TypeError):
        l1.get(7)


def test_an_l1_expires_deletes_and_counts(l1):
    l1.set("short", b"x", expire=0.05)
    l1.set("long", b"x", expire=100)
    time.sleep(0.1)
    assert (l1.get("short"), l1.get("long")) == (None, b"x")
    assert (l1.delete("long"), l1.delete("long")) == (True, False)
    l1.set("a", b"x")
    assert len(l1) >= 1
    l1.clear()
    assert len(l1) == 0
    assert l1.stats()["hits"] == 1
    assert os.path.getsize(l1.path) == l1.size


def test_an_l1_counts_by_process_and_keeps_what_ended_ones_counted(l1):
    def hits():
        return {row["pid"]: row["hits"] for row in l1.stats_by_process()}

    def read(times):
        assert [l1.get("k") for _ in range(times)] == [b"x"] * times

    assert hits() == {0: 0}
    l1.set("k", b"x")
    read(5)
    told, tell = os.pipe()
    done, end = os.pipe()

    def child(times):
        os.close(end)
        read(times)
        os.write(tell, b"x")
        os.read(done, 1)

    children = [fork(lambda times=times: child(times)) for times in (10, 20)]
    assert os.read(told, 1) + os.read(told, 1) == b"xx"
    assert hits() == {os.getpid(): 5, children[0]: 10, children[1]: 20, 0: 0}
    os.kill(children[0], signal.SIGKILL)
    os.waitpid(children[0], 0)
    assert hits() == {os.getpid(): 5, children[1]: 20, 0: 10}
    os.close(end)
    assert all_end_well(children[1:])
    assert hits() == {os.getpid(): 5, 0: 30}
    rows = l1.stats_by_process()
    assert {name: sum(row[name] for row in rows) for name in l1.stats()} == l1.stats()


def test_an_l1_without_a_file_is_shared_with_children():
    l1 = larder.L1.anonymous(size=1 << 20)
    assert l1.path is None
    assert all_end_well([fork(lambda: l1.set("k", b"child's"))])
    assert l1.get("k") == b"child's"


def test_an_l1_that_cannot_be_opened_says_why(tmp_path):
    with pytest.raises(ValueError, match="name"):
        larder.L1("../x")
    with pytest.raises(ValueError, match="bytes"):
        larder.L1("x", size=7)
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match="0700"):
        larder.L1("x", directory=tmp_path)


def test_reads_come_from_shared_memory_and_writes_are_seen_at_once(server, tiered):
    plain = larder.Client(server)
    tiered.set("k", b"1")
    plain.set("k", b"other's", noreply=False)
    assert (tiered.get("k"), tiered.peek("k"), tiered.gets("k")[0]) == (b"1", b"1", b"other's")
    for change in (
        lambda: tiered.append("k", b"!"),
        lambda: tiered.incr("k", 1, initial=5),
        lambda: tiered.touch("k", 100),
        lambda: tiered.gat("k", 100),
        lambda: tiered.cas("k", b"7", tiered.gets("k")[1]),
        lambda: tiered.add("k", b"7"),
        lambda: tiered.replace("k", b"8"),
        lambda: tiered.delete("k"),
        lambda: tiered.flush_all(),
    ):
        tiered.set("k", b"1")
        change()
        assert tiered.peek("k") is None
        assert tiered.get("k") == plain.get("k")


def test_a_value_is_fresh_for_so_long(server, l1):
    tiered, plain = larder.Tiered(l1, larder.Client(server), fresh=0.2), larder.Client(server)
    tiered.set("k", b"1")
    plain.set("k", b"2", noreply=False)
    assert tiered.get("k") == b"1"
    time.sleep(0.3)
    assert tiered.get("k") == b"2"


def test_a_missing_value_is_created_once(tiered):
    calls = []

    def create():
        calls.append(1)
        time.sleep(0.2)
        return b"made"

    found = []
    threads = [threading.Thread(target=lambda: found.append(tiered.get_or_create("k", create, 60))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found, len(calls)) == ([b"made"] * 8, 1)
    with pytest.raises(KeyError, match="no luck"):
        tiered.get_or_create("other", lambda: {}["no luck"])
    assert tiered.get_or_create("other", lambda: b"luck") == b"luck"


def test_a_value_that_is_being_created_is_missing_to_others(server, tiered):
    plain = larder.Client(server)

    def create():
        assert plain.get("k") is None and plain.gets("k") == (None, None) and plain.get_many(["k"]) == {}
        assert plain.gets_many(["k"]) == {}
        return b"made"

    assert tiered.get_or_create("k", create) == b"made"
    assert plain.get("k") == b"made"


def test_a_created_object_comes_back_as_others_read_it(server, l1):
    tiered = larder.Tiered(l1, larder.Client(server, serde=larder.serde.json), fresh=600)
    assert tiered.get_or_create("k", lambda: {"a": (1, 2)}) == {"a": [1, 2]}
    assert tiered.peek("k") == tiered.get("k") == {"a": [1, 2]}
    assert tiered.get_many(["k", "none"]) == {"k": {"a": [1, 2]}}


def use(client, plain, mine, rounds):
    """Reads what all share, and changes what is this one's alone; whatever is wrong is raised."""
    for turn in range(rounds):
        for n in range(KEYS):
            assert client.get(f"shared:{n}") == value_of(n)
        own = f"own:{mine}"
        client.set(own, value_of(3, turn), noreply=False)
        assert client.get(own) == value_of(3, turn)
        assert plain.get(own) == value_of(3, turn)
        plain.incr("count", 1)
        found = client.get_many([f"shared:{n}" for n in range(KEYS)])
        assert all(found[f"shared:{n}"] == value_of(n) for n in range(KEYS))


def prepare(server):
    plain = larder.Client(server)
    plain.set_many({f"shared:{n}": value_of(n) for n in range(KEYS)}, noreply=False)
    plain.set("count", b"0", noreply=False)
    return plain


def test_eight_threads_share_a_client(server, tiered):
    plain = prepare(server)
    for client in (plain, tiered):
        errors = []

        def work(mine, client=client, errors=errors):
            try:
                use(client, plain, mine, 10)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
    assert plain.get("count") == b"160"


def test_children_go_on_with_the_clients_of_their_parent(server, tiered):
    plain = prepare(server)
    use(tiered, plain, "parent", 1)
    children = [fork(lambda n=n: use(tiered, plain, n, 20)) for n in range(4)]
    use(tiered, plain, "parent", 20)
    assert all_end_well(children)
    assert plain.get("count") == b"101"


def test_a_child_that_is_killed_harms_nobody(server, tiered):
    plain = prepare(server)
    for _ in range(5):
        children = [fork(lambda n=n: use(tiered, plain, n, 1_000_000)) for n in range(2)]
        time.sleep(0.1)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        use(tiered, plain, "parent", 5)


def test_a_hit_asks_no_server_in_threads_of_python(tiered):
    tiered.set("k", b"v")
    hits = tiered.l1.stats()["hits"]
    for _ in range(1000):
        assert tiered.get("k") == b"v"
    assert tiered.l1.stats()["hits"] - hits == 1000
