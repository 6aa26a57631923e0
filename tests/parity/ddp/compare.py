# SPDX-License-Identifier: Apache-2.0
"""compare.py CPP PYTHON SETUP [LIMIT]: the losses of each batch and the trained parameters and buffers, in CPP.RANK and
PYTHON.RANK, and how far they may be apart: without LIMIT as on CPUs."""
import fileinput
import glob
import sys

# Where a set-up is not named, every digit that is printed (12) must agree.
LIMITS = {
    # Sums in another order: one process on the whole batch.
    "whole": 1e-6,
    "syncnorm": 2e-6,
    # oneDNN sums bf16 in another order where a buffer is aligned differently.
    "bf16": 1e-3,
    "bf16_dropout_checkpoint": 1e-3,
}


def read(path):
    losses, states = {}, {}
    for line in fileinput.input(sorted(glob.glob(path + ".*"))):
        word, rank, index, *values = line.split()
        table = {"loss": losses, "state": states}[word]
        table[int(rank), int(index)] = [float(value) for value in values]
    return losses, states


def average(losses):
    """What the loss of both processes' batches together is."""
    batches = sorted({batch for _, batch in losses})
    return {(0, batch): [(losses[0, batch][0] + losses[1, batch][0]) / 2] for batch in batches}


def difference(ours, theirs):
    if ours.keys() != theirs.keys() or any(len(ours[key]) != len(theirs[key]) for key in ours):
        sys.exit(f"not the same rows: {sorted(ours.keys() ^ theirs.keys())}")
    return max(abs(a - b) for key in ours for a, b in zip(ours[key], theirs[key]))


setup = sys.argv[3]
(our_losses, our_states), (their_losses, their_states) = read(sys.argv[1]), read(sys.argv[2])
if setup in ("whole", "syncnorm"):
    our_losses = average(our_losses)
    their_states = {(rank, index): values for (_, index), values in their_states.items() for rank in (0, 1)}
if len(our_losses) < 100:
    sys.exit(f"only {len(our_losses)} losses")
losses, states = difference(our_losses, their_losses), difference(our_states, their_states)
limit = float(sys.argv[4]) if len(sys.argv) > 4 else LIMITS.get(setup, 0)
print(f"largest difference: {losses:.3g} in {len(our_losses)} losses, {states:.3g} in parameters and buffers "
      f"(at most {limit:g})")
sys.exit(max(losses, states) > limit)
