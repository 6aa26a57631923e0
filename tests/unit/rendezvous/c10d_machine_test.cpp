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

// Machines at one backend, on one steady clock; each may have a wall clock of its own.
struct RendezvousBackend {
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
  void foreign_heartbeat(const RendezvousNode& who, std::chrono::microseconds clock_error = {}) {
    state.last_heartbeats[who] = now.wall + clock_error;
  }
  void foreign_joins(const RendezvousNode& who, std::chrono::microseconds clock_error = {}) {
    state.participants[who] = 0;
    state.times_have_zone = true;
    foreign_heartbeat(who, clock_error);
  }
};

C10dMachine machine_of(const std::vector<std::string>& own, std::size_t least, std::size_t most,
                       const RendezvousBackend& backend) {
  C10dMachine machine({.min_nodes = least, .max_nodes = most});
  for (const std::string& addr : own) machine.add(node(addr));
  machine.next_round(backend.now);
  return machine;
}

std::vector<std::string> ranks(const RendezvousState& state) {
  std::vector<std::string> result(state.participants.size());
  for (const auto& [each, rank] : state.participants) result.at(static_cast<std::size_t>(rank)) = each.addr;
  return result;
}

}  // namespace

TEST_CASE("c10d_machine: all own nodes join with one write, ranked by address", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"b", "c", "a"}, 3, 3, backend);
  const C10dMachine::Step step = machine.step(backend.state, backend.now);
  CHECK(step.write);
  CHECK(step.state.complete);
  CHECK(step.state.times_have_zone == true);
  CHECK(step.state.last_heartbeats.size() == 3);
  backend.state = step.state;
  CHECK(backend.settle(machine) == Outlook::in_round);
  CHECK(ranks(backend.state) == std::vector<std::string>{"a", "b", "c"});
  CHECK_FALSE(backend.state.deadline.has_value());
}

TEST_CASE("c10d_machine: before a round is wanted it only looks on", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine({});
  CHECK(backend.settle(machine) == Outlook::idle);
  machine.add(node("a"));
  CHECK(backend.settle(machine) == Outlook::idle);
  CHECK(backend.state == RendezvousState());
}

TEST_CASE("c10d_machine: two sets make one round, whoever comes first", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine one = machine_of({"b"}, 3, 3, backend);
  C10dMachine two = machine_of({"a", "c"}, 3, 3, backend);
  CHECK(backend.settle(one) == Outlook::joining);
  CHECK(backend.settle(two) == Outlook::in_round);
  CHECK(backend.settle(one) == Outlook::in_round);
  CHECK(ranks(backend.state) == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("c10d_machine: with enough nodes the last call begins, and ends", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a", "b"}, 2, 4, backend);
  CHECK(backend.settle(machine) == Outlook::joining);
  CHECK(backend.state.deadline == kMidday + seconds(30));
  CHECK(machine.step(backend.state, backend.now).next == backend.now.steady + seconds(30));
  backend.pass(seconds(29));
  CHECK(backend.settle(machine) == Outlook::joining);
  backend.pass(seconds(1));
  CHECK(backend.settle(machine) == Outlook::in_round);
}

TEST_CASE("c10d_machine: another's last call lasts as long as ours, whatever its clock says",
          "[rendezvous]") {
  const auto clock_error = GENERATE(hours(-5), hours(0), hours(5));
  RendezvousBackend backend;
  backend.foreign_joins(node("b"), clock_error);
  backend.state.deadline = backend.now.wall + clock_error + seconds(30);
  C10dMachine machine = machine_of({"a"}, 1, 4, backend);
  CHECK(backend.settle(machine) == Outlook::joining);
  for (int i = 0; i < 29; ++i) {
    backend.pass(seconds(1));
    backend.foreign_heartbeat(node("b"), clock_error);
    CHECK(backend.settle(machine) == Outlook::joining);
  }
  backend.pass(seconds(1));
  CHECK(backend.settle(machine) == Outlook::in_round);
}

TEST_CASE("c10d_machine: who falls below the least nodes takes the last call back", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a", "b"}, 2, 4, backend);
  backend.settle(machine);
  machine.remove(node("b"));
  CHECK(backend.settle(machine) == Outlook::joining);
  CHECK_FALSE(backend.state.deadline.has_value());
  CHECK(backend.state.participants.size() == 1);
  CHECK(backend.state.last_heartbeats.size() == 1);
  backend.pass(seconds(3));
  machine.add(node("c"));
  backend.settle(machine);
  CHECK(backend.state.deadline == kMidday + seconds(33));
}

TEST_CASE("c10d_machine: a heartbeat is due every interval, for all own nodes at once", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a", "b"}, 2, 2, backend);
  backend.settle(machine);
  backend.pass(milliseconds(4999));
  CHECK_FALSE(machine.step(backend.state, backend.now).write);
  backend.pass(milliseconds(1));
  CHECK(backend.settle(machine) == Outlook::in_round);
  CHECK(backend.state.last_heartbeats.at(node("a")) == backend.now.wall);
  CHECK(backend.state.last_heartbeats.at(node("b")) == backend.now.wall);
}

TEST_CASE("c10d_machine: clocks that are hours apart kill nobody", "[rendezvous]") {
  const auto clock_error = GENERATE(hours(-5), hours(5));
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 2, 2, backend);
  backend.foreign_joins(node("b"), clock_error);
  CHECK(backend.settle(machine) == Outlook::in_round);
  for (int i = 0; i < 60; ++i) {
    backend.pass(seconds(1));
    if (i % 5 == 0) backend.foreign_heartbeat(node("b"), clock_error);
    REQUIRE(backend.settle(machine) == Outlook::in_round);
    // torchrun compares with its own clock: ours must not look older than 15 s.
    CHECK(backend.state.last_heartbeats.at(node("a")) > backend.now.wall + clock_error - seconds(12));
  }
}

TEST_CASE("c10d_machine: whose heartbeat stands still is gone, and the round is over", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 2, 2, backend);
  backend.foreign_joins(node("b"));
  CHECK(backend.settle(machine) == Outlook::in_round);
  backend.pass(milliseconds(14'999));
  CHECK(backend.settle(machine) == Outlook::in_round);
  backend.pass(milliseconds(1));
  CHECK(backend.settle(machine) == Outlook::changed);
  CHECK(machine.step(backend.state, backend.now).state.participants.size() == 1);
}

TEST_CASE("c10d_machine: who is gone does not keep the next round from coming", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 1, 2, backend);
  backend.foreign_joins(node("b"));
  CHECK(backend.settle(machine) == Outlook::in_round);
  backend.pass(seconds(15));
  CHECK(backend.settle(machine) == Outlook::changed);
  machine.next_round(backend.now);
  CHECK(backend.settle(machine) == Outlook::joining);
  CHECK(backend.state.round == 1);
  CHECK_FALSE(backend.state.last_heartbeats.contains(node("b")));
  backend.pass(seconds(30));
  CHECK(backend.settle(machine) == Outlook::in_round);
  CHECK(ranks(backend.state) == std::vector<std::string>{"a"});
}

TEST_CASE("c10d_machine: an own node is never dead", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a", "b"}, 2, 2, backend);
  backend.settle(machine);
  backend.pass(hours(1));
  CHECK(backend.settle(machine) == Outlook::in_round);
}

TEST_CASE("c10d_machine: the last call does not end before those who waited have come, or are gone",
          "[rendezvous]") {
  RendezvousBackend backend;
  backend.foreign_joins(node("b"));
  backend.state.participants.clear();
  backend.state.wait_list.insert(node("b"));
  C10dMachine machine = machine_of({"a"}, 1, 3, backend);
  CHECK(backend.settle(machine) == Outlook::joining);
  for (int i = 0; i < 6; ++i) {
    backend.pass(seconds(10));
    backend.foreign_heartbeat(node("b"));
    CHECK(backend.settle(machine) == Outlook::joining);
  }
  SECTION("it comes") {
    backend.state.wait_list.clear();
    backend.foreign_joins(node("b"));
    CHECK(backend.settle(machine) == Outlook::in_round);
    CHECK(backend.state.participants.size() == 2);
  }
  SECTION("it is gone") {
    backend.pass(seconds(15));
    CHECK(backend.settle(machine) == Outlook::in_round);
    CHECK(backend.state.participants.size() == 1);
  }
}

TEST_CASE("c10d_machine: one who waits ends the round", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 1, 2, backend);
  backend.settle(machine);
  backend.pass(seconds(30));
  CHECK(backend.settle(machine) == Outlook::in_round);
  SECTION("another's node") {
    backend.state.wait_list.insert(node("b"));
    backend.foreign_heartbeat(node("b"));
    CHECK(backend.settle(machine) == Outlook::changed);
    machine.next_round(backend.now);
    CHECK(backend.settle(machine) == Outlook::joining);  // until b, which finds the round open, comes in
    CHECK(backend.state.round == 1);
    CHECK(backend.state.wait_list.contains(node("b")));
    backend.state.wait_list.clear();
    backend.foreign_joins(node("b"));
    CHECK(backend.settle(machine) == Outlook::in_round);
  }
  SECTION("an own node") {
    machine.add(node("b"));
    CHECK(backend.settle(machine) == Outlook::changed);
    CHECK(backend.state.wait_list.contains(node("b")));
    machine.next_round(backend.now);
    CHECK(backend.settle(machine) == Outlook::in_round);
    CHECK(backend.state.round == 1);
    CHECK(ranks(backend.state) == std::vector<std::string>{"a", "b"});
    CHECK(backend.state.wait_list.empty());
  }
}

TEST_CASE("c10d_machine: after a round of own nodes alone no last call is needed", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a", "b", "c"}, 2, 4, backend);
  backend.settle(machine);
  backend.pass(seconds(30));
  CHECK(backend.settle(machine) == Outlook::in_round);
  machine.remove(node("c"));
  CHECK(backend.settle(machine) == Outlook::changed);
  machine.next_round(backend.now);
  CHECK(backend.settle(machine) == Outlook::in_round);
  CHECK(ranks(backend.state) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("c10d_machine: beside others' nodes the old round ends when all have left it", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine one = machine_of({"a"}, 2, 2, backend);
  C10dMachine two = machine_of({"b"}, 2, 2, backend);
  backend.settle(one);
  backend.settle(two);
  CHECK(backend.settle(one) == Outlook::in_round);
  one.next_round(backend.now);
  CHECK(backend.settle(one) == Outlook::joining);
  CHECK(backend.state.wait_list.contains(node("a")));
  CHECK(backend.state.round == 0);
  CHECK(backend.settle(two) == Outlook::changed);
  two.next_round(backend.now);
  CHECK(backend.settle(two) == Outlook::joining);
  CHECK(backend.state.round == 1);
  CHECK(backend.settle(one) == Outlook::in_round);
  CHECK(backend.settle(two) == Outlook::in_round);
}

TEST_CASE("c10d_machine: surplus nodes are spares, and come in when one is lost", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a", "b", "c"}, 2, 2, backend);
  CHECK(backend.settle(machine) == Outlook::in_round);
  CHECK(ranks(backend.state) == std::vector<std::string>{"a", "b"});
  CHECK(backend.state.redundancy_list.contains(node("c")));
  machine.remove(node("a"));
  CHECK(backend.settle(machine) == Outlook::changed);
  CHECK(backend.state.wait_list.contains(node("c")));
  machine.next_round(backend.now);
  CHECK(backend.settle(machine) == Outlook::in_round);
  CHECK(ranks(backend.state) == std::vector<std::string>{"b", "c"});
  CHECK(backend.state.redundancy_list.empty());
}

TEST_CASE("c10d_machine: a set that is all surplus waits without a time limit", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine ones = machine_of({"a", "b"}, 2, 2, backend);
  backend.settle(ones);
  C10dMachine machine = machine_of({"c"}, 2, 2, backend);
  for (int i = 0; i < 300; ++i) {
    CHECK(backend.settle(machine) == Outlook::spare);
    CHECK(backend.settle(ones) == Outlook::in_round);
    backend.pass(seconds(4));
  }
  ones.remove(node("b"));
  backend.settle(ones);
  CHECK(backend.settle(machine) == Outlook::joining);
  CHECK(backend.settle(ones) == Outlook::changed);
  ones.next_round(backend.now);
  backend.settle(ones);
  CHECK(backend.settle(machine) == Outlook::in_round);
}

TEST_CASE("c10d_machine: too few nodes in time is an end, and leaves nothing behind", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 2, 2, backend);
  backend.settle(machine);
  for (int i = 0; i < 150; ++i) {
    backend.pass(seconds(4));
    CHECK(backend.settle(machine) == (i < 149 ? Outlook::joining : Outlook::timed_out));
  }
  CHECK(backend.state.participants.empty());
  CHECK(backend.state.last_heartbeats.empty());
}

TEST_CASE("c10d_machine: closed is closed for all", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine one = machine_of({"a"}, 2, 2, backend);
  C10dMachine two = machine_of({"b"}, 2, 2, backend);
  backend.settle(one);
  backend.settle(two);
  one.close();
  CHECK(backend.settle(one) == Outlook::closed);
  CHECK(backend.state.closed);
  CHECK(backend.settle(two) == Outlook::closed);
  two.next_round(backend.now);
  CHECK(backend.settle(two) == Outlook::closed);
}

TEST_CASE("c10d_machine: taken for dead while it slept, it waits for the next round", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 1, 2, backend);
  backend.foreign_joins(node("b"));
  backend.settle(machine);
  CHECK(backend.settle(machine) == Outlook::in_round);
  backend.state.participants.erase(node("a"));
  backend.state.last_heartbeats.erase(node("a"));
  backend.foreign_heartbeat(node("b"));
  CHECK(backend.settle(machine) == Outlook::changed);
  CHECK(backend.state.wait_list.contains(node("a")));
}

TEST_CASE("c10d_machine: the times keep the kind that is found", "[rendezvous]") {
  RendezvousBackend backend;
  backend.foreign_joins(node("b"));
  backend.state.times_have_zone = false;
  C10dMachine machine = machine_of({"a"}, 2, 2, backend);
  CHECK(backend.settle(machine) == Outlook::in_round);
  CHECK(backend.state.times_have_zone == false);
}
