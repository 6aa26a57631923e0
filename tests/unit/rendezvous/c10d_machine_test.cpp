// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/c10d_machine.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

namespace c10d_machine_test {

namespace {

using acc::launcher::C10dMachine;
using acc::launcher::RendezvousNode;
using acc::launcher::RendezvousState;
using acc::launcher::WallTime;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Status = C10dMachine::Status;

RendezvousNode node(const std::string& addr) {
  return {addr, 1, 0};
}

const WallTime kMidday = std::chrono::sys_days(std::chrono::year(2026) / 11 / 21) + hours(12);

// Machines at one backend, with one steady clock and separate wall clocks; their processes stand still
// together.
struct RendezvousBackend {
  RendezvousState state = {};
  C10dMachine::Moment now = {.wall = kMidday};

  void pass(milliseconds time) {
    now.running += time;
    stand_still(time);
  }
  void stand_still(milliseconds time) {
    now.steady += time;
    now.wall += time;
  }
  // Calls step() until the machine has nothing to write.
  Status settle(C10dMachine& machine, std::chrono::microseconds clock_error = {}) {
    const C10dMachine::Moment moment = {now.running, now.steady, now.wall + clock_error};
    for (int i = 0; i < 10; ++i) {
      const C10dMachine::Step step = machine.step(state, moment);
      if (!step.write) return step.status;
      state = step.state;
    }
    FAIL("it writes on and on");
    return Status::idle;
  }
  // The heartbeat of a torchrun agent.
  void foreign_heartbeat(const RendezvousNode& node, std::chrono::microseconds clock_error = {}) {
    state.last_heartbeats[node] = now.wall + clock_error;
  }
  void foreign_joins(const RendezvousNode& node, std::chrono::microseconds clock_error = {}) {
    state.participants[node] = 0;
    state.times_have_zone = true;
    foreign_heartbeat(node, clock_error);
  }
};

C10dMachine machine_of(const std::vector<std::string>& addresses, std::size_t min_nodes,
                       std::size_t max_nodes, const RendezvousBackend& backend) {
  C10dMachine machine({.min_nodes = min_nodes, .max_nodes = max_nodes});
  for (const std::string& addr : addresses) machine.add(node(addr));
  machine.next_round(backend.now);
  return machine;
}

std::vector<std::string> ranks(const RendezvousState& state) {
  std::vector<std::string> result(state.participants.size());
  for (const auto& [node, rank] : state.participants) result.at(static_cast<std::size_t>(rank)) = node.addr;
  return result;
}

// A node is on its wait list.
RendezvousBackend backend_that_waits_for(const std::string& name) {
  RendezvousBackend backend;
  backend.foreign_joins(node(name));
  backend.state.participants.clear();
  backend.state.wait_list.insert(node(name));
  return backend;
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
  CHECK(backend.settle(machine) == Status::in_round);
  CHECK(ranks(backend.state) == std::vector<std::string>{"a", "b", "c"});
  CHECK_FALSE(backend.state.deadline.has_value());
}

TEST_CASE("c10d_machine: writes nothing before a round is requested", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine({});
  CHECK(backend.settle(machine) == Status::idle);
  machine.add(node("a"));
  CHECK(backend.settle(machine) == Status::idle);
  CHECK(backend.state == RendezvousState());
}

TEST_CASE("c10d_machine: two sets of nodes form one round, in any order", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine one = machine_of({"b"}, 3, 3, backend);
  C10dMachine two = machine_of({"a", "c"}, 3, 3, backend);
  CHECK(backend.settle(one) == Status::joining);
  CHECK(backend.settle(two) == Status::in_round);
  CHECK(backend.settle(one) == Status::in_round);
  CHECK(ranks(backend.state) == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("c10d_machine: with enough nodes the last call begins, and ends", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a", "b"}, 2, 4, backend);
  CHECK(backend.settle(machine) == Status::joining);
  CHECK(backend.state.deadline == kMidday + seconds(30));
  CHECK(machine.step(backend.state, backend.now).next == backend.now.running + seconds(30));
  backend.pass(seconds(29));
  CHECK(backend.settle(machine) == Status::joining);
  backend.pass(seconds(1));
  CHECK(backend.settle(machine) == Status::in_round);
}

TEST_CASE("c10d_machine: another's last call lasts as long as ours, whatever its clock", "[rendezvous]") {
  const auto clock_error = GENERATE(hours(-5), hours(0), hours(5));
  RendezvousBackend backend;
  backend.foreign_joins(node("b"), clock_error);
  backend.state.deadline = backend.now.wall + clock_error + seconds(30);
  C10dMachine machine = machine_of({"a"}, 1, 4, backend);
  CHECK(backend.settle(machine) == Status::joining);
  for (int i = 0; i < 29; ++i) {
    backend.pass(seconds(1));
    backend.foreign_heartbeat(node("b"), clock_error);
    CHECK(backend.settle(machine) == Status::joining);
  }
  backend.pass(seconds(1));
  CHECK(backend.settle(machine) == Status::in_round);
}

TEST_CASE("c10d_machine: falling below min_nodes cancels the last call", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a", "b"}, 2, 4, backend);
  backend.settle(machine);
  machine.remove(node("b"));
  CHECK(backend.settle(machine) == Status::joining);
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
  CHECK(backend.settle(machine) == Status::in_round);
  CHECK(backend.state.last_heartbeats.at(node("a")) == backend.now.wall);
  CHECK(backend.state.last_heartbeats.at(node("b")) == backend.now.wall);
}

TEST_CASE("c10d_machine: after a pause no node is dead, and its own heartbeat is due at once",
          "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 2, 3, backend);
  backend.foreign_joins(node("b"));
  backend.settle(machine);
  backend.stand_still(seconds(700));
  CHECK(backend.settle(machine) == Status::joining);
  CHECK(backend.state.participants.contains(node("b")));
  CHECK(backend.state.last_heartbeats.at(node("a")) == backend.now.wall);
}

TEST_CASE("c10d_machine: no node is dead because of clock skew", "[rendezvous]") {
  const auto clock_error = GENERATE(hours(-5), hours(5));
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 2, 2, backend);
  backend.foreign_joins(node("b"), clock_error);
  CHECK(backend.settle(machine) == Status::in_round);
  for (int i = 0; i < 60; ++i) {
    backend.pass(seconds(1));
    if (i % 5 == 0) backend.foreign_heartbeat(node("b"), clock_error);
    REQUIRE(backend.settle(machine) == Status::in_round);
    // torchrun compares with its own clock: ours must not look older than 15 s.
    CHECK(backend.state.last_heartbeats.at(node("a")) > backend.now.wall + clock_error - seconds(12));
  }
}

TEST_CASE("c10d_machine: a wrong clock is followed as long as its node lives", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 1, 3, backend);
  backend.foreign_joins(node("b"), hours(5));
  backend.settle(machine);
  const auto ahead = [&] { return backend.state.last_heartbeats.at(node("a")) - backend.now.wall; };
  CHECK(ahead() > hours(5) - seconds(15));
  backend.pass(seconds(20));  // b is dead
  backend.settle(machine);
  backend.pass(seconds(5));
  backend.settle(machine);
  CHECK(ahead() == seconds(0));
}

TEST_CASE("c10d_machine: two launchers do not keep a wrong clock between them", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine one = machine_of({"a"}, 1, 3, backend);
  C10dMachine two = machine_of({"c"}, 1, 3, backend);
  backend.foreign_joins(node("b"), seconds(30));
  for (int i = 0; i < 60; ++i) {
    backend.pass(seconds(5));
    backend.settle(one);
    backend.settle(two);
  }
  CHECK(backend.state.last_heartbeats.at(node("a")) <= backend.now.wall);
  CHECK(backend.state.last_heartbeats.at(node("c")) <= backend.now.wall);
}

TEST_CASE("c10d_machine: a node without heartbeat is dead, and the round is over", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 2, 2, backend);
  backend.foreign_joins(node("b"));
  CHECK(backend.settle(machine) == Status::in_round);
  backend.pass(milliseconds(14'999));
  CHECK(backend.settle(machine) == Status::in_round);
  backend.pass(milliseconds(1));
  CHECK(backend.settle(machine) == Status::changed);
  CHECK(machine.step(backend.state, backend.now).state.participants.size() == 1);
}

TEST_CASE("c10d_machine: a dead node does not block the next round", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 1, 2, backend);
  backend.foreign_joins(node("b"));
  CHECK(backend.settle(machine) == Status::in_round);
  backend.pass(seconds(15));
  CHECK(backend.settle(machine) == Status::changed);
  machine.next_round(backend.now);
  CHECK(backend.settle(machine) == Status::joining);
  CHECK(backend.state.round == 1);
  CHECK_FALSE(backend.state.last_heartbeats.contains(node("b")));
  backend.pass(seconds(30));
  CHECK(backend.settle(machine) == Status::in_round);
  CHECK(ranks(backend.state) == std::vector<std::string>{"a"});
}

TEST_CASE("c10d_machine: an own node is never dead", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a", "b"}, 2, 2, backend);
  backend.settle(machine);
  backend.pass(hours(1));
  CHECK(backend.settle(machine) == Status::in_round);
}

TEST_CASE("c10d_machine: the last call waits for the nodes on the wait list", "[rendezvous]") {
  RendezvousBackend backend = backend_that_waits_for("b");
  C10dMachine machine = machine_of({"a"}, 1, 3, backend);
  CHECK(backend.settle(machine) == Status::joining);
  for (int i = 0; i < 6; ++i) {
    backend.pass(seconds(10));
    backend.foreign_heartbeat(node("b"));
    CHECK(backend.settle(machine) == Status::joining);
  }
  SECTION("it comes") {
    backend.state.wait_list.clear();
    backend.foreign_joins(node("b"));
    CHECK(backend.settle(machine) == Status::in_round);
    CHECK(backend.state.participants.size() == 2);
  }
  SECTION("it is gone") {
    backend.pass(seconds(15));
    CHECK(backend.settle(machine) == Status::in_round);
    CHECK(backend.state.participants.size() == 1);
  }
}

TEST_CASE("c10d_machine: a last call that waits on is not looked at without a pause", "[rendezvous]") {
  RendezvousBackend backend = backend_that_waits_for("b");
  C10dMachine machine = machine_of({"a"}, 1, 3, backend);
  backend.settle(machine);
  for (int i = 0; i < 4; ++i) {
    backend.foreign_heartbeat(node("b"));
    backend.settle(machine);
    CHECK(machine.step(backend.state, backend.now).next > backend.now.running);
    backend.pass(seconds(10));
  }
}

TEST_CASE("c10d_machine: nor is a closed state, once the timeout is over", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 2, 2, backend);
  backend.settle(machine);
  backend.pass(seconds(600));
  machine.close();
  CHECK(backend.settle(machine) == Status::closed);
  CHECK(machine.step(backend.state, backend.now).next > backend.now.running);
}

TEST_CASE("c10d_machine: a round that has lost a node since it was complete is not joined", "[rendezvous]") {
  const auto [lost, min_nodes] = GENERATE(table<std::string, std::size_t>({{"b", 1}, {"b", 3}, {"c", 3}}));
  CAPTURE(lost, min_nodes);
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, min_nodes, 3, backend);
  backend.foreign_joins(node("b"));
  backend.foreign_joins(node("c"));
  backend.state.participants = {{node("a"), 0}, {node("b"), 1}, {node("c"), 2}};
  backend.state.complete = true;
  backend.state.participants.erase(node(lost));
  CHECK(backend.settle(machine) == Status::changed);
  machine.next_round(backend.now);
  CHECK(backend.settle(machine) == Status::joining);
  CHECK_FALSE(backend.state.participants.contains(node("a")));
}

TEST_CASE("c10d_machine: a node on the wait list ends the round", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 1, 2, backend);
  backend.settle(machine);
  backend.pass(seconds(30));
  CHECK(backend.settle(machine) == Status::in_round);
  SECTION("another's node") {
    backend.state.wait_list.insert(node("b"));
    backend.foreign_heartbeat(node("b"));
    CHECK(backend.settle(machine) == Status::changed);
    machine.next_round(backend.now);
    CHECK(backend.settle(machine) == Status::joining);  // until b, which finds the round open, comes in
    CHECK(backend.state.round == 1);
    CHECK(backend.state.wait_list.contains(node("b")));
    backend.state.wait_list.clear();
    backend.foreign_joins(node("b"));
    CHECK(backend.settle(machine) == Status::in_round);
  }
  SECTION("an own node") {
    machine.add(node("b"));
    CHECK(backend.settle(machine) == Status::changed);
    CHECK(backend.state.wait_list.contains(node("b")));
    machine.next_round(backend.now);
    CHECK(backend.settle(machine) == Status::in_round);
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
  CHECK(backend.settle(machine) == Status::in_round);
  machine.remove(node("c"));
  CHECK(backend.settle(machine) == Status::changed);
  machine.next_round(backend.now);
  CHECK(backend.settle(machine) == Status::in_round);
  CHECK(ranks(backend.state) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("c10d_machine: beside others' nodes the old round ends when all have left it", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine one = machine_of({"a"}, 2, 2, backend);
  C10dMachine two = machine_of({"b"}, 2, 2, backend);
  backend.settle(one);
  backend.settle(two);
  CHECK(backend.settle(one) == Status::in_round);
  one.next_round(backend.now);
  CHECK(backend.settle(one) == Status::joining);
  CHECK(backend.state.wait_list.contains(node("a")));
  CHECK(backend.state.round == 0);
  CHECK(backend.settle(two) == Status::changed);
  two.next_round(backend.now);
  CHECK(backend.settle(two) == Status::joining);
  CHECK(backend.state.round == 1);
  CHECK(backend.settle(one) == Status::in_round);
  CHECK(backend.settle(two) == Status::in_round);
}

TEST_CASE("c10d_machine: surplus nodes are spares, and replace a lost one", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a", "b", "c"}, 2, 2, backend);
  CHECK(backend.settle(machine) == Status::in_round);
  CHECK(ranks(backend.state) == std::vector<std::string>{"a", "b"});
  CHECK(backend.state.redundancy_list.contains(node("c")));
  machine.remove(node("a"));
  CHECK(backend.settle(machine) == Status::changed);
  CHECK(backend.state.wait_list.contains(node("c")));
  machine.next_round(backend.now);
  CHECK(backend.settle(machine) == Status::in_round);
  CHECK(ranks(backend.state) == std::vector<std::string>{"b", "c"});
  CHECK(backend.state.redundancy_list.empty());
}

TEST_CASE("c10d_machine: a set of only spares waits without a timeout", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine ones = machine_of({"a", "b"}, 2, 2, backend);
  backend.settle(ones);
  C10dMachine machine = machine_of({"c"}, 2, 2, backend);
  for (int i = 0; i < 300; ++i) {
    CHECK(backend.settle(machine) == Status::spare);
    CHECK(backend.settle(ones) == Status::in_round);
    backend.pass(seconds(4));
  }
  ones.remove(node("b"));
  backend.settle(ones);
  CHECK(backend.settle(machine) == Status::joining);
  CHECK(backend.settle(ones) == Status::changed);
  ones.next_round(backend.now);
  backend.settle(ones);
  CHECK(backend.settle(machine) == Status::in_round);
}

TEST_CASE("c10d_machine: a spare has its whole timeout once a place may be free", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"b"}, 1, 1, backend);
  backend.foreign_joins(node("a"));
  backend.state.complete = true;
  CHECK(backend.settle(machine) == Status::spare);
  backend.pass(hours(1));  // nothing is read meanwhile
  backend.state.participants.clear();
  backend.state.complete = false;
  ++backend.state.round;
  CHECK(backend.settle(machine) == Status::in_round);
}

TEST_CASE("c10d_machine: after a timeout it leaves nothing in the state", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 2, 2, backend);
  backend.settle(machine);
  for (int i = 0; i < 150; ++i) {
    backend.pass(seconds(4));
    CHECK(backend.settle(machine) == (i < 149 ? Status::joining : Status::timed_out));
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
  CHECK(backend.settle(one) == Status::closed);
  CHECK(backend.state.closed);
  CHECK(backend.settle(two) == Status::closed);
  two.next_round(backend.now);
  CHECK(backend.settle(two) == Status::closed);
}

TEST_CASE("c10d_machine: nodes without a round leave that of others open", "[rendezvous]") {
  const std::size_t max_nodes = GENERATE(1, 2);  // a spare, and a node that waits for the next round
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"b"}, 1, max_nodes, backend);
  backend.foreign_joins(node("a"));
  backend.state.complete = true;
  CHECK(backend.settle(machine) == (max_nodes == 1 ? Status::spare : Status::joining));
  machine.close();
  CHECK(backend.settle(machine) == Status::closed);
  CHECK_FALSE(backend.state.closed);
  CHECK(backend.state.participants.contains(node("a")));
  CHECK(backend.state.redundancy_list.empty());
  CHECK(backend.state.wait_list.empty());
  CHECK(backend.settle(machine) == Status::closed);
}

TEST_CASE("c10d_machine: nodes that were in no round leave the others to form one anew", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"c"}, 3, 3, backend);
  backend.foreign_joins(node("a"));
  backend.state.round = 1;
  CHECK(backend.settle(machine) == Status::joining);
  machine.close();
  CHECK(backend.settle(machine) == Status::closed);
  CHECK_FALSE(backend.state.closed);
  CHECK(ranks(backend.state) == std::vector<std::string>{"a"});
}

TEST_CASE("c10d_machine: a node that waits while others fill the round becomes a spare", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"c"}, 2, 2, backend);
  backend.foreign_joins(node("a"));
  backend.state.complete = true;
  CHECK(backend.settle(machine) == Status::joining);
  CHECK(backend.state.wait_list.contains(node("c")));
  backend.foreign_joins(node("b"));
  CHECK(backend.settle(machine) == Status::spare);
  // Agents end a round for whoever is on this list.
  CHECK(backend.state.wait_list.empty());
}

TEST_CASE("c10d_machine: a full round goes on while others wait", "[rendezvous]") {
  RendezvousBackend backend;
  backend.state.wait_list.insert(node("c"));
  backend.foreign_heartbeat(node("c"));
  SECTION("an own node has filled it, and makes them spares") {
    backend.foreign_joins(node("b"));
    C10dMachine machine = machine_of({"a"}, 2, 2, backend);
    CHECK(backend.settle(machine) == Status::in_round);
    CHECK(backend.state.wait_list.empty());
    CHECK(backend.state.redundancy_list.contains(node("c")));
  }
  SECTION("another node has filled it") {
    C10dMachine machine = machine_of({"a"}, 2, 2, backend);
    CHECK(backend.settle(machine) == Status::joining);
    backend.foreign_joins(node("b"));
    backend.state.participants[node("b")] = 1;
    backend.state.complete = true;
    CHECK(backend.settle(machine) == Status::in_round);
    CHECK(backend.settle(machine) == Status::in_round);
    backend.state.participants.erase(node("b"));
    CHECK(backend.settle(machine) == Status::changed);
  }
}

TEST_CASE("c10d_machine: a node that was dropped while suspended waits for the next round", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 1, 2, backend);
  backend.foreign_joins(node("b"));
  backend.settle(machine);
  CHECK(backend.settle(machine) == Status::in_round);
  backend.state.participants.erase(node("a"));
  backend.state.last_heartbeats.erase(node("a"));
  backend.foreign_heartbeat(node("b"));
  CHECK(backend.settle(machine) == Status::changed);
  CHECK(backend.state.wait_list.contains(node("a")));
}

TEST_CASE("c10d_machine: a node that was dropped when its workers had succeeded stays out", "[rendezvous]") {
  RendezvousBackend backend;
  C10dMachine machine = machine_of({"a"}, 1, 2, backend);
  backend.foreign_joins(node("b"));
  CHECK(backend.settle(machine) == Status::in_round);
  machine.finish();
  CHECK(backend.settle(machine) == Status::in_round);
  backend.state.participants.erase(node("a"));
  backend.state.last_heartbeats.erase(node("a"));
  backend.foreign_heartbeat(node("b"));
  CHECK(backend.settle(machine) == Status::changed);
  CHECK(backend.state.wait_list.empty());
}

TEST_CASE("c10d_machine: times keep the kind that was read", "[rendezvous]") {
  RendezvousBackend backend;
  backend.foreign_joins(node("b"));
  backend.state.times_have_zone = false;
  C10dMachine machine = machine_of({"a"}, 2, 2, backend);
  CHECK(backend.settle(machine) == Status::in_round);
  CHECK(backend.state.times_have_zone == false);
}

}  // namespace c10d_machine_test
