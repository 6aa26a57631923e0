// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/line_prefix.hpp"

#include <cstdlib>
#include <ctime>

#include "support/catch.hpp"

namespace line_prefix_test {

using namespace std::chrono_literals;

TEST_CASE("line_prefix: has torchrun's names, and three more of ours", "[launch]") {
  const acc::WorkerEnv worker = {.rank = 9, .group_rank = 2, .role_name = "trainer", .restart_count = 4};
  CHECK(acc::launcher::line_prefix("[${role_name}${local_rank}]:", worker, 1, "node2") == "[trainer1]:");
  CHECK(acc::launcher::line_prefix("$host/$group_rank/$rank/$attempt ", worker, 1, "node2") ==
        "node2/2/9/4 ");
  CHECK(acc::launcher::line_prefix("${hostname}:${rank}: ", worker, 1, "node2") == "node2:9: ");
}

TEST_CASE("timestamp: ISO 8601 in local time, with the offset, to the millisecond", "[launch]") {
  ::setenv("TZ", "XYZ-01:30", 1);
  ::tzset();
  const auto time = std::chrono::system_clock::time_point(1'700'000'000s + 7ms);
  CHECK(acc::launcher::timestamp(time) == "2023-11-14T23:43:20.007+0130");
  ::unsetenv("TZ");
  ::tzset();
}

}  // namespace line_prefix_test
