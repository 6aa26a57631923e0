// SPDX-License-Identifier: Apache-2.0
// Leaders of several machines are tested by runtime/cpu_backend_faults.py.
#include "acc/runtime/comm/cpu/machine_leader.hpp"

#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "support/catch.hpp"

namespace machine_leader_test {

namespace {

using acc::detail::JobOperation;
using acc::detail::MachineLeader;

struct Leaders : c10d::Backend {
  Leaders() : Backend(0, 2) {}
};

JobOperation operation(std::function<void()> outside, std::function<void(std::exception_ptr)> done) {
  JobOperation posted;
  posted.outside = [outside = std::move(outside)](c10d::Backend&) { outside(); };
  posted.back.done = std::move(done);
  return posted;
}

}  // namespace

TEST_CASE("machine_leader: each operation ends before the next begins, on a thread of its own", "[runtime]") {
  std::vector<std::string> events;
  std::promise<bool> end;
  MachineLeader leader(nullptr, c10::make_intrusive<Leaders>());
  for (const std::string name : {"first", "second"}) {
    leader.begin(operation([&events, name] { events.push_back(name + " begins"); },
                           [&, name](const std::exception_ptr& failure) {
                             events.push_back(name + (failure ? " fails" : " ends"));
                             if (name == "second") end.set_value(leader.is_own_thread());
                           }));
  }
  CHECK(end.get_future().get());
  CHECK_FALSE(leader.is_own_thread());
  CHECK(events == std::vector<std::string>{"first begins", "first ends", "second begins", "second ends"});
}

TEST_CASE("machine_leader: after a failure nothing is begun, and all fails as it did", "[runtime]") {
  std::promise<std::exception_ptr> end;
  bool was_begun = false;
  MachineLeader leader(nullptr, c10::make_intrusive<Leaders>());
  leader.begin(operation([] { throw std::runtime_error("a machine was lost"); }, [](std::exception_ptr) {}));
  leader.begin(operation([&] { was_begun = true; },
                         [&](const std::exception_ptr& failure) { end.set_value(failure); }));
  const std::exception_ptr failure = end.get_future().get();
  REQUIRE(failure != nullptr);
  CHECK_THROWS_WITH(std::rethrow_exception(failure), "a machine was lost");
  CHECK_FALSE(was_begun);
}

}  // namespace machine_leader_test
