// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/line_template.hpp"

#include "support/catch.hpp"

namespace line_template_test {

using acc::launcher::substitute;
using acc::launcher::unknown_names;

TEST_CASE("line_template: names are replaced as Python's templates do", "[plan]") {
  const std::map<std::string, std::string, std::less<>> values = {{"rank", "7"}, {"role_name", "t"}};
  CHECK(substitute("[${role_name}$rank]:", values) == "[t7]:");
  CHECK(substitute("$rank$rank", values) == "77");
  CHECK(substitute("$ranks ${rank x ${other} $5 $", values) == "$ranks ${rank x ${other} $5 $");
  CHECK(substitute("$$rank $${rank}", values) == "$rank ${rank}");
  CHECK(substitute("", values).empty());
}

TEST_CASE("line_template: names that it does not know", "[plan]") {
  CHECK(unknown_names("[${role_name}${local_rank}]${hostname}${host}").empty());
  CHECK(unknown_names("${node}:${rank}${Rank}") == std::vector<std::string>{"node", "Rank"});
  CHECK(unknown_names("$${node} ${ ${} $node ${node").empty());
}

}  // namespace line_template_test
