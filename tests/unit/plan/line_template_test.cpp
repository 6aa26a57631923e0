// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/line_template.hpp"

#include "support/catch.hpp"

namespace line_template_test {

using acc::launcher::Escape;
using acc::launcher::TemplateValues;
using acc::launcher::unknown_names;

std::string substitute(std::string_view text, const TemplateValues& values) {
  return acc::launcher::substitute(text, values, Escape::every_dollar);
}
TEST_CASE("line_template: names are replaced as Python's templates do", "[plan]") {
  const TemplateValues values = {{"rank", "7"}, {"role_name", "t"}};
  CHECK(substitute("[${role_name}$rank]:", values) == "[t7]:");
  CHECK(substitute("$rank$rank", values) == "77");
  CHECK(substitute("$ranks ${rank x ${other} $5 $", values) == "$ranks ${rank x ${other} $5 $");
  CHECK(substitute("$$rank $${rank}", values) == "$rank ${rank}");
  CHECK(substitute("$$$rank $$ $$$$", values) == "$7 $ $$");
  CHECK(substitute("", values).empty());
}

TEST_CASE("line_template: a shell's dollars stay where only references are escaped", "[plan]") {
  const auto expand = [](std::string_view text) {
    return acc::launcher::substitute(text, {{"rank", "7"}}, Escape::references);
  };
  CHECK(expand("$rank ${rank}$rank") == "7 77");
  CHECK(expand("$$rank $${rank}") == "$rank ${rank}");
  CHECK(expand("$$$rank $$$$rank") == "$$rank $$$rank");
  CHECK(expand("kill $$ $$x $$ranks $${rank $") == "kill $$ $$x $$ranks $${rank $");
}

TEST_CASE("line_template: names that it does not know", "[plan]") {
  CHECK(unknown_names("[${role_name}${local_rank}]${hostname}${host}").empty());
  CHECK(unknown_names("${node}:${rank}${Rank}") == std::vector<std::string>{"node", "Rank"});
  CHECK(unknown_names("$${node} ${ ${} $node ${node").empty());
}

}  // namespace line_template_test
