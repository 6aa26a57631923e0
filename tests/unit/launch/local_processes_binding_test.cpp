// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "acc/launch/local_processes.hpp"
#include "support/catch.hpp"
#include "support/in_child.hpp"

namespace local_processes_binding_test {

using acc::allowed_cpus;
using acc::CpuSet;
using acc::launcher::BindingMasks;
using acc::launcher::CpuBinding;
using acc::test::in_child;

TEST_CASE("binding masks: a process runs on the CPUs of its binding", "[launch]") {
  const int last = allowed_cpus().back();
  CHECK(in_child([&] {
          const bool applied = BindingMasks(CpuBinding{.cpus = {last}, .numa_nodes = {0}}).apply();
          return applied && allowed_cpus() == CpuSet{last} ? 0 : 1;
        }) == 0);
}

TEST_CASE("binding masks: missing CPUs are left out, and an empty set is refused", "[launch]") {
  const int first = allowed_cpus().front();
  CHECK(in_child([&] {
          const bool applied = BindingMasks(CpuBinding{.cpus = {first, 8000}, .numa_nodes = {0}}).apply();
          return applied && allowed_cpus() == CpuSet{first} ? 0 : 1;
        }) == 0);
  CHECK(in_child([] {
          const bool applied = BindingMasks(CpuBinding{.cpus = {8000}, .numa_nodes = {0}}).apply();
          return !applied && errno == EINVAL ? 0 : 1;
        }) == 0);
}

TEST_CASE("binding masks: without a binding nothing changes", "[launch]") {
  const CpuSet before = allowed_cpus();
  CHECK(BindingMasks(std::nullopt).apply());
  CHECK(allowed_cpus() == before);
}

}  // namespace local_processes_binding_test
