#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutate.py SOURCE RESULT: memory_group.cpp with faults, of which a test chooses one when it runs.

A fault replaces an expression or statements, where `mutant` has its number. A text that is not in the source exactly once
ends the build: the fault has to follow the source."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
sys.dont_write_bytecode = True
import mutation  # noqa: E402

WOKEN = "peer == ranks_.rank || peer == RankBell::kAnybody"

# Name: pairs of what is replaced and by what. What ends with a newline is statements.
MUTANTS = {
    # Two that were in the source once.
    "a rank posts into a slot that it has not read itself": [
        ("posted_ < consumed_ + Segment::kSlots", "true")],
    "a broadcast compares nothing with ranks that take another root": [
        ("posted_ >= Segment::kSlots && !all_made_same_calls(posted_ - Segment::kSlots + 1)", "false"),
        ("!all_made_same_calls(consumed_ + 1)", "(compared_ = consumed_, !all_made_same_calls(consumed_ + 1))")],
    # Slots and chunks.
    "a chunk is copied into the next slot": [
        ("segment_.slot(ranks_.rank, posted_)", "segment_.slot(ranks_.rank, posted_ + 1)")],
    "a slot is free one chunk early": [
        ("segment_.progress(rank).consumed.load(std::memory_order_acquire) + Segment::kSlots <= posted_",
         "segment_.progress(rank).consumed.load(std::memory_order_acquire) + Segment::kSlots < posted_")],
    "a chunk is consumed one early": [
        ("(segment_.progress(rank).*counter).load(std::memory_order_acquire) <= consumed_",
         "(segment_.progress(rank).*counter).load(std::memory_order_acquire) < consumed_")],
    "a chunk is reduced one early": [
        ("segment_.progress(rank).posted.load(std::memory_order_acquire) <= reduced_",
         "segment_.progress(rank).posted.load(std::memory_order_acquire) < reduced_")],
    "parts are consumed before they are reduced": [
        ("operation.in_parts ? &RankProgress::reduced : &RankProgress::posted", "&RankProgress::posted")],
    "a part is said to be reduced before it is copied": [
        ("""  platform::copy(segment_.slot(ranks_.rank, reduced_) + part.offset, to, part.bytes);
  advance(&RankProgress::reduced, reduced_);
""", """  advance(&RankProgress::reduced, reduced_);
  platform::copy(segment_.slot(ranks_.rank, reduced_ - 1) + part.offset, to, part.bytes);
""")],
    # Waking.
    "who waits for anybody is not woken": [(WOKEN, "peer == ranks_.rank")],
    "a bell is counted but wakes nobody": [("  platform::futex_wake(bell.rings);\n", "")],
    "a bell wakes but is not counted": [("  ++bell.rings;\n", "")],
    "a rank does not look again after it said for whom it waits": [("awaited_rank() != peer", "false")],
    # Memory order.
    "a counter is published without a release": [("std::memory_order_release", "std::memory_order_relaxed")],
    # Losses.
    "nobody asks whether a process has ended": [("ask_kernel &&", "ask_kernel && false &&")],
    "a rank that has left is missed though it is not needed": [("has_left && is_needed", "has_left")],
    "a rank that fails does not say so": [("  own_progress_.has_left = 1;\n", "")],
}


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    replacements = [(number, old, new) for number, fault in enumerate(MUTANTS.values(), 1) for old, new in fault]
    text = mutation.mutate(source, replacements, "exploration::mutant")
    target.write_text(f'#include "exploration/mutants/mutants.hpp"\n{text}\n'
                      f"const std::vector<std::string> exploration::kMutants = {{\n{mutation.list_of(MUTANTS)}}};\n")


main()
