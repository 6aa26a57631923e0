// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/rendezvous.hpp"
#include "acc/plan/resolve.hpp"
#include "support/catch.hpp"
#include "support/inputs.hpp"

namespace rendezvous_master_address_test {

using acc::launcher::Dialect;
using acc::launcher::LaunchPlan;
using Addresses = std::vector<std::string>;

namespace {

LaunchPlan plan_of(std::vector<std::string> words, Dialect dialect = Dialect::torchrun,
                   const acc::Environment& variables = {},
                   const acc::launcher::Value& file = acc::launcher::Value::object()) {
  words.insert(words.begin(), "--nproc-per-node=2");
  words.emplace_back("train.py");
  acc::launcher::LaunchInputs launch_inputs = acc::test::inputs(words, dialect);
  launch_inputs.environment.overlay(variables);
  launch_inputs.file = acc::test::file(file);
  return resolve(launch_inputs);
}

}  // namespace

TEST_CASE("master_address: an own address is where workers meet and where their store listens, by each name",
          "[plan]") {
  const auto check = [](const LaunchPlan& plan, const std::string& host, const Addresses& addresses) {
    CAPTURE(host);
    CHECK(plan.master_addr == host);
    CHECK(plan.store_addresses == addresses);
    CHECK(plan.problems.empty());
    CHECK(plan.master_port == 29600);
  };
  const std::string port = "--master-port=29600";
  check(plan_of({"--master-addr=10.0.0.1", port}), "10.0.0.1", {"10.0.0.1"});
  check(plan_of({"--master-addr=127.0.1.1", port}), "127.0.1.1", {"127.0.1.1"});
  check(plan_of({"--master-addr=::1", port}), "::1", {"::1"});
  check(plan_of({"--master-addr=0.0.0.0", port}), "0.0.0.0", {"127.0.0.1"});
  check(plan_of({"--master-addr=localhost", port}), "localhost", {"127.0.0.1"});
  check(plan_of({"--master-addr=node0", port}), "node0", {"127.0.1.1"});
  check(plan_of({"--master-addr=train", port}), "train", {"10.0.0.1", "fd00::1"});
  check(plan_of({"--rdzv-backend=static", "--rdzv-endpoint=10.0.0.1:29600"}), "10.0.0.1", {"10.0.0.1"});
  check(plan_of({"--rdzv-endpoint=[fd00::1]:29600"}), "fd00::1", {"fd00::1"});
  check(plan_of({port}, Dialect::torchrun, {{"PET_MASTER_ADDR", "train"}}), "train", {"10.0.0.1", "fd00::1"});
  check(plan_of({"--main_process_ip=10.0.0.1", port}, Dialect::launch), "10.0.0.1", {"10.0.0.1"});
  check(plan_of({port}, Dialect::launch, {}, {{"num_machines", 1}, {"main_process_ip", "train"}}), "train",
        {"10.0.0.1", "fd00::1"});
}

TEST_CASE("master_address: without one it is loopback, and nothing is looked up", "[plan]") {
  acc::launcher::LaunchInputs launch_inputs =
      acc::test::inputs({"--nproc-per-node=2", "train.py"}, Dialect::torchrun);
  launch_inputs.look_up = nullptr;
  const LaunchPlan plan = resolve(launch_inputs);
  CHECK(plan.master_addr == "127.0.0.1");
  CHECK(plan.store_addresses == Addresses{"127.0.0.1"});
}

TEST_CASE("master_address: run refuses another machine's address, and shows what the name resolves to",
          "[plan]") {
  const auto problem = [](const std::vector<std::string>& words) {
    const LaunchPlan plan = plan_of(words);
    REQUIRE(plan.problems.size() == 1);
    return to_string(plan.problems.front());
  };
  const std::string hint =
      " (a job of one machine needs none; this machine has 10.0.0.1, fd00::1; for several machines use "
      "--nnodes)";
  CHECK(problem({"--master-addr=node1"}) ==
        "--master-addr: 'node1' is 10.0.0.2, which is not an address of this machine" + hint);
  CHECK(problem({"--rdzv-endpoint=10.0.0.2:29600"}) ==
        "--rdzv-endpoint: '10.0.0.2' is not an address of this machine" + hint);
  CHECK(problem({"--master-addr=nowhere"}) ==
        "--master-addr: 'nowhere' cannot be resolved: Name or service not known" + hint);
}

TEST_CASE("master_address: launch uses loopback instead, as accelerate does, with a note", "[plan]") {
  const LaunchPlan plan = plan_of({"--main_process_port=29600"}, Dialect::launch, {},
                                  {{"num_machines", 1}, {"main_process_ip", "10.0.0.2"}});
  CHECK(plan.problems.empty());
  CHECK(plan.master_addr == "127.0.0.1");
  CHECK(plan.master_port == 29600);
  CHECK(plan.store_addresses == Addresses{"127.0.0.1"});
  CHECK(plan.notes.back() ==
        "job.yaml:1: '10.0.0.2' is not an address of this machine: a job of one machine uses 127.0.0.1");
}

TEST_CASE("master_address: torchrun uses it only with the static rendezvous", "[plan]") {
  const LaunchPlan plan = plan_of({"--rdzv-backend=c10d", "--master-addr=node1"});
  CHECK(plan.problems.empty());
  CHECK(plan.master_addr == "127.0.0.1");
  CHECK(plan.notes.size() == 1);
}

TEST_CASE("master_address: a process without a rank needs none", "[plan]") {
  acc::launcher::LaunchInputs launch_inputs =
      acc::test::inputs({"--cpu", "--main_process_ip=10.0.0.2", "train.py"});
  const LaunchPlan plan = resolve(launch_inputs);
  CHECK(plan.problems.empty());
  CHECK(plan.notes.empty());
}

TEST_CASE("master_address: localhost needs no /etc/hosts", "[plan]") {
  acc::launcher::LaunchInputs launch_inputs =
      acc::test::inputs({"--nproc-per-node=2", "--master-addr=localhost", "train.py"}, Dialect::torchrun);
  launch_inputs.look_up = [](const std::string&) {
    return acc::HostLookup{.error = "Name or service not known"};
  };
  const LaunchPlan plan = resolve(launch_inputs);
  CHECK(plan.problems.empty());
  CHECK(plan.master_addr == "localhost");
  CHECK(plan.store_addresses == Addresses{"127.0.0.1"});
}

}  // namespace rendezvous_master_address_test
