// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/line_prefix.hpp"

#include <cstdlib>
#include <ctime>

#include "support/catch.hpp"

namespace line_prefix_test {

using acc::launcher::substitute;
using namespace std::chrono_literals;

TEST_CASE("line_prefix: names are replaced as Python's templates do", "[launch]") {
  const std::map<std::string, std::string, std::less<>> values = {{"rank", "7"}, {"role_name", "t"}};
  CHECK(substitute("[${role_name}$rank]:", values) == "[t7]:");
  CHECK(substitute("$rank$rank", values) == "77");
  CHECK(substitute("$ranks ${rank x ${other} $5 $", values) == "$ranks ${rank x ${other} $5 $");
  CHECK(substitute("$$rank $${rank}", values) == "$rank ${rank}");
  CHECK(substitute("", values).empty());
}

TEST_CASE("line_prefix: has torchrun's names, and three more", "[launch]") {
  const acc::WorkerEnv place = {.rank = 9, .group_rank = 2, .role_name = "trainer", .restart_count = 4};
  CHECK(acc::launcher::line_prefix("[${role_name}${local_rank}]:", place, 1, "node2") == "[trainer1]:");
  CHECK(acc::launcher::line_prefix("$host/$group_rank/$rank/$attempt ", place, 1, "node2") == "node2/2/9/4 ");
}

TEST_CASE("timestamp: ISO 8601 in local time, with the offset, to the millisecond", "[launch]") {
  ::setenv("TZ", "XYZ-01:30", 1);
  ::tzset();
  const auto when = std::chrono::system_clock::time_point(1'700'000'000s + 7ms);
  CHECK(acc::launcher::timestamp(when) == "2023-11-14T23:43:20.007+0130");
  ::unsetenv("TZ");
  ::tzset();
}

}  // namespace line_prefix_test
