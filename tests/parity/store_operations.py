# SPDX-License-Identifier: Apache-2.0
"""Every operation of torch's own TCPStore client against our server: store_operations.py ACC_STORE_SERVER.

Operations that the installed torch does not have are left out and named at the end.
"""

import sys
import threading
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from store_process import StoreProcess

SHORT = timedelta(milliseconds=200)
LONG = timedelta(seconds=30)


class Client:
    """Makes clients of one server."""

    def __init__(self, port):
        self.port = port

    def __call__(self, **options):
        options = {"wait_for_workers": False, "timeout": LONG, **options}
        return dist.TCPStore("127.0.0.1", self.port, is_master=False, **options)


@contextmanager
def meanwhile(work):
    """Runs `work` in a thread; what it raises is raised here."""
    raised = []

    def run():
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join(60)
    assert not thread.is_alive(), "still blocked"
    if raised:
        raise raised[0]


def fails(error, work):
    try:
        work()
    except error:
        return True
    return False


def has(*names):
    return all(hasattr(dist.TCPStore, name) for name in names)


def values(client):
    a, b = client(), client()
    a.set("k", "v")
    assert b.get("k") == b"v"
    a.set("empty", "")
    assert b.get("empty") == b""
    a.set("ключ", "ünïcode")
    assert b.get("ключ") == "ünïcode".encode()
    long = bytes(range(256)) * (7 << 12)  # near the most that torch's own server takes
    a.set("long", long)
    assert b.get("long") == long
    a.append("appended", "ab")
    a.append("appended", "cd")
    assert b.get("appended") == b"abcd"


def counters(client):
    a, b = client(), client()
    assert a.add("n", 5) == 5
    assert b.add("n", -7) == -2
    assert a.get("n") == b"-2"
    a.set("text", "41")
    assert a.add("text", 1) == 42


def presence(client):
    a = client()
    a.set("k", "v")
    assert a.check(["k"]) and a.check([])
    a.wait([], SHORT)
    assert not a.check(["k", "missing"])
    before = a.num_keys()
    a.set("another", "v")
    assert a.num_keys() == before + 1
    assert a.delete_key("another")
    assert not a.delete_key("another")
    assert a.num_keys() == before


def compare_set(client):
    a = client()
    assert a.compare_set("c", "", "1") == b"1"
    assert a.compare_set("c", "1", "2") == b"2"
    assert a.compare_set("c", "1", "3") == b"2"
    assert a.compare_set("missing", "x", "y") == b"x"
    assert not a.check(["missing"])


def many_keys(client):
    a, b = client(), client()
    keys = [f"many/{i}" for i in range(500)]
    a.multi_set(keys, [str(i) for i in range(500)])
    assert b.multi_get(keys) == [str(i).encode() for i in range(500)]
    assert b.multi_get([]) == []
    assert a.has_extended_api()


def wake_ups(client):
    a, b = client(), client()
    writers = {
        "set": lambda key: b.set(key, "x"),
        "add": lambda key: b.add(key, 1),
        "append": lambda key: b.append(key, "x"),
        "multi_set": lambda key: b.multi_set([key, "other"], ["x", "y"]),
        "compare_set": lambda key: b.compare_set(key, "", "x"),
    }
    for name, write in writers.items():
        with meanwhile(lambda: a.wait([name], LONG)):
            write(name)
    with meanwhile(lambda: a.wait(["one", "two"], LONG)):
        b.set("one", "x")
        b.set("two", "x")
    got = []
    with meanwhile(lambda: got.append(a.get("late"))):
        b.set("late", "value")
    assert got == [b"value"]


def time_outs(client):
    a, b = client(), client()
    assert fails(dist.DistStoreError, lambda: a.wait(["never"], SHORT))
    # Each time-out sends a cancel: the connection must stay in step.
    for _ in range(3):
        assert fails(dist.DistStoreError, lambda: a.wait(["never"], timedelta(milliseconds=1)))
    b.set("never", "x")
    a.set("k", "in step")
    assert a.get("k") == b"in step"


def races_of_wake_up_and_time_out(client):
    a, b = client(), client()
    for i in range(200):
        key = f"race/{i}"

        def wait():
            fails(dist.DistStoreError, lambda: a.wait([key], timedelta(milliseconds=1)))

        with meanwhile(wait):
            b.set(key, str(i))
        assert a.get(key) == str(i).encode()


def prefixes(client):
    a, b = client(), client()
    dist.PrefixStore("outer", dist.PrefixStore("inner", a)).set("k", "v")
    assert b.get("inner/outer/k") == b"v"


def split_requests(client):
    a, b = client(), client()
    a._split_set("split", "in two halves")
    assert b.get("split") == b"in two halves"


def clones(client):
    a = client()
    a.set("k", "v")
    assert a.clone().get("k") == b"v"


def queues(client):
    a, b, c = client(), client(), client()
    a.queue_push("q", "1")
    a.queue_push("q", "2")
    assert b.queue_len("q") == 2
    assert b.check(["q"])
    assert b.queue_pop("q") == b"1" and b.queue_pop("q") == b"2"
    assert b.queue_len("q") == 0
    assert fails(Exception, lambda: a.queue_pop("q", False))
    got = []

    def pop(store):
        # A pop is a wait and then a pop: between them another client may have been quicker.
        while True:
            try:
                return got.append(store.queue_pop("q"))
            except dist.QueueEmptyError:
                pass

    with meanwhile(lambda: pop(a)), meanwhile(lambda: pop(c)):
        b.queue_push("q", "A")
        b.queue_push("q", "B")
    assert sorted(got) == [b"A", b"B"]


def key_lists(client):
    a = client()
    a.set("listed", "v")
    assert "listed" in a.list_keys()


def barriers(client):
    a, b = client(), client()
    with meanwhile(lambda: a.barrier("all", 2, LONG)):
        b.barrier("all", 2, LONG)
    assert b.get("all") == b"2"
    assert fails(dist.DistStoreError, lambda: a.barrier("alone", 2, SHORT))
    assert a.get("alone") == b"1"


def worker_counts(client):
    """What a worker does with an agent store: it is counted, and does not wait for others."""
    client(world_size=4, wait_for_workers=True)
    client(world_size=4, wait_for_workers=True)


def crowds(client):
    crowd = [client() for _ in range(64)]
    threads = [threading.Thread(target=store.wait, args=(["go"], LONG)) for store in crowd]
    for thread in threads:
        thread.start()
    client().set("go", "x")
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert [store.get("go") for store in crowd] == [b"x"] * 64


CHECKS = [
    (values, []),
    (counters, []),
    (presence, []),
    (compare_set, []),
    (many_keys, []),
    (wake_ups, []),
    (time_outs, []),
    (races_of_wake_up_and_time_out, []),
    (prefixes, []),
    (split_requests, ["_split_set"]),
    (clones, ["clone"]),
    (queues, ["queue_push", "queue_pop", "queue_len"]),
    (key_lists, ["list_keys"]),
    (barriers, ["barrier"]),
    (worker_counts, []),
    (crowds, []),
]


def main():
    absent = []
    with StoreProcess(sys.argv[1]) as server:
        for check, needed in CHECKS:
            if not has(*needed):
                absent.append(check.__name__)
                continue
            check(Client(server.port))
            server.reset()
            assert Client(server.port)().num_keys() == 0, "reset left keys"
            print(f"{check.__name__}: ok", flush=True)
    print(f"torch {torch.__version__}; without {', '.join(absent) or 'nothing'}")


if __name__ == "__main__":
    main()
