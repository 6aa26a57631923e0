// SPDX-License-Identifier: Apache-2.0
#include "acc/base/topology.hpp"
#include "support/catch.hpp"

namespace topology_cpu_set_test {

using acc::CpuSet;
using acc::format_cpu_list;
using acc::parse_cpu_list;

TEST_CASE("cpu set: parses and formats the kernel's lists", "[base]") {
  CHECK(parse_cpu_list("0-3,8\n") == CpuSet{0, 1, 2, 3, 8});
  CHECK(parse_cpu_list("") == CpuSet{});
  CHECK(parse_cpu_list("7") == CpuSet{7});
  CHECK(format_cpu_list({0, 1, 2, 3, 8}) == "0-3,8");
  CHECK(format_cpu_list({4, 6, 7}) == "4,6-7");
  CHECK(format_cpu_list({}).empty());
}

TEST_CASE("cpu set: is sorted, without duplicates", "[base]") {
  CHECK(parse_cpu_list("8,0-2,1") == CpuSet{0, 1, 2, 8});
}

TEST_CASE("cpu set: an invalid list is absent", "[base]") {
  const char* text = GENERATE("a", "3-1", "1-2-3", "0,,1", "-1", "0-99999999");
  CHECK_FALSE(parse_cpu_list(text));
}

TEST_CASE("cpu set: a process may use at least one CPU", "[base]") {
  const CpuSet cpus = acc::allowed_cpus();
  REQUIRE_FALSE(cpus.empty());
  CHECK(parse_cpu_list(format_cpu_list(cpus)) == cpus);
}

}  // namespace topology_cpu_set_test
