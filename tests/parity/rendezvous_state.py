# SPDX-License-Identifier: Apache-2.0
"""Random rendezvous states there and back: rendezvous_state.py ACC_RENDEZVOUS_STATE.

Python pickles torch's own classes, our program reads and writes them, Python must find what it sent.
"""

import base64
import pickle
import random
import subprocess
import sys
from datetime import datetime, timedelta, timezone

from torch.distributed.elastic.rendezvous import dynamic_rendezvous as dynamic

STATES = 300
random.seed(4711)


def some_time(zone):
    seconds = random.randrange(4 * 10**9)
    time = datetime(1970, 1, 1, tzinfo=zone) + timedelta(seconds=seconds, microseconds=random.randrange(10**6))
    return time.replace(fold=random.randrange(2)) if random.random() < 0.1 else time


def some_node():
    letters = random.choice(["abcxyz019.-", "äß漢字🙂"])
    addr = "".join(random.choices(letters, k=random.choice([0, 1, 9, 40])))
    return dynamic._NodeDesc(addr, random.choice([0, 255, 256, 65535, 65536, 2**31 - 1, 2**40]), random.randrange(3))


def same(node):
    """Another object of the same value: after a reload nodes are not shared."""
    return dynamic._NodeDesc(node.addr, node.pid, node.local_id) if random.random() < 0.3 else node


def some_state(size):
    zone = random.choice([None, timezone.utc])
    state = dynamic._RendezvousState()
    state.round = random.choice([0, 1, 70000])
    state.complete = random.random() < 0.5
    state.closed = random.random() < 0.2
    state.deadline = some_time(zone) if random.random() < 0.5 else None
    nodes = [some_node() for _ in range(size)]
    state.participants = {same(node): random.randrange(2000) for node in nodes[: size // 2]}
    state.wait_list = {same(node) for node in nodes[size // 2 : size * 3 // 4]}
    state.redundancy_list = {same(node) for node in nodes[size * 3 // 4 :]}
    state.last_heartbeats = {same(node): some_time(zone) for node in nodes}
    return state


def main():
    states = [some_state(random.choice([0, 1, 2, 5, 30])) for _ in range(STATES)] + [some_state(1500)]
    lines = [base64.b64encode(pickle.dumps(state, random.choice([None, 4, 5]))) for state in states]
    program = subprocess.run([sys.argv[1]], input=b"\n".join(lines) + b"\n", stdout=subprocess.PIPE, check=True)
    returned = program.stdout.split()
    assert len(returned) == len(states)
    for state, text in zip(states, returned):
        got = pickle.loads(base64.b64decode(text))
        assert type(got) is dynamic._RendezvousState
        assert got.__dict__ == state.__dict__, (state.__dict__, got.__dict__)
        assert list(got.__dict__) == list(state.__dict__)
    print(f"{len(states)} states: ok")


if __name__ == "__main__":
    main()
