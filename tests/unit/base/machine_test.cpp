// SPDX-License-Identifier: Apache-2.0
#include "acc/base/machine.hpp"

#include <sched.h>

#include "support/catch.hpp"

namespace machine_test {

using acc::Environment;
using acc::Gpu;
using acc::Machine;

namespace {

Machine with_gpus() {
  Machine machine;
  machine.gpus = {Gpu{.index = 0, .uuid = "GPU-aaaa-1"}, Gpu{.index = 1, .uuid = "GPU-bbbb-2"},
                  Gpu{.index = 2, .uuid = "GPU-cccc-3"}};
  return machine;
}

std::vector<int> visible(const std::string& list) {
  std::vector<int> indices;
  for (const Gpu& gpu : acc::visible_gpus(with_gpus(), Environment{{"CUDA_VISIBLE_DEVICES", list}})) {
    indices.push_back(gpu.index);
  }
  return indices;
}

}  // namespace

TEST_CASE("machine: counts are at least one and consistent", "[base]") {
  const Machine machine = acc::probe_machine(false);
  CHECK(acc::allowed_cores() >= 1);
  CHECK(acc::allowed_cores() <= machine.allowed_cpus);
  CHECK(machine.allowed_cpus <= machine.online_cpus);
  CHECK(machine.memory_bytes > 0);
  CHECK_FALSE(machine.hostname.empty());
}

TEST_CASE("machine: an affinity mask lowers what is allowed", "[base]") {
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const Machine machine = acc::probe_machine(false);
  const int cores = acc::allowed_cores();
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(machine.allowed_cpus == 1);
  CHECK(cores == 1);
}

TEST_CASE("machine: without CUDA_VISIBLE_DEVICES every GPU is visible", "[base]") {
  CHECK(acc::visible_gpus(with_gpus(), {}).size() == 3);
}

TEST_CASE("machine: CUDA_VISIBLE_DEVICES has indices and prefixes of UUIDs, in its order", "[base]") {
  CHECK(visible("2, 0") == std::vector<int>{2, 0});
  CHECK(visible("GPU-bbbb,1") == std::vector<int>{1, 1});
  CHECK(visible("").empty());
}

TEST_CASE("machine: CUDA_VISIBLE_DEVICES ends at the first unknown entry", "[base]") {
  CHECK(visible("1,7,0") == std::vector<int>{1});
  CHECK(visible("-1").empty());
  CHECK(visible("NoDevFiles").empty());
}

}  // namespace machine_test
