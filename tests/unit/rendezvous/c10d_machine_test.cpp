// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/c10d_machine.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

using acc::launcher::C10dMachine;
using acc::launcher::RendezvousNode;
using acc::launcher::RendezvousState;
using acc::launcher::WallTime;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Outlook = C10dMachine::Outlook;

RendezvousNode node(const std::string& addr) {
  return {addr, 1, 0};
}

const WallTime kMidday = std::chrono::sys_days(std::chrono::year(2026) / 11 / 21) + hours(12);

// Machines at one board, on one steady clock; each may have a wall clock of its own.
struct Board {
  RendezvousState state = {};
  C10dMachine::Now now = {.steady = {}, .wall = kMidday};

  void pass(milliseconds time) {
    now.steady += time;
    now.wall += time;
  }
  // Lets the machine write until it has nothing to write.
  Outlook settle(C10dMachine& machine, std::chrono::microseconds clock_error = {}) {
    const C10dMachine::Now its_now = {now.steady, now.wall + clock_error};
    for (int i = 0; i < 10; ++i) {
      const C10dMachine::Step step = machine.step(state, its_now);
      if (!step.write) return step.outlook;
      state = step.state;
    }
    FAIL("it writes on and on");
    return Outlook::idle;
  }
  // What a torchrun agent does at a heartbeat.
  void foreign_beat(const RendezvousNode& who, std::chrono::microseconds clock_error = {}) {
    state.last_heartbeats[who] = now.wall + clock_error;
  }
  void foreign_joins(const RendezvousNode& who, std::chrono::microseconds clock_error = {}) {
    state.participants[who] = 0;
    state.times_have_zone = true;
    foreign_beat(who, clock_error);
  }
};

C10dMachine machine_of(const std::vector<std::string>& own, std::size_t least, std::size_t most,
                       const Board& board) {
  C10dMachine machine({.least_nodes = least, .most_nodes = most});
  for (const std::string& addr : own) machine.add(node(addr));
  machine.next_round(board.now);
  return machine;
}

std::vector<std::string> ranks(const RendezvousState& state) {
  std::vector<std::string> result(state.participants.size());
  for (const auto& [each, rank] : state.participants) result.at(static_cast<std::size_t>(rank)) = each.addr;
  return result;
}

}  // namespace

TEST_CASE("c10d machine: all own nodes join with one write, ranked by address", "[rendezvous]") {
  Board board;
  C10dMachine machine = machine_of({"b", "c", "a"}, 3, 3, board);
  const C10dMachine::Step step = machine.step(board.state, board.now);
  CHECK(step.write);
  CHECK(step.state.complete);
  CHECK(step.state.times_have_zone == true);
  CHECK(step.state.last_heartbeats.size() == 3);
  board.state = step.state;
  CHECK(board.settle(machine) == Outlook::in_round);
  CHECK(ranks(board.state) == std::vector<std::string>{"a", "b", "c"});
  CHECK_FALSE(board.state.deadline.has_value());
}

TEST_CASE("c10d machine: before a round is wanted it only looks on", "[rendezvous]") {
  Board board;
  C10dMachine machine({});
  CHECK(board.settle(machine) == Outlook::idle);
  machine.add(node("a"));
  CHECK(board.settle(machine) == Outlook::idle);
  CHECK(board.state == RendezvousState());
}

TEST_CASE("c10d machine: two sets make one round, whoever comes first", "[rendezvous]") {
  Board board;
  C10dMachine one = machine_of({"b"}, 3, 3, board);
  C10dMachine two = machine_of({"a", "c"}, 3, 3, board);
  CHECK(board.settle(one) == Outlook::joining);
  CHECK(board.settle(two) == Outlook::in_round);
  CHECK(board.settle(one) == Outlook::in_round);
  CHECK(ranks(board.state) == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("c10d machine: with enough nodes the last call begins, and ends", "[rendezvous]") {
  Board board;
  C10dMachine machine = machine_of({"a", "b"}, 2, 4, board);
  CHECK(board.settle(machine) == Outlook::joining);
  CHECK(board.state.deadline == kMidday + seconds(30));
  CHECK(machine.step(board.state, board.now).next == board.now.steady + seconds(30));
  board.pass(seconds(29));
  CHECK(board.settle(machine) == Outlook::joining);
  board.pass(seconds(1));
  CHECK(board.settle(machine) == Outlook::in_round);
}

TEST_CASE("c10d machine: another's last call lasts as long as ours, whatever its clock says",
          "[rendezvous]") {
  const auto clock_error = GENERATE(hours(-5), hours(0), hours(5));
  Board board;
  board.foreign_joins(node("b"), clock_error);
  board.state.deadline = board.now.wall + clock_error + seconds(30);
  C10dMachine machine = machine_of({"a"}, 1, 4, board);
  CHECK(board.settle(machine) == Outlook::joining);
  for (int i = 0; i < 29; ++i) {
    board.pass(seconds(1));
    board.foreign_beat(node("b"), clock_error);
    CHECK(board.settle(machine) == Outlook::joining);
  }
  board.pass(seconds(1));
  CHECK(board.settle(machine) == Outlook::in_round);
}

TEST_CASE("c10d machine: who falls below the least nodes takes the last call back", "[rendezvous]") {
  Board board;
  C10dMachine machine = machine_of({"a", "b"}, 2, 4, board);
  board.settle(machine);
  machine.remove(node("b"));
  CHECK(board.settle(machine) == Outlook::joining);
  CHECK_FALSE(board.state.deadline.has_value());
  CHECK(board.state.participants.size() == 1);
  CHECK(board.state.last_heartbeats.size() == 1);
  board.pass(seconds(3));
  machine.add(node("c"));
  board.settle(machine);
  CHECK(board.state.deadline == kMidday + seconds(33));
}

TEST_CASE("c10d machine: a heartbeat is due every interval, for all own nodes at once", "[rendezvous]") {
  Board board;
  C10dMachine machine = machine_of({"a", "b"}, 2, 2, board);
  board.settle(machine);
  board.pass(milliseconds(4999));
  CHECK_FALSE(machine.step(board.state, board.now).write);
  board.pass(milliseconds(1));
  CHECK(board.settle(machine) == Outlook::in_round);
  CHECK(board.state.last_heartbeats.at(node("a")) == board.now.wall);
  CHECK(board.state.last_heartbeats.at(node("b")) == board.now.wall);
}

TEST_CASE("c10d machine: clocks that are hours apart kill nobody", "[rendezvous]") {
  const auto clock_error = GENERATE(hours(-5), hours(5));
  Board board;
  C10dMachine machine = machine_of({"a"}, 2, 2, board);
  board.foreign_joins(node("b"), clock_error);
  CHECK(board.settle(machine) == Outlook::in_round);
  for (int i = 0; i < 60; ++i) {
    board.pass(seconds(1));
    if (i % 5 == 0) board.foreign_beat(node("b"), clock_error);
    REQUIRE(board.settle(machine) == Outlook::in_round);
    // torchrun compares with its own clock: ours must not look older than 15 s.
    CHECK(board.state.last_heartbeats.at(node("a")) > board.now.wall + clock_error - seconds(12));
  }
}

TEST_CASE("c10d machine: whose heartbeat stands still is gone, and the round is over", "[rendezvous]") {
  Board board;
  C10dMachine machine = machine_of({"a"}, 2, 2, board);
  board.foreign_joins(node("b"));
  CHECK(board.settle(machine) == Outlook::in_round);
  board.pass(milliseconds(14'999));
  CHECK(board.settle(machine) == Outlook::in_round);
  board.pass(milliseconds(1));
  CHECK(board.settle(machine) == Outlook::changed);
  CHECK(machine.step(board.state, board.now).state.participants.size() == 1);
}

TEST_CASE("c10d machine: who is gone does not keep the next round from coming", "[rendezvous]") {
  Board board;
  C10dMachine machine = machine_of({"a"}, 1, 2, board);
  board.foreign_joins(node("b"));
  CHECK(board.settle(machine) == Outlook::in_round);
  board.pass(seconds(15));
  CHECK(board.settle(machine) == Outlook::changed);
  machine.next_round(board.now);
  CHECK(board.settle(machine) == Outlook::joining);
  CHECK(board.state.round == 1);
  CHECK_FALSE(board.state.last_heartbeats.contains(node("b")));
  board.pass(seconds(30));
  CHECK(board.settle(machine) == Outlook::in_round);
  CHECK(ranks(board.state) == std::vector<std::string>{"a"});
}

TEST_CASE("c10d machine: an own node is never dead", "[rendezvous]") {
  Board board;
  C10dMachine machine = machine_of({"a", "b"}, 2, 2, board);
  board.settle(machine);
  board.pass(hours(1));
  CHECK(board.settle(machine) == Outlook::in_round);
}

TEST_CASE("c10d machine: the last call does not end before those who waited have come, or are gone",
          "[rendezvous]") {
  Board board;
  board.foreign_joins(node("b"));
  board.state.participants.clear();
  board.state.wait_list.insert(node("b"));
  C10dMachine machine = machine_of({"a"}, 1, 3, board);
  CHECK(board.settle(machine) == Outlook::joining);
  for (int i = 0; i < 6; ++i) {
    board.pass(seconds(10));
    board.foreign_beat(node("b"));
    CHECK(board.settle(machine) == Outlook::joining);
  }
  SECTION("it comes") {
    board.state.wait_list.clear();
    board.foreign_joins(node("b"));
    CHECK(board.settle(machine) == Outlook::in_round);
    CHECK(board.state.participants.size() == 2);
  }
  SECTION("it is gone") {
    board.pass(seconds(15));
    CHECK(board.settle(machine) == Outlook::in_round);
    CHECK(board.state.participants.size() == 1);
  }
}

TEST_CASE("c10d machine: one who waits ends the round", "[rendezvous]") {
  Board board;
  C10dMachine machine = machine_of({"a"}, 1, 2, board);
  board.settle(machine);
  board.pass(seconds(30));
  CHECK(board.settle(machine) == Outlook::in_round);
  SECTION("another's node") {
    board.state.wait_list.insert(node("b"));
    board.foreign_beat(node("b"));
    CHECK(board.settle(machine) == Outlook::changed);
    machine.next_round(board.now);
    CHECK(board.settle(machine) == Outlook::joining);  // until b, which finds the round open, comes in
    CHECK(board.state.round == 1);
    CHECK(board.state.wait_list.contains(node("b")));
    board.state.wait_list.clear();
    board.foreign_joins(node("b"));
    CHECK(board.settle(machine) == Outlook::in_round);
  }
  SECTION("an own node") {
    machine.add(node("b"));
    CHECK(board.settle(machine) == Outlook::changed);
    CHECK(board.state.wait_list.contains(node("b")));
    machine.next_round(board.now);
    CHECK(board.settle(machine) == Outlook::in_round);
    CHECK(board.state.round == 1);
    CHECK(ranks(board.state) == std::vector<std::string>{"a", "b"});
    CHECK(board.state.wait_list.empty());
  }
}

TEST_CASE("c10d machine: after a round of own nodes alone no last call is needed", "[rendezvous]") {
  Board board;
  C10dMachine machine = machine_of({"a", "b", "c"}, 2, 4, board);
  board.settle(machine);
  board.pass(seconds(30));
  CHECK(board.settle(machine) == Outlook::in_round);
  machine.remove(node("c"));
  CHECK(board.settle(machine) == Outlook::changed);
  machine.next_round(board.now);
  CHECK(board.settle(machine) == Outlook::in_round);
  CHECK(ranks(board.state) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("c10d machine: beside others' nodes the old round ends when all have left it", "[rendezvous]") {
  Board board;
  C10dMachine one = machine_of({"a"}, 2, 2, board);
  C10dMachine two = machine_of({"b"}, 2, 2, board);
  board.settle(one);
  board.settle(two);
  CHECK(board.settle(one) == Outlook::in_round);
  one.next_round(board.now);
  CHECK(board.settle(one) == Outlook::joining);
  CHECK(board.state.wait_list.contains(node("a")));
  CHECK(board.state.round == 0);
  CHECK(board.settle(two) == Outlook::changed);
  two.next_round(board.now);
  CHECK(board.settle(two) == Outlook::joining);
  CHECK(board.state.round == 1);
  CHECK(board.settle(one) == Outlook::in_round);
  CHECK(board.settle(two) == Outlook::in_round);
}

TEST_CASE("c10d machine: surplus nodes are spares, and come in when one is lost", "[rendezvous]") {
  Board board;
  C10dMachine machine = machine_of({"a", "b", "c"}, 2, 2, board);
  CHECK(board.settle(machine) == Outlook::in_round);
  CHECK(ranks(board.state) == std::vector<std::string>{"a", "b"});
  CHECK(board.state.redundancy_list.contains(node("c")));
  machine.remove(node("a"));
  CHECK(board.settle(machine) == Outlook::changed);
  CHECK(board.state.wait_list.contains(node("c")));
  machine.next_round(board.now);
  CHECK(board.settle(machine) == Outlook::in_round);
  CHECK(ranks(board.state) == std::vector<std::string>{"b", "c"});
  CHECK(board.state.redundancy_list.empty());
}

TEST_CASE("c10d machine: a set that is all surplus waits without a time limit", "[rendezvous]") {
  Board board;
  C10dMachine ones = machine_of({"a", "b"}, 2, 2, board);
  board.settle(ones);
  C10dMachine machine = machine_of({"c"}, 2, 2, board);
  for (int i = 0; i < 300; ++i) {
    CHECK(board.settle(machine) == Outlook::spare);
    CHECK(board.settle(ones) == Outlook::in_round);
    board.pass(seconds(4));
  }
  ones.remove(node("b"));
  board.settle(ones);
  CHECK(board.settle(machine) == Outlook::joining);
  CHECK(board.settle(ones) == Outlook::changed);
  ones.next_round(board.now);
  board.settle(ones);
  CHECK(board.settle(machine) == Outlook::in_round);
}

TEST_CASE("c10d machine: too few nodes in time is an end, and leaves nothing behind", "[rendezvous]") {
  Board board;
  C10dMachine machine = machine_of({"a"}, 2, 2, board);
  board.settle(machine);
  for (int i = 0; i < 150; ++i) {
    board.pass(seconds(4));
    CHECK(board.settle(machine) == (i < 149 ? Outlook::joining : Outlook::timed_out));
  }
  CHECK(board.state.participants.empty());
  CHECK(board.state.last_heartbeats.empty());
}

TEST_CASE("c10d machine: closed is closed for all", "[rendezvous]") {
  Board board;
  C10dMachine one = machine_of({"a"}, 2, 2, board);
  C10dMachine two = machine_of({"b"}, 2, 2, board);
  board.settle(one);
  board.settle(two);
  one.close();
  CHECK(board.settle(one) == Outlook::closed);
  CHECK(board.state.closed);
  CHECK(board.settle(two) == Outlook::closed);
  two.next_round(board.now);
  CHECK(board.settle(two) == Outlook::closed);
}

TEST_CASE("c10d machine: taken for dead while it slept, it waits for the next round", "[rendezvous]") {
  Board board;
  C10dMachine machine = machine_of({"a"}, 1, 2, board);
  board.foreign_joins(node("b"));
  board.settle(machine);
  CHECK(board.settle(machine) == Outlook::in_round);
  board.state.participants.erase(node("a"));
  board.state.last_heartbeats.erase(node("a"));
  board.foreign_beat(node("b"));
  CHECK(board.settle(machine) == Outlook::changed);
  CHECK(board.state.wait_list.contains(node("a")));
}

TEST_CASE("c10d machine: the times keep the kind that is found", "[rendezvous]") {
  Board board;
  board.foreign_joins(node("b"));
  board.state.times_have_zone = false;
  C10dMachine machine = machine_of({"a"}, 2, 2, board);
  CHECK(board.settle(machine) == Outlook::in_round);
  CHECK(board.state.times_have_zone == false);
}
