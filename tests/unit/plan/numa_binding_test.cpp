// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/numa_binding.hpp"

#include "acc/plan/resolve.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/fake_sysfs.hpp"
#include "support/inputs.hpp"

namespace numa_binding_test {

using namespace acc;
using namespace acc::launcher;
using acc::test::error_of;

namespace {

// Two sockets, four nodes, two cores each, hyper-threads 8 apart; each node is one core complex.
Topology machine(const std::string& allowed = "0-15") {
  const test::FakeSysfs sysfs;
  return read_topology(*parse_cpu_list(allowed), {"0000:1b:00.0", "0000:1c:00.0", "0000:1d:00.0"},
                       sysfs.path());
}

std::vector<std::string> lists(const std::vector<CpuBinding>& bindings) {
  std::vector<std::string> texts;
  for (const CpuBinding& binding : bindings) texts.push_back(format_cpu_list(binding.cpus));
  return texts;
}

using Lists = std::vector<std::string>;

Lists bind(NumaBinding binding, const std::vector<int>& homes, int workers,
           const Topology& topology = machine()) {
  return lists(bind_workers(binding, topology, homes, workers, "--numa-binding"));
}

// A machine whose GPUs are at these PCI buses.
LaunchInputs with_gpus(std::vector<std::string> words, const std::vector<std::string>& buses) {
  words.insert(words.begin(), {"--numa-binding", "node", "--nproc-per-node", "2"});
  words.emplace_back("train.py");
  LaunchInputs inputs = test::inputs(words, Dialect::torchrun);
  for (const std::string& bus : buses) {
    inputs.machine.gpus.push_back({.index = static_cast<int>(inputs.machine.gpus.size()),
                                   .uuid = "GPU-" + bus,
                                   .pci_address = "0000:" + bus + ":00.0"});
  }
  inputs.topology = [](const Machine&) { return machine(); };
  return inputs;
}

}  // namespace

TEST_CASE("numa binding: node gives all CPUs of the home", "[plan]") {
  CHECK(bind(NumaBinding::node, {0, 3}, 2) == Lists{"0-1,8-9", "6-7,14-15"});
}

TEST_CASE("numa binding: socket gives its nodes, and names them", "[plan]") {
  const auto bindings = bind_workers(NumaBinding::socket, machine(), {1, 2}, 2, "");
  CHECK(lists(bindings) == Lists{"0-3,8-11", "4-7,12-15"});
  CHECK(bindings[0].numa_nodes == std::vector<int>{0, 1});
}

TEST_CASE("numa binding: exclusive divides whole cores, the first take the rest", "[plan]") {
  CHECK(bind(NumaBinding::exclusive, {0, 0, 3}, 3) == Lists{"0,8", "1,9", "6-7,14-15"});
  Topology one_node = machine("0-9");
  for (Cpu& cpu : one_node.cpus) cpu.numa_node = 0;
  CHECK(bind(NumaBinding::exclusive, {0, 0, 0}, 3, one_node) == Lists{"0-2,8-9", "3-5", "6-7"});
}

TEST_CASE("numa binding: exclusive counts the GPUs of the node, not the workers", "[plan]") {
  CHECK(bind(NumaBinding::exclusive, {0, 0}, 1) == Lists{"0,8"});
}

TEST_CASE("numa binding: exclusive refuses to share a core", "[plan]") {
  CHECK(error_of([] { bind(NumaBinding::exclusive, {0, 0, 0}, 3); }) ==
        "--numa-binding: exclusive needs a core per worker, but NUMA node 0 has 2 for 3");
  // Workers beyond the GPUs count as well.
  CHECK(error_of([] { bind(NumaBinding::exclusive, {0}, 3); }) != "no error");
}

TEST_CASE("numa binding: core complexes are taken in turn, the largest first", "[plan]") {
  Topology two_caches = machine("0-2");
  for (Cpu& cpu : two_caches.cpus) cpu = {.id = cpu.id, .core = cpu.id, .cache = cpu.id == 0 ? 0 : 1};
  CHECK(bind(NumaBinding::core_complex, {0, 0, 0}, 3, two_caches) == Lists{"1-2", "0", "1-2"});
}

TEST_CASE("numa binding: core complexes need a kernel that reports the caches", "[plan]") {
  Topology no_caches = machine("0-1");
  for (Cpu& cpu : no_caches.cpus) cpu.cache = -1;
  CHECK(error_of([&] {
          bind(NumaBinding::core_complex, {0}, 1, no_caches);
        }).starts_with("--numa-binding: core-complex needs the caches of the CPUs"));
}

TEST_CASE("numa binding: CPUs that acc may not use are not assigned", "[plan]") {
  CHECK(bind(NumaBinding::node, {0, 1}, 2, machine("1-2,9")) == Lists{"1,9", "2"});
  CHECK(error_of([] { bind(NumaBinding::node, {3}, 1, machine("0-3")); }) ==
        "--numa-binding: NUMA node 3 has none of the CPUs that acc may use (widen the affinity mask or the "
        "cpuset of acc)");
}

TEST_CASE("numa binding: workers without devices are spread in blocks of neighbours", "[plan]") {
  CHECK(spread_over_nodes(machine(), 2) == std::vector<int>{0, 2});
  CHECK(spread_over_nodes(machine(), 8) == std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(spread_over_nodes(machine("0-3"), 3) == std::vector<int>{0, 0, 1});
}

TEST_CASE("numa binding: workers are bound to the nodes of their GPUs", "[plan]") {
  CHECK(lists(resolve(with_gpus({}, {"1c", "1b"})).cpus_of_rank) == Lists{"6-7,14-15", "0-1,8-9"});
  LaunchInputs masked = with_gpus({}, {"1c", "1b"});
  masked.environment.set("CUDA_VISIBLE_DEVICES", "1,0");
  CHECK(lists(resolve(masked).cpus_of_rank) == Lists{"0-1,8-9", "6-7,14-15"});
}

TEST_CASE("numa binding: jobs without GPUs are bound as well", "[plan]") {
  CHECK(lists(resolve(with_gpus({}, {})).cpus_of_rank) == Lists{"0-1,8-9", "4-5,12-13"});
}

TEST_CASE("numa binding: unknown nodes are an error", "[plan]") {
  CHECK(error_of([] { resolve(with_gpus({}, {"1b", "1d"})); }) ==
        "--numa-binding: the kernel does not know the NUMA node of GPU 1 (0000:1d:00.0)");
  CHECK(error_of([] { resolve(with_gpus({}, {"99"})); }) ==
        "--numa-binding: GPU 0 (0000:99:00.0) is not among the kernel's PCI devices");
  LaunchInputs parts = with_gpus({}, {"1b"});
  parts.environment.set("CUDA_VISIBLE_DEVICES", "MIG-1,MIG-2");
  CHECK(error_of([&] { resolve(parts); }).find("MIG-1,MIG-2") != std::string::npos);
  // One node leaves no choice.
  LaunchInputs small = with_gpus({}, {"1d"});
  small.topology = [](const Machine&) { return machine("2-3"); };
  CHECK(lists(resolve(small).cpus_of_rank) == Lists{"2-3", "2-3"});
}

TEST_CASE("numa binding: there is no binding without a request", "[plan]") {
  LaunchInputs inputs = test::inputs({"train.py"});
  inputs.topology = [](const Machine&) -> Topology { throw std::runtime_error("asked for nothing"); };
  CHECK(resolve(inputs).cpus_of_rank.empty());
}

}  // namespace numa_binding_test
