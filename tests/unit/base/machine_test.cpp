// SPDX-License-Identifier: Apache-2.0
#include "acc/base/machine.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>

#include "support/catch.hpp"
#include "support/in_child.hpp"

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

TEST_CASE("machine: there are random numbers where the system refuses getrandom", "[base]") {
  for (const unsigned refusal : {ENOSYS, EPERM}) {
    CHECK(acc::test::in_child([&] {
            std::array<sock_filter, 4> filter = {
                {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                 {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_getrandom},
                 {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | refusal},
                 {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
            const sock_fprog program = {.len = filter.size(), .filter = filter.data()};
            ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 0;
            return acc::random_number() != acc::random_number() ? 0 : 1;
          }) == 0);
  }
}

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

TEST_CASE("machine: CUDA_VISIBLE_DEVICES has indices or prefixes of UUIDs, in its order", "[base]") {
  CHECK(visible("2, 0") == std::vector<int>{2, 0});
  CHECK(visible("GPU-bbbb,GPU-aaaa") == std::vector<int>{1, 0});
  CHECK(visible("").empty());
}

TEST_CASE("machine: MIG devices count, where there is a driver", "[base]") {
  const Environment masked = {{"CUDA_VISIBLE_DEVICES", "MIG-a,MIG-b"}};
  const std::vector<Gpu> devices = acc::visible_gpus(with_gpus(), masked);
  REQUIRE(devices.size() == 2);
  CHECK(devices.front().uuid == "MIG-a");
  CHECK(acc::visible_gpus(Machine{}, masked).empty());
}

TEST_CASE("machine: a mask ends at another kind of entry, and shows nothing if it repeats one", "[base]") {
  using Devices = std::vector<std::string>;
  // As torch.cuda._parse_visible_devices of 2.11.
  CHECK(acc::devices_of_mask("0,1,2") == Devices{"0", "1", "2"});
  CHECK(acc::devices_of_mask("0,-1,1") == Devices{"0"});
  CHECK(acc::devices_of_mask("-1").empty());
  CHECK(acc::devices_of_mask("0,0").empty());
  CHECK(acc::devices_of_mask("1x,2") == Devices{"1", "2"});
  CHECK(acc::devices_of_mask("0,GPU-aaaa") == Devices{"0"});
  CHECK(acc::devices_of_mask("GPU-bbbb,1") == Devices{"GPU-bbbb"});
  CHECK(acc::devices_of_mask("MIG-a,MIG-b,GPU-aaaa") == Devices{"MIG-a", "MIG-b"});
  CHECK(acc::devices_of_mask("MIG-a,MIG-a").empty());
}

TEST_CASE("machine: CUDA_VISIBLE_DEVICES ends at the first unknown entry", "[base]") {
  CHECK(visible("1,7,0") == std::vector<int>{1});
  CHECK(visible("-1").empty());
  CHECK(visible("NoDevFiles").empty());
}

}  // namespace machine_test
