// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/line_prefix.hpp"

#include "support/catch.hpp"

using acc::launcher::substitute;

TEST_CASE("line_prefix: names are replaced as Python's templates do", "[launch]") {
  const std::map<std::string, std::string, std::less<>> values = {{"rank", "7"}, {"role_name", "t"}};
  CHECK(substitute("[${role_name}$rank]:", values) == "[t7]:");
  CHECK(substitute("$rank$rank", values) == "77");
  CHECK(substitute("$ranks ${rank x ${other} $5 $", values) == "$ranks ${rank x ${other} $5 $");
  CHECK(substitute("$$rank $${rank}", values) == "$rank ${rank}");
  CHECK(substitute("", values).empty());
}

TEST_CASE("line_prefix: a worker's place has torchrun's names, and three more", "[launch]") {
  const acc::WorkerEnv place = {.rank = 9, .group_rank = 2, .role_name = "trainer", .restart_count = 4};
  CHECK(acc::launcher::line_prefix("[${role_name}${local_rank}]:", place, 1, "node2") == "[trainer1]:");
  CHECK(acc::launcher::line_prefix("$host/$group_rank/$rank/$attempt ", place, 1, "node2") == "node2/2/9/4 ");
}
